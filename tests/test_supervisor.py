"""The supervisor behind `manage.py up`, with small programs of its own."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from ragsite.embedded.service import is_running, wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
TALK = "import os, time; print('pid', os.getpid()); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {TALK}"
DIE = "import sys; print('dying'); sys.exit(3)"
WITH_CHILD = (
    "import subprocess, sys;"
    f"c = subprocess.Popen([sys.executable, '-c', {DEAF!r}]);"
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); c.wait()"
)
WITH_ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {DEAF!r}])"


class Supervised:
    """A supervisor in a process of its own, as `make run` has it, and what it printed."""

    def __init__(self, *programs: tuple[str, str], grace_seconds: float = 15) -> None:
        code = (
            "import json, sys; from pathlib import Path;"
            "from ragsite import supervisor as s; s.FIRST_DELAY_SECONDS = 0.05;"
            "p = {n: [sys.executable, '-c', c] for n, c in json.loads(sys.argv[1])};"
            "say = lambda line: print(line, flush=True);"
            f"s.Supervisor(p, cwd=Path.cwd(), say=say, grace_seconds={grace_seconds}).run();"
            "print('all stopped')"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, json.dumps(programs)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def wait_for(self, text: str, times: int = 1) -> list[str]:
        found: list[str] = []

        def seen() -> bool:
            found[:] = [line for line in self.lines if text in line]
            return len(found) >= times

        assert wait_until(seen, 60), self.lines
        return found

    def pids(self, times: int = 1) -> list[int]:
        return [int(line.split()[-1]) for line in self.wait_for("pid ", times)]

    def stop(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = self.process.wait(60)
        self._reader.join()
        assert self.process.stdout
        self.process.stdout.close()
        return code


def gone(pids: list[int]) -> bool:
    return wait_until(lambda: not any(is_running(pid) for pid in pids), 30)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_in_order(how: signal.Signals) -> None:
    supervised = Supervised(("web", TALK), ("worker", TALK))
    pids = supervised.pids(2)
    assert supervised.stop(how) == 0
    assert supervised.lines[-1] == "all stopped"
    assert gone(pids)


def test_lines_carry_the_name_of_their_program() -> None:
    supervised = Supervised(("web", TALK), ("worker", TALK))
    supervised.pids(2)
    supervised.stop(signal.SIGTERM)
    assert sorted(line.split("pid")[0] for line in supervised.lines if "pid" in line) == [
        "web    | ",
        "worker | ",
    ]


def test_a_program_that_dies_is_restarted_and_the_others_go_on() -> None:
    supervised = Supervised(("web", TALK), ("worker", DIE))
    web = supervised.pids()[0]
    assert len(supervised.wait_for("| dying", times=3)) >= 3
    supervised.wait_for("worker ended with exit code 3; restart in")
    assert is_running(web)
    supervised.stop(signal.SIGTERM)


def test_a_killed_program_is_named_with_its_signal_and_comes_back() -> None:
    supervised = Supervised(("web", TALK))
    first = supervised.pids()[0]
    os.kill(first, signal.SIGKILL)
    supervised.wait_for("web ended with SIGKILL; restart in")
    assert supervised.pids(2)[1] != first
    supervised.stop(signal.SIGTERM)


def test_what_does_not_listen_is_killed_when_its_time_is_up_children_too() -> None:
    supervised = Supervised(
        ("deaf", DEAF), ("parent", WITH_CHILD), ("late", WITH_ORPHAN), grace_seconds=1
    )
    pids = supervised.pids(3)
    assert supervised.stop(signal.SIGTERM) == 0
    assert gone(pids)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
def test_programs_end_when_the_supervisor_is_killed() -> None:
    supervised = Supervised(("web", TALK))
    pids = supervised.pids()
    assert psutil.Process(pids[0]).ppid() == supervised.process.pid
    supervised.stop(signal.SIGKILL)
    assert gone(pids)
