"""Stored files against the documents that name them. Reads the whole media folder."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.files.storage import Storage
from django.utils import timezone

from documents.models import Document
from documents.validation.base import EXAMPLES, Check, Finding, Scope

#: Where `Document.file` puts them.
FOLDER = "documents"


def _storage() -> Storage:
    storage: Storage = Document._meta.get_field("file").storage
    return storage


def _stored(storage: Storage, folder: str = FOLDER) -> Iterator[str]:
    """The names of all files below `folder`."""
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" for name in files)
    for name in folders:
        yield from _stored(storage, f"{folder}/{name}")


def _named() -> set[str]:
    rows = Document.objects.exclude(file="").values_list("file", flat=True)
    return set(rows.iterator(chunk_size=10_000))


def _unknown() -> list[str]:
    """Files that no document names and that are older than a lease: newer ones may belong to an
    upload whose transaction has not ended. The folder is read first, so that each file's document
    is there by then."""
    storage = _storage()
    stored = list(_stored(storage))
    known = _named()
    return [name for name in stored if name not in known and _is_old(storage, name)]


def _is_old(storage: Storage, name: str) -> bool:
    try:
        changed = storage.get_modified_time(name)
    except FileNotFoundError:
        return False  # deleted just now
    return changed < _a_lease_ago()


def _a_lease_ago() -> datetime:
    return timezone.now() - timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def _without_file(scope: Scope) -> list[int]:
    storage = _storage()
    documents = Document.objects.exclude(file="")
    if scope.collection_id is not None:
        documents = documents.filter(collection=scope.collection_id)
    stored = set(_stored(storage))
    rows = documents.order_by("id").values_list("id", "file").iterator(chunk_size=10_000)
    suspects = {pk: name for pk, name in rows if name not in stored}
    # Replaced or brought while the folder was read.
    return [
        pk
        for pk, name in suspects.items()
        if not storage.exists(name) and documents.filter(pk=pk, file=name).exists()
    ]


def _remove(scope: Scope) -> int:
    names = _unknown()
    for name in names:
        _storage().delete(name)
    return len(names)


@dataclass(frozen=True, slots=True)
class _Files:
    checks: tuple[Check, ...] = (
        Check(
            "file_missing",
            "documents",
            "have a stored file that is not there; their text is",
            "Restore the media folder from its backup, or upload them again.",
        ),
        Check(
            "file_unknown",
            "stored files",
            "belong to no document",
            "`validate --fix` removes them.",
            _remove,
        ),
    )

    def findings(self, scope: Scope) -> Iterable[Finding]:
        missing, unknown = self.checks
        if ids := _without_file(scope):
            yield Finding(missing, len(ids), tuple(ids[:EXAMPLES]))
        # A file does not say of which collection it is.
        if scope.collection_id is None and (names := _unknown()):
            yield Finding(unknown, len(names), tuple(names[:EXAMPLES]))


PROBES = (_Files(),)
