"""Runs several programs side by side: prefixes their output, restarts them, stops them together."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
# A program that ran this long was well, and its next death is a first one again.
_STABLE_SECONDS = 60.0
_TICK_SECONDS = 5.0
# glibc gives threads heaps of their own, up to eight a core, and each keeps what was freed in it:
# with two an embed worker holds a quarter less after a run, one that parses less than half.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


class Supervisor:
    """Keeps `programs`, command lines by the prefix of their output, running until it is told to
    stop by SIGINT, SIGTERM or SIGHUP.
    """

    def __init__(
        self,
        programs: Mapping[str, Sequence[str]],
        *,
        cwd: Path,
        say: Callable[[str], None],
        on_tick: Callable[[], None] = lambda: None,
        grace_seconds: float = 15.0,
    ) -> None:
        self._programs = programs
        self._cwd = cwd
        self._print = say
        self._on_tick = on_tick
        self._grace_seconds = grace_seconds
        self._width = max(map(len, programs))
        self._stopping = threading.Event()
        self._children: dict[str, subprocess.Popen[str]] = {}
        self._lock = threading.Lock()
        self._saying = threading.Lock()

    def run(self) -> None:
        """Run everything; returns when all programs have ended, at most `grace_seconds` after a
        signal.
        """
        before = {
            number: signal.signal(number, lambda *_: self._stopping.set())
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        keepers = [
            threading.Thread(target=self._keep, args=[name], name=name) for name in self._programs
        ]
        try:
            for keeper in keepers:
                keeper.start()
            while not self._stopping.wait(_TICK_SECONDS):
                self._on_tick()
        finally:
            self._stopping.set()
            self._stop(keepers)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _keep(self, name: str) -> None:
        """Restart the program whenever it ends, in a thread of its own."""
        delay = FIRST_DELAY_SECONDS
        while not self._stopping.is_set():
            started = time.monotonic()
            code = self._run_program(name)
            if self._stopping.is_set():
                return
            if time.monotonic() - started > _STABLE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            self._say(f"{name} ended with {reason}; restart in {delay:.0f} s")
            self._stopping.wait(delay)
            delay = min(delay * 2, LONGEST_DELAY_SECONDS)

    def _run_program(self, name: str) -> int:
        with self._lock:
            if self._stopping.is_set():
                return 0
            # Command prefix by which Linux ends a program whose supervisor was killed.
            setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
            die_with_parent = [setpriv, "--pdeathsig", "TERM"] if setpriv else []
            child = self._children[name] = subprocess.Popen(  # noqa: S603 - our own
                [*die_with_parent, *self._programs[name]],
                cwd=self._cwd,
                env={**_ENVIRONMENT, **os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # a Ctrl-C is ours to pass on, once
            )
        with child:
            assert child.stdout
            for line in child.stdout:
                self._say(f"{name:{self._width}} | {line.rstrip()}")
            return child.wait()

    def _say(self, line: str) -> None:
        try:
            with self._saying:  # text and line break are two writes: threads would mix theirs
                self._print(line)
        except BrokenPipeError:
            self._stopping.set()  # nobody listens any more

    def _stop(self, keepers: Sequence[threading.Thread]) -> None:
        deadline = time.monotonic() + self._grace_seconds
        with self._lock:  # nothing is started any more
            children = dict(self._children)
        for child in children.values():
            child.terminate()
        for keeper in keepers:
            keeper.join(max(0.0, deadline - time.monotonic()))
        for keeper in keepers:
            if keeper.is_alive():  # so the program lives, or children of it that hold its output
                with suppress(ProcessLookupError):
                    os.killpg(children[keeper.name].pid, signal.SIGKILL)
                keeper.join()
