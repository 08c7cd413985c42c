"""The scheduler in a thread of a worker."""

from pathlib import Path
from typing import Any

import pytest

from ragsite import celery
from tests.plugin import wait_until


def test_it_keeps_its_schedule_in_the_file_and_ends_when_it_is_stopped(tmp_path: Path) -> None:
    thread = celery.SchedulerThread(str(tmp_path / "schedule"))
    thread.start()
    wait_until(lambda: any(tmp_path.iterdir()), what="the schedule is written")
    thread.stop()
    assert not thread.is_alive()


def test_it_starts_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Failing:
        def __init__(self, *args: object, **options: object) -> None:
            made.append(self)

        def start(self) -> None:
            raise OSError("no space left on device")

        def stop(self) -> None:
            pass

    monkeypatch.setattr(celery, "Service", Failing)
    monkeypatch.setattr(celery, "_RESTART_SECONDS", 0.0)
    thread = celery.SchedulerThread(None)
    thread.start()
    wait_until(lambda: len(made) > 3, what="several were started")
    thread.stop()
    assert not thread.is_alive()
