"""A folder that is watched is read within seconds; several watchers make one run."""

from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from documents.tests.factories import CollectionFactory
from sources import runs, services, watching
from sources.models import DataSource, DataSourceRun
from sources.watching import FolderWatcher, watched_folders
from tests.plugin import wait_until

State = DataSourceRun.State
CHANGE = DataSourceRun.Cause.CHANGE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    (folder / "travel").mkdir(parents=True)
    (folder / "leave.md").write_text("Five days of leave can be carried over.")
    return folder


@pytest.fixture
def source(folder: Path) -> DataSource:
    return services.create_source(
        collection=CollectionFactory(),
        name="Team",
        connector="folder",
        options={"path": str(folder)},
        schedule="60",
    )


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the watchers told."""
    told: list[Any] = []

    def record(**what: Any) -> None:
        services.request_run(**what)
        told.append(what)

    monkeypatch.setattr(watching, "QUIET_MS", 100)
    monkeypatch.setattr(watching, "request_run", record)
    return told


def watched_directories() -> int:
    """How many this process has the kernel watch."""
    count = 0
    for info in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            count += info.read_text().count("inotify wd:")
    return count


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("media_root")
def test_a_change_in_a_folder_is_read_once_though_two_watch_it(
    source: DataSource, folder: Path, told: list[Any]
) -> None:
    runs.work_on(source.pk)
    watchers = [FolderWatcher(refresh_seconds=0.2) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    try:
        wait_until(lambda: watched_directories() >= 4, what="both watch the folder", seconds=10)
        (folder / "travel" / "rail.md").write_text("Trains are booked by the office.")
        wait_until(lambda: len(told) == 2, what="both have told", seconds=10)
        run = runs.work_on(source.pk)
        assert run is not None
        assert (run.cause, run.state, run.new) == (CHANGE, State.SUCCEEDED, 1)
        assert runs.work_on(source.pk) is None
        # a folder that is made anew is watched anew
        folder.rename(folder.with_name("before"))
        wait_until(lambda: watched_directories() == 0, what="nothing is watched", seconds=10)
        folder.mkdir()
        wait_until(lambda: watched_directories() == 2, what="it is watched again", seconds=10)
        del told[:]
        (folder / "bicycle.md").write_text("A kilometre by bicycle is paid with 25 cents.")
        wait_until(lambda: told, what="a change is told again", seconds=10)
    finally:
        for watcher in watchers:
            watcher.stop()
    # the kernel is told by a thread of the watcher, a moment later
    wait_until(lambda: watched_directories() == 0, what="nothing is watched any more", seconds=10)


@pytest.mark.django_db
def test_what_a_run_has_seen_already_makes_no_other_one(source: DataSource) -> None:
    at = timezone.now()
    run = services.request_run(source_id=source.pk, cause=CHANGE, changed_at=at)
    assert run is not None
    runs.work_on(source.pk)
    for before in (run.started_at, at):
        again = services.request_run(source_id=source.pk, cause=CHANGE, changed_at=before)
        assert again == run
    after = run.started_at + timedelta(seconds=1)
    assert services.request_run(source_id=source.pk, cause=CHANGE, changed_at=after) != run
    assert source.runs.count() == 2
    assert services.request_run(source_id=source.pk + 1, cause=CHANGE) is None


@pytest.mark.django_db
def test_only_folders_that_are_there_and_read_by_themselves_are_watched(
    source: DataSource, folder: Path, told: list[Any]
) -> None:
    folders = watched_folders()
    assert {path: ids for path, (_, ids) in folders.items()} == {str(folder): (source.pk,)}
    watching._tell([folder / ".git" / "index", folder.with_name("other")], folders)
    assert not told
    watching._tell([folder / ".git" / "index", folder / "leave.md"], folders)
    assert len(told) == 1
    for change in ({"schedule": ""}, {"state": "dead"}, {"connector": "git"}):
        before = DataSource.objects.values(*change).get()
        DataSource.objects.update(**change)
        assert not watched_folders()
        DataSource.objects.update(**before)
    folder.rename(folder.with_name("away"))
    assert not watched_folders()


@pytest.mark.parametrize(
    ("queues", "is_on", "count"),
    [(["ingest", "default"], True, 1), (["embed"], True, 0), (["default"], False, 0)],
)
def test_workers_of_the_default_queue_watch(
    queues: list[str], is_on: bool, count: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.WATCH_FOLDERS = is_on
    monkeypatch.setattr(FolderWatcher, "start", lambda self: None)
    monkeypatch.setattr(FolderWatcher, "stop", lambda self: None)
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    watching.start_watching(sender=SimpleNamespace(app=SimpleNamespace(amqp=amqp)))
    assert len(watching._watchers) == count
    watching.stop_watching()
    assert not watching._watchers
