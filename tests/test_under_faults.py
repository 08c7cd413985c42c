"""A site of real processes under random faults, and another under mixed load, side by side: each
waits most of its time. `bench/faults.py` and `bench/mixed.py` do the same for longer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from tests.backups import copy_database
from tests.instances import instance_dir
from tests.schedules.plan import schedule

#: The test's own database, of which theirs are copies.
pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parent.parent
#: Seeds in which every kind of fault but the rarest comes; two at once: the other tests want the
#: machine as well.
SEED, SCHEDULES, AT_ONCE = 3, 4, 2
#: About a thousand requests, the least in which what fills at first can be told from what grows.
MINUTES, CLIENTS = 1.5, 2
#: Both are over long before; a hanging one is not to hang the rest.
PATIENCE_SECONDS = 480

Running = dict[str, tuple["subprocess.Popen[bytes]", IO[bytes]]]


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any
) -> Iterator[Running]:
    """Both, from the beginning, and what they print."""
    commands = {
        "faults": [
            *("-m", "bench.faults", "--seed", str(SEED)),
            *("--schedules", str(SCHEDULES), "--at-once", str(AT_ONCE)),
        ],
        "mixed": ["-m", "bench.mixed", "--minutes", str(MINUTES), "--clients", str(CLIENTS)],
    }
    folder = tmp_path_factory.mktemp("under-faults")
    started: Running = {}
    with ExitStack() as stack:
        for name, arguments in commands.items():
            output = stack.enter_context((folder / name).open("w+b"))
            var = stack.enter_context(instance_dir())
            with django_db_blocker.unblock():
                copy_database(var)
            process = subprocess.Popen(
                [sys.executable, *arguments, "--var", str(var)],
                cwd=ROOT,
                env=dict(os.environ),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            started[name] = process, output
        yield started


def ended(running: Running, name: str) -> str:
    """What it printed; fails the test where something was wrong."""
    process, output = running[name]
    code = process.wait(timeout=PATIENCE_SECONDS)
    output.seek(0)
    printed = output.read().decode(errors="replace")
    assert code == 0, printed
    return printed


@pytest.mark.nightly
def test_after_random_faults_everything_is_there_once(running: Running) -> None:
    printed = ended(running, "faults")
    told = [line for line in printed.splitlines() if " refused: upload_several" in line]
    assert len(told) == SCHEDULES, printed
    assert "clean: " in printed, printed


@pytest.mark.nightly
def test_under_mixed_load_every_request_is_answered_and_nothing_grows(running: Running) -> None:
    assert "nothing grows" in ended(running, "mixed")


def test_a_seed_is_a_schedule() -> None:
    schedules = [schedule(seed) for seed in range(20)]
    assert schedules == [schedule(seed) for seed in range(20)]
    assert len(set(schedules)) == 20
    for steps in schedules:
        assert 2 <= sum(step.is_fault for step in steps) <= 3
        assert 6 <= sum(not step.is_fault for step in steps) <= 10
