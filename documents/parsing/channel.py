"""A parser process and its three pipes."""

import fcntl
import logging
import os
import select
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO

import documents
from documents.parsing.limits import ParserLimits
from documents.parsing.protocol import MAX_HEADER_BYTES, PREFIX

logger = logging.getLogger(__name__)

_ROOT = Path(documents.__path__[0]).resolve().parent
#: All that the process learns of our environment: no password, no address.
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH")
#: One heap for its two threads: each would reserve 64 MB of the addresses that it may have.
_HEAPS = {"MALLOC_ARENA_MAX": "1"}
_PIPE_BYTES = 1024 * 1024
#: What the process is given beyond its own alarm before it is killed from outside.
_GRACE = 1.1
_GRACE_SECONDS = 2.0
_EXIT_SECONDS = 10.0
_MAX_LOGGED = 16 * 1024


class Ended(Exception):
    """The process is gone."""


class Unanswered(Exception):
    """The time is over."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Header and body of a message, as they came."""

    header: bytearray
    body: bytearray


class Channel:
    """Starts a process; `send` and `receive` move messages, in order.

    Writing never waits for a process that waits for us to read: answers that come meanwhile are
    taken and kept.
    """

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._patience = limits.seconds * _GRACE + _GRACE_SECONDS
        self._process = subprocess.Popen(  # noqa: S603 (nothing of a file's is in it)
            [sys.executable, "-X", "utf8", "-m", "documents.parsing", str(limits.memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=_ROOT,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | _HEAPS,
            start_new_session=True,  # Ctrl-C is for us: the process ends when its input does
        )
        self._stdin, self._stdout, self._stderr = (
            _descriptor(pipe)
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
        )
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._ready: deque[Answer] = deque()
        self._logged = 0
        self._has_ended = self._takes_no_more = False

    @property
    def has_died(self) -> bool:
        """Whether the process ended by itself, with nothing left to be read from it."""
        return not self._ready and self._process.poll() is not None

    @property
    def is_done(self) -> bool:
        """Whether the process has given its last answer, and makes room for another."""
        return self._takes_no_more and not self._ready

    def send(self, *parts: bytes) -> None:
        """Write a message. Where the process is gone, `receive` tells it."""
        for part in parts:
            view = memoryview(part)
            while view:
                try:
                    view = view[os.write(self._stdin, view) :]
                except BlockingIOError:
                    if not self._wait_to_send():
                        return
                except BrokenPipeError:
                    return

    def receive(self) -> Answer:
        """The next answer. Raises Ended, Unanswered, or ValueError for one that is too long."""
        self._logged = 0
        if not self._ready:
            self._take(monotonic() + self._patience)
        return self._ready.popleft()

    def close(self) -> int:
        """End the process; returns its exit code, negative for a signal."""
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        try:
            return self._process.wait(_EXIT_SECONDS if self._has_ended else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._log()
            for pipe in pipes:
                if pipe is not None:
                    pipe.close()

    def _wait_to_send(self) -> bool:
        """Until there is room, taking answers that come instead; False where there will be none."""
        self._poll.register(self._stdin, select.POLLOUT)
        try:
            events = dict(self._poll.poll(self._patience * 1000))
        finally:
            self._poll.unregister(self._stdin)
        if self._stderr in events:
            self._log()
        if self._stdin in events:
            return True
        try:
            if self._stdout not in events and self._stderr not in events:
                raise Unanswered
            if self._stdout in events:
                self._take(monotonic() + self._patience)
        except (Ended, Unanswered, ValueError):
            return False
        return True

    def _take(self, deadline: float) -> None:
        """Read one answer to the end."""
        prefix = self._read(PREFIX.size, deadline)
        is_last, header_length, body_length = PREFIX.unpack(prefix)
        if header_length > MAX_HEADER_BYTES or body_length > self._limits.max_bytes:
            raise ValueError("its answer is too long")
        header = self._read(header_length, deadline)
        self._ready.append(Answer(header, self._read(body_length, deadline)))
        self._takes_no_more = is_last

    def _read(self, size: int, deadline: float) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            try:
                count = os.readv(self._stdout, [view])
            except BlockingIOError:
                self._wait_to_read(deadline)
                continue
            if count == 0:
                self._has_ended = True
                raise Ended
            view = view[count:]
        return buffer

    def _wait_to_read(self, deadline: float) -> None:
        left = deadline - monotonic()
        events = dict(self._poll.poll(left * 1000)) if left > 0 else {}
        if self._stderr in events:
            self._log()
        if not events:
            raise Unanswered

    def _log(self) -> None:
        """What the process complains of, up to a bound for each answer."""
        said = b""
        with suppress(BlockingIOError, KeyError):
            while piece := os.read(self._stderr, _MAX_LOGGED):
                said += piece[: max(0, _MAX_LOGGED - self._logged - len(said))]
            self._poll.unregister(self._stderr)  # nothing will come any more
        self._logged += len(said)
        for line in said.decode(errors="replace").splitlines():
            logger.warning("parser process: %s", line)


def _descriptor(pipe: IO[bytes] | None) -> int:
    assert pipe is not None
    descriptor = pipe.fileno()
    os.set_blocking(descriptor, False)
    with suppress(AttributeError, OSError):  # Linux only, and not for everybody
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return descriptor
