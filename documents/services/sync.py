"""A collection made to agree with a directory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from common.errors import Conflict, InvalidInput
from documents.ingestion import listeners
from documents.ingestion.comparing import (
    Gone,
    Move,
    Plan,
    changed_sources,
    compare,
    is_gone_still,
    key_prefix,
    sync_source,
)
from documents.ingestion.sources import discover
from documents.models import Collection, Document, IngestionRun
from documents.parsers.metadata import readable_title
from documents.services.deletion import delete_documents
from documents.services.documents import ingest_inline, ingest_sources

#: More deletions than this, of more than half of the documents, are not done unasked.
FEW = 10
DELETED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Sync:
    """What became of the files, each by its path in the directory. `run` is None where nothing was
    to be done but to look; `deleted` are gone from the directory, and from the collection only
    where that was asked for. `failed` could not be read, and the ingestion of `retried` failed
    before; `reasons` tells why, by name, for both."""

    run: IngestionRun | None
    new: tuple[str, ...]
    modified: tuple[str, ...]
    unchanged: tuple[str, ...]
    renamed: tuple[tuple[str, str], ...]
    deleted: tuple[str, ...]
    failed: tuple[str, ...]
    retried: tuple[str, ...]
    reasons: Mapping[str, str]
    deletions_applied: bool


def sync_directory(
    *,
    collection: Collection,
    directory: Path,
    glob: str = "**/*",
    delete: bool = False,
    dry_run: bool = False,
    queue: bool = False,
    allow_empty: bool = False,
    force: bool = False,
    below: Path | None = None,
    user: Any = None,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
) -> Sync:
    """Ingest what is new or modified below `directory`, move what was renamed and, with `delete`,
    remove documents whose files are gone.

    Every file is read once to tell. With `queue` the workers ingest; with `below` links that lead
    out of that directory are not followed. Raises InvalidInput where
    there is no directory, or nothing in it and not `allow_empty`, or too much would be deleted and
    not `force`; Conflict where somebody syncs it just now; InferenceError.
    """
    if not directory.is_dir():
        raise InvalidInput(
            f"{directory} is no directory that can be read. Nothing was changed; is its volume"
            " there?",
            field="directory",
        )
    directory = directory.resolve()
    with _alone(collection, directory):
        plan = compare(collection, directory, glob, discover([directory], glob=glob, below=below))
        _refuse_emptied(plan, directory, allow_empty=allow_empty)
        if delete:
            _refuse_many(plan, force=force)
        if dry_run:
            return _report(plan, directory, run=None, applied=False)
        moved = [move for move in plan.renamed if _move(collection, move)]
        arguments: dict[str, Any] = {
            "collection": collection,
            "sources": changed_sources(directory, glob, _to_ingest(plan, moved), below=below),
            "source": sync_source(directory),
        }
        if queue:
            run = ingest_sources(**arguments, user=user)
        else:
            run = ingest_inline(**arguments, on_progress=on_progress)
        goes_on = run.cancel_requested_at is None
        if delete and goes_on:
            _delete(plan.gone)
        return _report(plan, directory, run=run, applied=delete and goes_on)


@contextmanager
def _alone(collection: Collection, directory: Path) -> Iterator[None]:
    """Nobody else syncs this directory meanwhile; ends with the connection, however that ends.

    The lock is held by a transaction of its own: a session's would stay behind in a pooler, which
    gives each statement any connection.
    """
    key: list[Any] = [f"sync {directory}", collection.pk]
    own = connection.copy()
    try:
        own.set_autocommit(False)
        with own.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))", key)
            if not cursor.fetchone()[0]:
                raise Conflict(
                    f"{directory} is being synced into {collection} by somebody else. Wait for it,"
                    " then run this again."
                )
        yield
    finally:
        own.close()


def _refuse_emptied(plan: Plan, directory: Path, *, allow_empty: bool) -> None:
    if plan.found == 0 and plan.gone and not allow_empty:
        raise InvalidInput(
            f"{directory} holds no file, and documents from there: {len(plan.gone):,}. Nothing was"
            " changed. Is its volume there, and the glob right? If it is meant to be empty, say so:"
            " --allow-empty.",
            field="directory",
        )


def _refuse_many(plan: Plan, *, force: bool) -> None:
    gone, known = len(plan.gone), len(plan.gone) + len(plan.modified) + len(plan.unchanged)
    known += len(plan.renamed) + len(plan.retried)
    if gone > FEW and 2 * gone > known and not force:
        raise InvalidInput(
            f"{gone:,} of {known:,} documents would be deleted, more than half. Nothing was"
            " changed. Look at them with --dry-run; if that is meant, say so: --force.",
            field="delete",
        )


def _to_ingest(plan: Plan, moved: Sequence[Move]) -> set[str]:
    """With what could not be moved, because somebody else changed it meanwhile."""
    return plan.changed_keys | {move.key for move in plan.renamed if move not in moved}


@transaction.atomic
def _move(collection: Collection, move: Move) -> bool:
    """Give a document with all its versions the new key; chunks and vectors stay as they are."""
    rows = Document.objects.select_for_update().filter(collection=collection, key=move.gone.key)
    held = list(rows.order_by("id"))
    is_same = any(
        row.pk == move.gone.id
        and row.status == Document.Status.READY
        and row.source_sha256 == move.gone.source_sha256
        for row in held
    )
    if not is_same or Document.objects.filter(collection=collection, key=move.key).exists():
        return False
    for row in held:
        row.key, before = move.key, row.source
        row.source = move.name[:1024]
        if row.title == readable_title(before):
            row.title = readable_title(move.name)[:500]
        row.updated_at = timezone.now()
    Document.objects.bulk_update(held, ["key", "source", "title", "updated_at"])
    listeners.loaded([row.pk for row in held])
    return True


def _delete(gone: Sequence[Gone]) -> None:
    sure = [entry.id for entry in gone if is_gone_still(entry)]
    for start in range(0, len(sure), DELETED_AT_ONCE):
        batch = sure[start : start + DELETED_AT_ONCE]
        delete_documents(documents=list(Document.objects.filter(pk__in=batch)))


def _report(plan: Plan, directory: Path, *, run: IngestionRun | None, applied: bool) -> Sync:
    prefix = key_prefix(directory)

    def relative(gone: Gone) -> str:
        return gone.key.removeprefix(prefix)

    return Sync(
        run=run,
        new=tuple(plan.new),
        modified=tuple(plan.modified),
        unchanged=tuple(plan.unchanged),
        renamed=tuple((relative(move.gone), move.name) for move in plan.renamed),
        deleted=tuple(map(relative, plan.gone)),
        failed=tuple(plan.failed),
        retried=tuple(plan.retried),
        reasons=plan.reasons,
        deletions_applied=applied,
    )
