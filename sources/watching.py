"""Folders of the server that are watched, so that a change is read within seconds. Begin with
`FolderWatcher`.

Every worker of the default queue watches all folders of sources with a schedule; `request_run`
makes one run of what several of them tell. What watching misses, such as a change on another
machine of a shared volume, is found by the schedule.
"""

import logging
import time
from collections import defaultdict
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from celery.signals import worker_ready, worker_shutting_down
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from common.errors import Conflict
from sources.connectors.folder import Folder
from sources.models import DataSource, DataSourceRun
from sources.services import request_run

logger = logging.getLogger(__name__)

#: A change is told when nothing has changed for so long, or after the longest wait: a file that is
#: being written is read once it is whole.
QUIET_MS = 1_000
LONGEST_WAIT_MS = 60_000
#: How often the folders to watch are looked up.
REFRESH_SECONDS = 30.0

#: By path: the device and inode that were watched, and the sources.
Folders = dict[str, tuple[tuple[int, int], tuple[int, ...]]]


class FolderWatcher:
    """Watches the folders of sources in a thread, until `stop`."""

    def __init__(self, *, refresh_seconds: float = REFRESH_SECONDS) -> None:
        self._refresh_seconds = refresh_seconds
        self._over = Event()
        self._thread = Thread(target=self._run, name="folder-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._watch(watched_folders())
            except DatabaseError as error:
                logger.warning("folders are not watched for now: %s", error)
                self._over.wait(self._refresh_seconds)
            finally:
                connection.close()

    def _watch(self, folders: Folders) -> None:
        """Until other folders are to be watched."""
        if not folders:
            self._over.wait(self._refresh_seconds)
            return
        from watchfiles import watch  # noqa: PLC0415 (where there is something to watch)

        refresh_at = time.monotonic() + self._refresh_seconds
        try:
            for changes in watch(
                *folders,
                watch_filter=None,
                debounce=LONGEST_WAIT_MS,
                step=QUIET_MS,
                stop_event=self._over,
                rust_timeout=round(self._refresh_seconds * 1000),
                yield_on_timeout=True,
                raise_interrupt=False,
                ignore_permission_denied=True,
            ):
                _tell([Path(path) for _, path in changes], folders)
                if time.monotonic() >= refresh_at:
                    if watched_folders() != folders:
                        return
                    refresh_at = time.monotonic() + self._refresh_seconds
                connection.close()
        except OSError as error:
            # Such as more folders than the kernel watches: the schedule reads them.
            logger.warning(
                "folders of sources are read by their schedules only: %s. Raise"
                " fs.inotify.max_user_watches, or set RAGSITE_WATCH_FOLDERS=false.",
                error,
            )
            self._over.wait(max(self._refresh_seconds, 600.0))


def watched_folders() -> Folders:
    """The folders that are there, of sources that are read by themselves."""
    sources = defaultdict(list)
    rows = DataSource.objects.filter(connector=Folder.kind).exclude(schedule="")
    for pk, options in rows.exclude(state=DataSource.State.DEAD).values_list("pk", "options"):
        sources[str(options.get("path", ""))].append(pk)
    folders: Folders = {}
    for path, ids in sorted(sources.items()):
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            continue
        if path and Path(path).is_dir():
            folders[path] = (found.st_dev, found.st_ino), tuple(sorted(ids))
    return folders


def _tell(paths: list[Path], folders: Folders) -> None:
    """Have the sources read in whose folder one of the paths is; hidden ones are not read."""
    changed_at = timezone.now() - timedelta(milliseconds=QUIET_MS)
    for folder, (_, ids) in folders.items():
        inside = [path.relative_to(folder) for path in paths if path.is_relative_to(folder)]
        if all(any(part.startswith(".") for part in path.parts) for path in inside):
            continue
        for source_id in ids:
            try:
                request_run(
                    source_id=source_id, cause=DataSourceRun.Cause.CHANGE, changed_at=changed_at
                )
            except Conflict as error:
                logger.info("%s", error)


_watchers: list[FolderWatcher] = []


@worker_ready.connect
def start_watching(sender: Any = None, **kwargs: Any) -> None:
    """Watch in workers of the default queue, not beside the models of the embedding worker."""
    queues = sender.app.amqp.queues.consume_from if sender is not None else {}
    if settings.WATCH_FOLDERS and settings.CELERY_TASK_DEFAULT_QUEUE in queues:
        watcher = FolderWatcher()
        _watchers.append(watcher)
        watcher.start()


@worker_shutting_down.connect
def stop_watching(**kwargs: Any) -> None:
    while _watchers:
        _watchers.pop().stop()
