"""The documents of the demo, left to the workers: begin with `queue_demo`."""

from collections.abc import Iterable, Iterator
from itertools import chain

from accounts.models import Workspace
from documents.demo_corpus import (
    DOCS_COLLECTION,
    FIRM_COLLECTION,
    LANGUAGES,
    docs_sources,
    firm_pages,
    firm_sources,
)
from documents.ingestion.containers import with_parts
from documents.ingestion.jobs import UNFINISHED_STATUSES
from documents.ingestion.preparation import recipe_for
from documents.ingestion.registration import read_if_changed
from documents.ingestion.sources import Entry, Source
from documents.ingestion.versions import documents_to_compare
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services.collections import get_or_create_collection
from documents.services.documents import ingest_sources

#: Documents a message carries: fewer than usual, so that some are searchable after seconds.
_BATCH = 4


def queue_demo(*, workspace: Workspace) -> int:
    """Queue documents of the demo that are new or changed, and again those that wait since an
    earlier start; returns how many the workers have to read."""
    from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

    count = 0
    for slug, sources, described in (
        (FIRM_COLLECTION, chain(firm_sources(), firm_pages()), "the documents of an invented firm"),
        (DOCS_COLLECTION, docs_sources(), "the project's own documentation"),
    ):
        collection = get_or_create_collection(workspace=workspace, slug=slug, languages=LANGUAGES)
        unread = Document.objects.filter(collection=collection, status__in=UNFINISHED_STATUSES)
        # Their messages may be lost. A second message for a document has no effect.
        enqueue(list(unread.order_by("pk").values_list("pk", flat=True)), batch=_BATCH)
        if entries := list(_entries_to_read(collection, sources)):
            ingest_sources(collection=collection, sources=entries, source=described, batch=_BATCH)
        count += unread.count()
    return count


def _entries_to_read(collection: Collection, sources: Iterable[Entry]) -> Iterator[Entry]:
    """Those that are neither read nor queued: each start would leave a run without them."""
    entries = list(with_parts(sources))
    keys = [entry.key for entry in entries if isinstance(entry, Source)]
    known = documents_to_compare(collection, keys)
    run, recipe = IngestionRun(collection=collection), recipe_for(collection)
    for entry in entries:
        document = known.get(entry.key) if isinstance(entry, Source) else None
        if document is not None and document.status in UNFINISHED_STATUSES:
            continue
        found = read_if_changed(run, entry, known, recipe)
        if not isinstance(found, IngestionItem) or found.state == IngestionItem.State.FAILED:
            yield entry
