"""Parsers in a child process with limits of time and memory. No Django here. Begin with
`parse_in_sandbox`; `__main__` is the child."""

import atexit
import fcntl
import logging
import os
import select
import signal
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer
from time import monotonic
from typing import TypeVar, get_args

import reading
from reading.parsers import ParsedDocument, ParseError
from reading.parsers.base import ErrorCode
from reading.sandbox import limits as sandbox_limits
from reading.sandbox.limits import ParserLimits
from reading.sandbox.protocol import (
    MAX_HEADER_BYTES,
    PREFIX,
    MessageHeader,
    ParseRequest,
    decode_header,
    document_from_fields,
    encode_header,
    frame_message,
)

__all__ = [
    "ParseRequest",
    "ParserLimits",
    "ParserProcess",
    "parse_in_sandbox",
    "parse_many",
    "run_in_sandbox",
]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PROJECT_ROOT = Path(reading.__path__[0]).resolve().parent
#: Environment variables that are passed on: none holds a password or an address.
_PASSED_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONPATH", "LD_LIBRARY_PATH")
#: One heap for both threads: each heap reserves 64 MB of the limited address space.
_MALLOC_ENVIRONMENT = {"MALLOC_ARENA_MAX": "1"}
_PIPE_BYTES = 1024 * 1024
#: How often whoever waits for an answer is asked whether to go on.
WAIT_SECONDS = 0.5
#: Extra time after its own alarm before the process is killed from outside.
_GRACE_FACTOR = 1.1
_GRACE_SECONDS = 2.0
_EXIT_SECONDS = 10.0
_MAX_LOGGED_BYTES = 16 * 1024


class ProcessEnded(Exception):
    """The parser process has exited."""


class ProcessTimeout(Exception):
    """The parser process did not answer in time."""


#: Header and body of a message, undecoded.
Answer = tuple[bytearray, bytearray]


class Channel:
    """A child process and its three pipes; `send` and `receive` move messages in order.

    Writing never blocks on a process that waits for us to read: answers that arrive meanwhile are
    buffered.
    """

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._patience = limits.seconds * _GRACE_FACTOR + _GRACE_SECONDS
        self._process = subprocess.Popen(  # noqa: S603 (nothing of a file's is in it)
            [
                *(sys.executable, "-X", "utf8", "-m", "reading.sandbox"),
                *(str(limits.memory_bytes), str(int(limits.starts_programs))),
                str(limits.max_bytes if limits.writes_files else 0),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=_PROJECT_ROOT,
            env={name: os.environ[name] for name in _PASSED_ENVIRONMENT if name in os.environ}
            | _MALLOC_ENVIRONMENT,
            start_new_session=True,  # Ctrl-C is for us: the process ends when its input does
        )
        descriptors = []
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            descriptors.append(pipe.fileno())
            os.set_blocking(pipe.fileno(), False)
            with suppress(AttributeError, OSError):  # Linux only, and not for everybody
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        self._stdin, self._stdout, self._stderr = descriptors
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._ready: deque[Answer] = deque()
        self._logged = 0
        self._has_ended = self._takes_no_more = False

    @property
    def has_died(self) -> bool:
        """Whether the process exited by itself, with nothing left to read."""
        return not self._ready and self._process.poll() is not None

    @property
    def has_finished(self) -> bool:
        """Whether the process has given its last answer and must be replaced."""
        return self._takes_no_more and not self._ready

    def send(self, *parts: bytes) -> None:
        """Write a message. If the process is gone, `receive` reports it."""
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

    def receive(self, while_waiting: Callable[[], None] | None = None) -> Answer:
        """The next answer. `while_waiting` is called every WAIT_SECONDS until it is there. Raises
        ProcessEnded, ProcessTimeout, or ValueError for one that is too long."""
        self._logged = 0
        deadline = monotonic() + self._patience
        while while_waiting is not None and not self._ready and monotonic() < deadline:
            events = dict(self._poll.poll(WAIT_SECONDS * 1000))
            if self._stderr in events:
                self._log()
            if self._stdout in events:
                break
            while_waiting()
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
            if self._limits.starts_programs:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)  # what it started
            self._log()
            for pipe in pipes:
                if pipe is not None:
                    pipe.close()

    def _wait_to_send(self) -> bool:
        """Wait for room, buffering answers that arrive; False if there will be none."""
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
                raise ProcessTimeout
            if self._stdout in events:
                self._take(monotonic() + self._patience)
        except (ProcessEnded, ProcessTimeout, ValueError):
            return False
        return True

    def _take(self, deadline: float) -> None:
        """Read one answer to the end."""
        prefix = self._read(PREFIX.size, deadline)
        is_last, header_length, body_length = PREFIX.unpack(prefix)
        if header_length > MAX_HEADER_BYTES or body_length > self._limits.max_bytes:
            raise ValueError("its answer is too long")
        header = self._read(header_length, deadline)
        self._ready.append((header, self._read(body_length, deadline)))
        self._takes_no_more = is_last

    def _read(self, size: int, deadline: float) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        while view:
            try:
                count = os.readv(self._stdout, [view])
            except BlockingIOError:
                left = deadline - monotonic()
                events = dict(self._poll.poll(left * 1000)) if left > 0 else {}
                if self._stderr in events:
                    self._log()
                if not events:
                    raise ProcessTimeout from None
                continue
            if count == 0:
                self._has_ended = True
                raise ProcessEnded
            view = view[count:]
        return buffer

    def _log(self) -> None:
        """Log the process's standard error, up to a limit per answer."""
        said = b""
        with suppress(BlockingIOError, KeyError):
            while piece := os.read(self._stderr, _MAX_LOGGED_BYTES):
                said += piece[: max(0, _MAX_LOGGED_BYTES - self._logged - len(said))]
            self._poll.unregister(self._stderr)  # nothing will come any more
        self._logged += len(said)
        for line in said.decode(errors="replace").splitlines():
            logger.warning("parser process: %s", line)


