"""Parts of mails and archives that are too many for the request that uploads them: a worker takes
them out of the stored file, for a while at a time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import monotonic
from uuid import UUID

from common.leases import retry_on_deadlock
from documents.ingestion import jobs
from documents.ingestion.containers import UNPACK_LATER, with_parts
from documents.ingestion.sources import Entry, Source
from documents.ingestion.stored_files import storing_transaction
from documents.models import Document, IngestionRun
from documents.services.documents import PartWatch, queue_source

#: Parts that are registered in one transaction.
BATCH_PARTS = 50
#: After that other messages go before.
SLICE_SECONDS = 15.0


def take_out_parts(document_id: int) -> bool | None:
    """Register and queue parts of a container that is marked as UNPACK_LATER, on its run: all, or
    those of SLICE_SECONDS. True if none is left; None if it is not this process's to do.

    Parts that the run has items for are passed over, so it may be stopped at any line.
    """
    token, claimed = jobs.claim([document_id])
    for document in claimed:
        if UNPACK_LATER in document.declared:
            with jobs.lease_renewal(token):
                if jobs.fail_after_max_attempts(document, token):
                    jobs.finish_runs([document_id])
                    return None
                return _take_out(document, token)
    jobs.release_claim(token)
    return None


def _take_out(document: Document, token: UUID) -> bool | None:
    run = IngestionRun.objects.filter(pk__in=jobs.open_runs([document.pk])).order_by("pk").last()
    is_done = True
    if run is not None:
        try:
            is_done = _register_parts(document, run)
        except jobs.RunCancelled:
            return None
    if is_done:
        declared = {name: each for name, each in document.declared.items() if name != UNPACK_LATER}
        Document.objects.filter(pk=document.pk, claimed_by=token).update(declared=declared)
    return is_done if jobs.put_back(document.pk, token=token) else None


def _register_parts(document: Document, run: IngestionRun) -> bool:
    """Whether all parts are registered. Raises RunCancelled."""
    deadline = monotonic() + SLICE_SECONDS
    watch = PartWatch(run.collection, run.user)
    parts = watch.entries(_parts(document))
    try:
        while batch := list(islice(parts, BATCH_PARTS)):
            names = [entry.name[:1024] for entry in batch]
            known = set(run.items.filter(name__in=names).values_list("name", flat=True))
            new = [entry for entry in batch if entry.name[:1024] not in known]
            retry_on_deadlock(partial(_register_batch, new, run))
            if new and monotonic() > deadline:
                return False
    finally:
        watch.remove_dropped()
    return True


def _register_batch(parts: Sequence[Entry], run: IngestionRun) -> None:
    from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

    with storing_transaction() as stored:
        queued = [queue_source(part, run, stored) for part in parts]
        enqueue([document_id for document_id in queued if document_id is not None])
        jobs.lock_open_run(run.pk)


def _parts(document: Document) -> Iterator[Entry]:
    """What comes out of the stored file, without the container itself."""
    declared = {
        name: each
        for name, each in document.declared.items()
        if name not in {"parts", UNPACK_LATER}
    }
    source = Source(
        key=document.key,
        name=document.source or document.key,
        size=document.size,
        read=lambda: _content(document),
        declared=declared,
        path=_path(document),
        access=None if document.access is None else tuple(document.access),
    )
    entries: Iterable[Entry] = with_parts([source])
    return (entry for entry in entries if not (isinstance(entry, Source) and not entry.part_of))


def _content(document: Document) -> bytes:
    with document.file.open("rb") as file:
        return bytes(file.read())


def _path(document: Document) -> Path | None:
    """None where the storage is no file system of ours."""
    try:
        return Path(document.file.path)
    except NotImplementedError:
        return None
