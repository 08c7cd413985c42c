"""Stored files that no document names: of an upload that died before its transaction ended, or of
a document that went when the process, or its connection, died before it removed the file."""

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.core.files.storage import Storage
from django.utils import timezone

from common.clock import database_now
from documents.ingestion.media import delete_files
from documents.models import Document

logger = logging.getLogger(__name__)

#: Where `Document.file` puts them.
FOLDER = "documents"
#: Newer ones may belong to an upload whose transaction has not ended. Ample, because the time of a
#: file is that of the host that wrote it.
AGE = timedelta(hours=1)


def stored_files(folder: str = FOLDER) -> Iterator[str]:
    """The names of all files below `folder`."""
    try:
        folders, files = _storage().listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in files)
    for name in folders:
        yield from stored_files(f"{folder}/{name}")


def unnamed_files(*, age: timedelta = AGE) -> list[str]:
    """Those that no document names and that are older than `age`."""
    return _look(age)[0]


def remove_unnamed(*, age: timedelta = AGE) -> int:
    """Remove them; how many."""
    names = unnamed_files(age=age)
    delete_files(names)
    return len(names)


def sweep() -> int:
    """Remove them without being asked; how many. None where they are more than the documents have:
    then the folder is rather that of another database, or of one that is being restored."""
    names, named = _look(AGE)
    if len(names) > named:
        logger.warning(
            "%d stored files belong to no document, and %d to one: is MEDIA_ROOT the folder of this"
            " database? None was removed. If it is: `manage.py validate --fix`",
            len(names),
            named,
        )
        return 0
    delete_files(names)
    if names:
        logger.info("removed %d stored files that belonged to no document", len(names))
    return len(names)


def _look(age: timedelta) -> tuple[list[str], int]:
    """The old ones that no document names, and how many files documents have. The folder is read
    first, so that each file's document is there by then."""
    unnamed = set(stored_files())
    stored = len(unnamed)
    rows = Document.objects.exclude(file="").values_list("file", flat=True)
    unnamed.difference_update(rows.iterator(chunk_size=10_000))
    # This host's clock may be wrong, or have been set: nothing is old that is new by the other.
    limit = min(timezone.now(), database_now()) - age
    changed = {name: _modified(name) for name in sorted(unnamed)}
    old = [name for name, at in changed.items() if at is not None and at <= limit]
    return old, stored - len(unnamed)


def _modified(name: str) -> datetime | None:
    try:
        changed: datetime = _storage().get_modified_time(name)
    except FileNotFoundError:
        return None  # deleted just now
    return changed


def _storage() -> Storage:
    storage: Storage = Document._meta.get_field("file").storage
    return storage
