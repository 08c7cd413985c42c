"""What is there, against what must be."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from django.db.models import Q

from documents.ingestion.concurrency import Stopwatch
from documents.ingestion.preparation import prepare_for
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    StagedDocument,
)
from documents.services import document_text
from documents.validation import validate
from graph.models import Edge, Extraction, Node
from memory.models import Context, Fact
from search.query_options import site_scope
from search.services import search
from tests.schedules.expected import Expected, name

#: Why a file of a run may end otherwise than ready: something else was asked for meanwhile.
EXPLAINED = {"replaced", "deleted"}


def is_settled(collection: Collection) -> bool:
    """Whether nobody has anything left to do."""
    workspace = collection.workspace_id
    is_open = (
        IngestionRun.objects.filter(collection=collection, finished_at=None),
        Document.objects.filter(collection=collection, status__in=["queued", "processing"]),
        StagedDocument.objects.filter(workspace=workspace),
        Extraction.objects.filter(collection=collection, state__in=["waiting", "running"]),
        Context.objects.filter(workspace=workspace, embedding=None),
        Fact.objects.filter(workspace=workspace, embedding=None, valid_to=None),
    )
    return not any(rows.exists() for rows in is_open)


def what_waits(collection: Collection) -> str:
    """For a site that does not come to rest."""
    rows = [
        *IngestionRun.objects.filter(collection=collection, finished_at=None).values(),
        *Document.objects.filter(collection=collection, status__in=["queued", "processing"]).values(
            "id", "key", "status", "attempts", "claimed_by", "claimed_until", "updated_at", "error"
        ),
        *IngestionItem.objects.filter(
            run__collection=collection, state__in=IngestionItem.ACTIVE
        ).values("id", "run", "document", "name", "state"),
        *Extraction.objects.filter(
            collection=collection, state__in=["waiting", "running"]
        ).values(),
    ]
    return "\n".join(map(str, rows))


def differences(collection: Collection, expected: Expected) -> list[str]:
    """What is not as it must be, in words."""
    return [
        *_documents(collection, expected),
        *_runs(collection),
        *_memory(collection, expected),
        *_graph(collection, expected),
        *_orphans(collection),
        *(str(finding) for finding in validate(collection_id=collection.pk).findings),
    ]


def _documents(collection: Collection, expected: Expected) -> Iterator[str]:
    for key, possible in expected.texts.items():
        rows = list(Document.objects.filter(collection=collection, key=name(key)).current())
        if len(rows) > 1:
            yield f"{name(key)} is there {len(rows)} times"
        text = document_text(rows[0]).text if rows else None
        if text not in possible:
            known = [None if one is None else one[:60] for one in possible]
            yield f"{name(key)} is {text and text[:60]!r}, and must be one of {known}"
        if rows and text is not None:
            yield from _passages(collection, rows[0], text)


def _passages(collection: Collection, document: Document, text: str) -> Iterator[str]:
    """Each once, and found by its words."""
    there = Counter(Chunk.objects.filter(document=document).values_list("text", flat=True))
    wanted = Counter(_cut(collection.pk, text))
    if there != wanted:
        yield f"{document.key}: {there - wanted} too much, {wanted - there} lost"
    word = next(word for word in text.split() if word.startswith("mark"))
    hits = search(word, scope=site_scope(workspace=collection.workspace), k=50, mode="lexical").hits
    found = [hit for hit in hits if word in hit.text]
    if len(found) != 1:
        yield f"{word} of {document.key} is found {len(found)} times"
    if document.status != "ready":
        yield f"{document.key} is {document.status}: {document.error}"


@cache
def _cut(collection_id: int, text: str) -> tuple[str, ...]:
    prepared = prepare_for(
        Collection.objects.select_related("space").get(pk=collection_id),
        text.encode(),
        name="note.txt",
        declared={},
        watch=Stopwatch(),
    )
    return tuple(chunk.text for chunk in prepared.chunks)


def _runs(collection: Collection) -> Iterator[str]:
    """People see what became of each file."""
    for run in IngestionRun.objects.filter(collection=collection):
        told = run.ready + run.skipped + run.failed + run.cancelled
        if run.total != told:
            yield f"run {run.pk} tells what became of {told} files of {run.total}"
    failed = IngestionItem.objects.filter(run__collection=collection, state="failed")
    for item in failed.exclude(error_code__in=EXPLAINED):
        yield f"{item.name} of run {item.run_id} failed: {item.error_code} {item.error}"


def _memory(collection: Collection, expected: Expected) -> Iterator[str]:
    contexts = Context.objects.filter(workspace=collection.workspace)
    said = Counter(contexts.values_list("user_message", flat=True))
    if said != Counter(expected.remembered):
        yield f"remembered is {said}, and must be {expected.remembered}"
    current = Fact.objects.filter(workspace=collection.workspace, valid_to=None)
    facts = sorted(current.values_list("key", "value"))
    if facts != sorted(expected.facts.items()):
        yield f"facts are {facts}, and must be {expected.facts}"


def _graph(collection: Collection, expected: Expected) -> Iterator[str]:
    given = Node.objects.filter(workspace=collection.workspace, origin="given")
    nodes = dict(given.values_list("key", "name"))
    if nodes != expected.nodes:
        yield f"nodes are {nodes}, and must be {expected.nodes}"
    edges = Edge.objects.filter(workspace=collection.workspace, origin="given")
    ends = sorted(edges.values_list("source__key", "target__key"))
    if ends != sorted(expected.edges):
        yield f"edges are {ends}, and must be {expected.edges}"


def _orphans(collection: Collection) -> Iterator[str]:
    """Passages of no document, and vectors that are missing."""
    chunks = Chunk.objects.filter(collection=collection)
    if count := chunks.filter(Q(document=None) | Q(embedding=None)).count():
        yield f"{count} passages without a document or a vector"
    if count := chunks.exclude(document__collection=collection).count():
        yield f"{count} passages of another collection's documents"
