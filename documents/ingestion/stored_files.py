"""Files of documents in the storage: stored, deleted, and removed where no document names them."""

import errno
import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import BinaryIO

from django.core.files import File
from django.core.files.storage import Storage
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from common.errors import RagsiteError
from common.leases import database_now
from documents.ingestion.sources import Content
from documents.models import Document
from reading.parsers.registry import is_binary
from reading.parsers.zip_archive import ZIP

_STORAGE_FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageFull(RagsiteError):
    """The upload cannot be stored."""

    code = "storage_full"
    status = 507


def store_file(document: Document, content: BinaryIO) -> str:
    """Store the bytes as the document's file under a random name; returns it. On failure no file
    remains. Raises StorageFull, and OSError for another fault."""
    field = Document._meta.get_field("file")
    wanted = field.generate_filename(document, str(document.pk))
    # Nobody else takes it meanwhile: the row is held.
    name: str = field.storage.get_available_name(wanted, max_length=field.max_length)
    try:
        name = field.storage.save(name, File(content), max_length=field.max_length)
        document.file = name
        document.save(update_fields=["file", "updated_at"])
    except BaseException as error:
        field.storage.delete(name)
        if isinstance(error, OSError) and error.errno in _STORAGE_FULL_ERRORS:
            raise StorageFull(
                gettext(
                    "There is no room left for uploaded files, and nothing of this upload"
                    " was kept. Whoever runs the site must make room where MEDIA_ROOT lies;"
                    " then send it again."
                )
            ) from error
        raise
    return str(document.file.name)


@contextmanager
def storing_transaction() -> Iterator[list[str]]:
    """A transaction, and the names of files stored in it, to be appended: they are deleted if the
    block fails. A commit that fails leaves them, because it may have been carried out all the same;
    `sweep_orphaned_files` removes them if not."""
    stored: list[str] = []
    is_complete = False
    try:
        with transaction.atomic():
            yield stored
            is_complete = True
    except BaseException:
        if not is_complete:
            delete_files(stored)
        raise


def replace_file(document: Document, content: Content | None, stored: list[str]) -> None:
    """Store `content` as the file of the document, or none; what it had before goes after the
    commit. `stored` is that of `storing_transaction`."""
    replaced = str(document.file.name or "")
    if content is not None:
        with content.open() as file:
            stored.append(store_file(document, file))
    elif replaced:
        document.file = ""
        document.save(update_fields=["file", "updated_at"])
    if replaced:
        transaction.on_commit(lambda: delete_files([replaced]))


def has_own_look(media_type: str) -> bool:
    """Whether a file of this type is more than its text: it has pages, a layout or pictures. An
    archive is no more than its files."""
    return is_binary(media_type) and media_type != ZIP


def has_file_of_text(document: Document) -> bool:
    """Whether the stored file is the one that the document's text was read from. Reads it."""
    if not document.file:
        return False
    try:
        with document.file.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == document.source_sha256
    except OSError:
        return False


def delete_files(names: Sequence[str]) -> None:
    """Delete uploaded files; missing ones are no error."""
    for name in names:
        _storage().delete(name)


logger = logging.getLogger(__name__)

#: Where `Document.file` puts them.
DOCUMENTS_FOLDER = "documents"
#: Newer ones may belong to an upload whose transaction has not ended. Ample, because the time of a
#: file is that of the host that wrote it.
ORPHAN_AGE = timedelta(hours=1)


def stored_files(folder: str = DOCUMENTS_FOLDER) -> Iterator[str]:
    """Names of all files below `folder`."""
    try:
        folders, files = _storage().listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in files)
    for name in folders:
        yield from stored_files(f"{folder}/{name}")


def orphaned_files(*, age: timedelta = ORPHAN_AGE) -> list[str]:
    """Files older than `age` that no document refers to."""
    return _find_orphaned(age)[0]


def remove_orphaned_files(*, age: timedelta = ORPHAN_AGE) -> int:
    """Delete orphaned files and return their number."""
    names = orphaned_files(age=age)
    delete_files(names)
    return len(names)


def sweep_orphaned_files() -> int:
    """Delete orphaned files periodically; returns how many. Deletes none if they outnumber the
    documents' files: then the folder probably belongs to another database, or to one being
    restored."""
    names, named = _find_orphaned(ORPHAN_AGE)
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


def _find_orphaned(age: timedelta) -> tuple[list[str], int]:
    """Old files without document, and how many files documents have. The folder is read first, so
    that each file's document exists by then."""
    unnamed = set(stored_files())
    stored = len(unnamed)
    rows = Document.objects.exclude(file="").values_list("file", flat=True)
    unnamed.difference_update(rows.iterator(chunk_size=10_000))
    # This host's clock may be wrong: a file is old only by both clocks.
    limit = min(timezone.now(), database_now()) - age
    old: list[str] = []
    for name in sorted(unnamed):
        with suppress(FileNotFoundError):  # deleted just now
            if _storage().get_modified_time(name) <= limit:
                old.append(name)
    return old, stored - len(unnamed)


def _storage() -> Storage:
    storage: Storage = Document._meta.get_field("file").storage
    return storage