#: Characters of an error's message.
MAX_MESSAGE_CHARACTERS = 2000


class ParserProcess:
    """Parses one file after the other in a child process, for one thread at a time.

    The process is started with the first file and reused. One that breaks a limit fails only the
    file that it was parsing: the next file gets a new process.
    """

    def __init__(self, limits: ParserLimits) -> None:
        self.limits = limits
        self._channel: Channel | None = None
        self._waiting: deque[ParseRequest] = deque()

    def parse(self, request: ParseRequest) -> ParsedDocument:
        """The parsed file. Raises ParseError, and nothing else."""
        self.submit(request)
        return self.result()

    def submit(self, request: ParseRequest) -> None:
        """Submit a file; `result` returns its outcome, in the order of submission."""
        if self.is_idle and self._channel is not None and self._channel.has_died:
            self._stop()  # while it had nothing to do, so by no file's fault
        self._waiting.append(request)
        self._send([request])

    def result(self) -> ParsedDocument:
        """The outcome of the oldest pending file; blocks. Raises ParseError."""
        return self._result(
            lambda header, body: document_from_fields(header["document"], str(body, "utf-8"))
        )

    def run(
        self,
        request: ParseRequest,
        decode: Callable[[MessageHeader, bytearray], T],
        while_waiting: Callable[[], None] | None = None,
    ) -> T:
        """What `decode` makes of the header and body that the request's task returned. Raises
        ParseError, and what `while_waiting` raises."""
        self.submit(request)
        return self._result(lambda header, body: decode(header["result"], body), while_waiting)

    def _result(
        self,
        decode: Callable[[MessageHeader, bytearray], T],
        while_waiting: Callable[[], None] | None = None,
    ) -> T:
        request = self._waiting.popleft()
        try:
            document = self._receive(request, decode, while_waiting)
        except ParseError:
            self._restart_for_pending()
            raise
        except BaseException:  # such as Ctrl-C: an answer may be half read
            self.close()
            raise
        self._restart_for_pending()
        return document

    @property
    def is_idle(self) -> bool:
        """Whether every result was taken."""
        return not self._waiting

    def close(self) -> None:
        """End the process; pending files are dropped."""
        self._waiting.clear()
        self._stop()

    def _send(self, requests: Iterable[ParseRequest]) -> None:
        if self._channel is None:
            self._channel = Channel(self.limits)
        for request in requests:
            header = encode_header(
                {
                    "name": request.name,
                    "path": str(request.path or ""),
                    "seconds": self.limits.seconds,
                    "max_bytes": self.limits.max_bytes,
                    "task": request.task,
                    "options": request.options,
                }
            )
            self._channel.send(*frame_message(header, request.data or b""))

    def _receive(
        self,
        request: ParseRequest,
        decode: Callable[[MessageHeader, bytearray], T],
        while_waiting: Callable[[], None] | None,
    ) -> T:
        assert self._channel is not None
        try:
            encoded, body = self._channel.receive(while_waiting)
            header = decode_header(encoded)
            if "error" in header:
                fields = header["error"]
                if fields["code"] not in get_args(ErrorCode):
                    raise ValueError(f"{fields['code']!r} is no code")
                raise ParseError(fields["code"], str(fields["message"])[:MAX_MESSAGE_CHARACTERS])
            return decode(header, body)
        except ProcessTimeout as error:
            self._stop()
            raise sandbox_limits.time_limit_error(request.name, self.limits.seconds) from error
        except ProcessEnded as error:
            exit_code = self._stop()
            raise sandbox_limits.exit_error(exit_code, request.name, self.limits.seconds) from error
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            self._stop()
            raise sandbox_limits.crash_error(
                request.name, f"no usable answer: {error}"[:200]
            ) from error

    def _restart_for_pending(self) -> None:
        """Start another process for the pending files if this one is gone or ending."""
        if self._channel is not None and self._channel.has_finished:
            self._stop()
        if self._channel is None and self._waiting:
            self._send(tuple(self._waiting))

    def _stop(self) -> int:
        channel, self._channel = self._channel, None
        return channel.close() if channel else 0


#: Files that are parsed ahead of the consumer, and their bytes.
PREFETCHED_FILES = 16
PREFETCHED_FILE_BYTES = 4 * 1024 * 1024
MAX_IDLE_PROCESSES = 4
#: After this time without work a process is ended: one that reads scans holds 250 MB.
IDLE_SECONDS = 60.0


def parse_in_sandbox(request: ParseRequest, *, limits: ParserLimits) -> ParsedDocument:
    """Parse a file in the sandbox. Raises ParseError, and nothing else."""
    with _pool.borrow(limits) as process:
        return process.parse(request)


def run_in_sandbox(
    request: ParseRequest,
    decode: Callable[[MessageHeader, bytearray], T],
    *,
    limits: ParserLimits,
    while_waiting: Callable[[], None] | None = None,
) -> T:
    """What `decode` makes of the header and body that the request's task returned. `decode` checks
    them, because a file may have taken over the process; LookupError, TypeError and ValueError say
    that they are not usable.

    `while_waiting` is called every half second; what it raises ends the process. Raises that or
    ParseError, and nothing else.
    """
    with _pool.borrow(limits) as process:
        return process.run(request, decode, while_waiting)


def parse_many(
    requests: Iterable[ParseRequest], *, limits: ParserLimits
) -> Iterator[ParsedDocument | ParseError]:
    """The result for each file, in order; the process works some files ahead of the caller."""
    sizes: deque[int] = deque()
    with _pool.borrow(limits) as process:
        for request in requests:
            while sizes and (
                len(sizes) >= PREFETCHED_FILES or sum(sizes) + request.size > PREFETCHED_FILE_BYTES
            ):
                sizes.popleft()
                yield _result_or_error(process)
            process.submit(request)
            sizes.append(request.size)
        while not process.is_idle:
            yield _result_or_error(process)


def _result_or_error(process: ParserProcess) -> ParsedDocument | ParseError:
    try:
        return process.result()
    except ParseError as error:
        return error


class _ProcessPool:
    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start empty after a fork, and leave the processes to the parent."""
        self._lock = Lock()
        #: Each with the `monotonic()` time since which it is idle, the longest first.
        self._idle: dict[ParserLimits, list[tuple[float, ParserProcess]]] = defaultdict(list)
        self._timer: Timer | None = None

    @contextmanager
    def borrow(self, limits: ParserLimits) -> Iterator[ParserProcess]:
        with self._lock:
            idle = self._idle[limits]
            process = idle.pop()[1] if idle else ParserProcess(limits)
        try:
            yield process
        finally:
            with self._lock:
                is_kept = process.is_idle and len(idle) < MAX_IDLE_PROCESSES
                if is_kept:
                    idle.append((monotonic(), process))
                    self._start_timer()
            if not is_kept:
                process.close()

    def close(self, *, idle_seconds: float = 0.0) -> None:
        """End the processes that no thread has borrowed for so long."""
        before = monotonic() - idle_seconds
        with self._lock:
            ended = []
            for idle in self._idle.values():
                while idle and idle[0][0] <= before:
                    ended.append(idle.pop(0)[1])
        for process in ended:
            process.close()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = Timer(IDLE_SECONDS, self._end_idle)
            self._timer.daemon = True
            self._timer.start()

    def _end_idle(self) -> None:
        self.close(idle_seconds=IDLE_SECONDS)
        with self._lock:
            self._timer = None
            if any(self._idle.values()):
                self._start_timer()


_pool = _ProcessPool()
atexit.register(_pool.close)
os.register_at_fork(after_in_child=_pool.forget)
