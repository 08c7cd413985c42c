"""Extraction worker: claims documents, extracts mentions and relations, writes them to the graph.

Begin with `extract`. Rows are locked in one order: queue, passages, nodes, edges, runs
(docs/decisions/0030).
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

from django.db import connection, transaction

from common.errors import RagsiteError
from common.leases import DEADLOCK_TRIES, retry_on_deadlock
from common.queues import Failure
from common.sql import copy_rows
from documents.models import Chunk, Collection, Document
from graph.extraction import extractors, queue
from graph.extraction.elements import (
    RelationEvidence,
    VanishedNode,
    edge_ends,
    find_edges,
    is_code,
    node_label,
    resolve_mentions,
    write_relations,
)
from graph.extraction.mentions import (
    KINDS,
    Extraction,
    Mention,
    Source,
    SourcePassage,
    merge_mentions,
)
from graph.extraction.queue import QUEUE, Claim, DueDocument
from graph.models import Evidence
from graph.models import Extraction as Row
from graph.models import Mention as MentionRow
from graph.removal import MentionedRows, mentioned_by, remove_orphans
from inference.chat_models import chosen_models
from inference.remote.retry import is_outage


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document to extract from, with the ids of its chunks in order."""

    document_id: int
    source: Source
    chunk_ids: Sequence[int]


def load_documents(document_ids: Sequence[int]) -> list[StoredDocument]:
    """These documents with their passages; deleted ones are left out."""
    passages: dict[int, list[tuple[int, SourcePassage]]] = defaultdict(list)
    chunks = Chunk.objects.filter(document_id__in=document_ids).order_by("document_id", "ordinal")
    for document_id, pk, text, path in chunks.values_list(
        "document_id", "pk", "text", "heading_path"
    ).iterator():
        passages[document_id].append((pk, SourcePassage(text, tuple(path))))
    documents = Document.objects.filter(pk__in=document_ids).only(
        "key", "title", "url", "media_type", "language", "metadata"
    )
    stored = []
    for document in documents.order_by("pk"):
        source = Source(
            key=document.key,
            title=document.title,
            passages=[passage for _, passage in passages[document.pk]],
            url=document.url,
            media_type=document.media_type,
            language=document.language,
            metadata=document.metadata,
        )
        stored.append(StoredDocument(document.pk, source, [pk for pk, _ in passages[document.pk]]))
    return stored


_MENTION_COLUMNS = (
    ("workspace_id", "int8"),
    ("chunk_id", "int8"),
    ("node_id", "int8"),
    ("kind", "int2"),
    ("count", "int4"),
    ("start", "int4"),
    ("end", "int4"),
)
_LOCK_EDGES_SQL = "SELECT id FROM graph_edge WHERE id = ANY(%s) ORDER BY id FOR "
_LOCK_NODES_SQL = "SELECT id FROM graph_node WHERE id = ANY(%s) ORDER BY id FOR "


@dataclass(frozen=True, slots=True)
class DocumentReading:
    """Extraction result of a document with its recipe. `note` describes failures."""

    stored: StoredDocument
    extraction: Extraction
    recipe: str
    note: str = ""

    @property
    def document_id(self) -> int:
        return self.stored.document_id


@dataclass(frozen=True, slots=True)
class _WritePlan:
    """Rows to write. `before` are rows that the passages mentioned so far, which may
    become orphans.
    """

    mentions: Mapping[tuple[int, int], Mention]
    statements: Sequence[RelationEvidence]
    before: MentionedRows

    @property
    def nodes(self) -> set[int]:
        return {node for _, node in self.mentions}


def record_readings(claim: Claim, readings: Sequence[DocumentReading]) -> list[int]:
    """Replaces the documents' earlier mentions and relations; returns the ids recorded.

    Documents that the claim no longer holds are skipped: another worker has them, or they were
    reloaded.
    """
    for _ in range(DEADLOCK_TRIES - 1):
        try:
            return retry_on_deadlock(partial(_record_batch, claim, readings))
        except VanishedNode:
            continue
    return retry_on_deadlock(partial(_record_batch, claim, readings))


@transaction.atomic
def _record_batch(claim: Claim, readings: Sequence[DocumentReading]) -> list[int]:
    # Removal of passages locks these rows first, so it cannot run concurrently. Documents are not
    # locked: loading skips locked ones.
    held = queue.claimed_rows(claim).select_for_update().order_by("pk")
    rows = {row.document_id: row for row in held}
    mine = _unchanged([reading for reading in readings if reading.document_id in rows])
    if mine:
        plan = _make_plan(claim, mine)
        # Locks all affected nodes and edges in order of ids. If some may be deleted, all are locked
        # FOR UPDATE at once: upgrading locks would deadlock. Raises VanishedNode.
        found = find_edges(claim.workspace_id, (said.triple for said in plan.statements))
        edges = {*found.values(), *plan.before.edges}
        nodes = {*plan.nodes, *plan.before.nodes}
        strength = "UPDATE" if plan.before.nodes else "KEY SHARE"
        with connection.cursor() as cursor:
            cursor.execute(_LOCK_NODES_SQL + strength, [sorted(nodes)])
            if not plan.nodes <= {pk for (pk,) in cursor.fetchall()}:
                raise VanishedNode
            cursor.execute(_LOCK_EDGES_SQL + strength, [sorted(edges)])
        upgraded = [each for each in mine if rows[each.document_id].recipe not in ("", each.recipe)]
        if upgraded:
            _relabel_nodes(upgraded, plan)
        if plan.before.nodes:
            chunk_ids = [pk for reading in mine for pk in reading.stored.chunk_ids]
            Evidence.objects.filter(chunk__in=chunk_ids)._raw_delete("default")
            MentionRow.objects.filter(chunk__in=chunk_ids)._raw_delete("default")
        mention_rows = (
            (
                *(claim.workspace_id, chunk_id, node_id, KINDS.index(mention.kind)),
                *(mention.count, mention.start, mention.end),
            )
            for (chunk_id, node_id), mention in plan.mentions.items()
        )
        copy_rows("graph_mention", _MENTION_COLUMNS, mention_rows)
        write_relations(claim.workspace_id, plan.statements)
        gone = {*plan.before.nodes} - plan.nodes
        remove_orphans(MentionedRows(gone, plan.before.edges))
        _finish_documents(mine, rows, plan)
    return [reading.document_id for reading in mine]


# What an earlier version of the rules took for something else; not what people described.
_RELABEL_NODES_SQL = """
    UPDATE graph_node AS node SET labels = ARRAY[new.label], name = new.name
    FROM jsonb_to_recordset(%s::jsonb) AS new (id bigint, name text, label text)
    WHERE node.id = new.id AND node.origin = 'extracted'
      AND node.labels <> ARRAY[new.label]::varchar[]
      AND node.labels <@ ARRAY['code', 'date', 'email', 'name', 'ref', 'table']::varchar[]
"""


def _relabel_nodes(readings: Sequence[DocumentReading], plan: _WritePlan) -> None:
    """Corrects the labels of nodes that these readings take for something else than an earlier
    version of the rules did.
    """
    chunk_ids = {pk for reading in readings for pk in reading.stored.chunk_ids}
    first: dict[int, Mention] = {}
    now = ((node, each) for (chunk, node), each in plan.mentions.items() if chunk in chunk_ids)
    for node, each in sorted(now, key=lambda pair: is_code(pair[1])):
        first.setdefault(node, each)
    labelled = [
        {"id": node, "name": each.name, "label": node_label(each)} for node, each in first.items()
    ]
    with connection.cursor() as cursor:
        cursor.execute(_RELABEL_NODES_SQL, [json.dumps(labelled)])


def _unchanged(readings: Sequence[DocumentReading]) -> list[DocumentReading]:
    """Readings of documents whose passages have not changed since."""
    ids = [reading.document_id for reading in readings]
    there: dict[int, set[int]] = {}
    for document_id, pk in Chunk.objects.filter(document__in=ids).values_list("document_id", "pk"):
        there.setdefault(document_id, set()).add(pk)
    return [
        reading
        for reading in readings
        if there.get(reading.document_id, set()) == {*reading.stored.chunk_ids}
    ]


def _make_plan(claim: Claim, readings: Sequence[DocumentReading]) -> _WritePlan:
    nodes, unused = resolve_mentions(
        claim.workspace_id,
        (mention for reading in readings for mention in reading.extraction.mentions),
    )
    mentions: dict[tuple[int, int], Mention] = {}
    statements: list[RelationEvidence] = []
    for reading in readings:
        # By (chunk, node): two names of one node may occur in one passage.
        for mention in reading.extraction.mentions:
            key = reading.stored.chunk_ids[mention.passage], nodes[mention.form]
            same = mentions.get(key)
            mentions[key] = merge_mentions(same, mention) if same else mention
        for relation in reading.extraction.relations:
            chunk_id = reading.stored.chunk_ids[relation.passage]
            source, target = nodes[relation.source], nodes[relation.target]
            if source != target:
                triple = source, relation.rel, target
                statements.append(RelationEvidence(chunk_id, triple, relation.start, relation.end))
    chunk_ids = [pk for reading in readings for pk in reading.stored.chunk_ids]
    old = mentioned_by(Chunk.objects.filter(pk__in=chunk_ids))
    before = MentionedRows({*old.nodes, *edge_ends(old.edges), *unused}, old.edges)
    return _WritePlan(mentions, statements, before)


_FINISH_SQL = """
    UPDATE graph_extraction
    SET mentions = %s, relations = %s, recipe = %s, error = %s, state = 'done',
        extracted_at = now(), token = NULL, leased_until = NULL, due_at = NULL, attempts = 0,
        outages = 0
    WHERE id = %s
"""
_COUNT_RUN_SQL = """
    UPDATE documents_ingestionrun SET mentions = mentions + %s, relations = relations + %s
    WHERE id = %s
"""


def _finish_documents(
    readings: Sequence[DocumentReading], rows: Mapping[int, Row], plan: _WritePlan
) -> None:
    """Updates the queue rows, and adds the difference to the ingestion runs."""
    document_of = {pk: each.document_id for each in readings for pk in each.stored.chunk_ids}
    mentions = Counter(document_of[chunk_id] for chunk_id, _ in plan.mentions)
    said = {(statement.chunk_id, statement.triple) for statement in plan.statements}
    relations = Counter(document_of[chunk_id] for chunk_id, _ in said)
    done: list[tuple[Any, ...]] = []
    more: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for reading in readings:
        row = rows[reading.document_id]
        found = mentions[row.document_id], relations[row.document_id]
        done.append((*found, reading.recipe, reading.note, row.pk))
        if row.run_id is not None:
            more[row.run_id][0] += found[0] - row.mentions
            more[row.run_id][1] += found[1] - row.relations
    with connection.cursor() as cursor:
        cursor.executemany(_FINISH_SQL, done)
        cursor.executemany(
            _COUNT_RUN_SQL, [(*more[run], run) for run in sorted(more) if any(more[run])]
        )


logger = logging.getLogger(__name__)

#: Most passages and documents per batch.
MAX_BATCH_CHUNKS = 1_000
MAX_BATCH_DOCUMENTS = 200
#: Attempts to claim a document.
CLAIM_TRIES = 5


@dataclass(slots=True)
class Outcome:
    """Documents claimed and extracted; those left for the chat model; when failed ones
    are retried.
    """

    taken: int = 0
    read: int = 0
    for_model: list[int] = field(default_factory=list)
    again: dict[int, datetime] = field(default_factory=dict)


def extract(document_ids: Sequence[int]) -> Outcome:
    """Extracts those of the documents that are due, by rules.

    Failures are recorded on the rows; none is raised, and none stops the others.
    """
    due = queue.due_documents(document_ids)
    outcome = Outcome(for_model=[each.document_id for each in due if _needs_model(each)])
    for batch in batches([each for each in due if not _needs_model(each)]):
        if claim := queue.claim(batch):
            outcome.taken += len(claim.document_ids)
            with QUEUE.renew_lease(queue.claimed_rows(claim)):
                _extract_claim(claim, outcome)
    return outcome


def extract_with_model(document_id: int) -> Outcome:
    """Extracts this document by the chat model of its workspace, unless that is paused."""
    outcome = Outcome()
    due = [each for each in queue.due_documents([document_id]) if _needs_model(each)]
    if not due or QUEUE.is_paused(chosen_models().get(due[0].workspace_id)):
        return outcome
    if claim := queue.claim(due):
        outcome.taken = 1
        with QUEUE.renew_lease(queue.claimed_rows(claim)):
            extract_claim_with_model(claim, outcome)
    return outcome


def extract_next() -> Outcome:
    """Extracts the next document by the chat model, if it has capacity."""
    for _ in range(CLAIM_TRIES):
        document_id = queue.next_for_model()
        if document_id is None:
            break
        outcome = extract_with_model(document_id)
        if outcome.taken:  # else somebody else was quicker
            return outcome
    return Outcome()


def _needs_model(due: DueDocument) -> bool:
    return due.mode == Collection.Graph.LLM


def batches(due: Sequence[DueDocument]) -> Iterator[list[DueDocument]]:
    """Batches of one collection and bounded size. Documents with failed attempts are alone, so
    that one that kills its worker takes no others with it.
    """
    yield from ([each] for each in due if each.tries)
    fresh = [each for each in due if not each.tries]
    fresh.sort(key=lambda each: (each.collection_id, each.document_id))
    for _, documents in groupby(fresh, key=lambda each: each.collection_id):
        batch: list[DueDocument] = []
        chunks = 0
        for each in documents:
            if batch and (
                chunks + each.chunks > MAX_BATCH_CHUNKS or len(batch) >= MAX_BATCH_DOCUMENTS
            ):
                yield batch
                batch, chunks = [], 0
            batch.append(each)
            chunks += each.chunks
        if batch:
            yield batch


def _extract_claim(claim: Claim, outcome: Outcome) -> None:
    recipe = extractors.recipe_of(claim.mode, workspace_id=claim.workspace_id)
    readings = []
    for stored in load_documents(claim.document_ids):
        try:
            readings.append(
                DocumentReading(stored, extractors.read_by_rules(stored.source), recipe)
            )
        except Exception as error:
            _record_failure(claim, stored.document_id, error, outcome)
    if len(readings) > 1:
        try:
            outcome.read += len(record_readings(claim, readings))
        except Exception as error:  # one of them cannot be stored: the others can
            logger.warning("documents are recorded one by one: %s", type(error).__name__)
        else:
            return
    for reading in readings:
        _record_alone(claim, reading, outcome)


def _record_alone(claim: Claim, reading: DocumentReading, outcome: Outcome) -> None:
    try:
        outcome.read += len(record_readings(claim, [reading]))
    except Exception as error:
        _record_failure(claim, reading.document_id, error, outcome)


def extract_claim_with_model(claim: Claim, outcome: Outcome) -> None:
    """Extracts the claimed documents by the chat model of their workspace."""
    model_id = chosen_models().get(claim.workspace_id)
    for stored in load_documents(claim.document_ids):
        try:
            extraction, note = extractors.read_by_model(
                stored.source,
                workspace_id=claim.workspace_id,
                goes_on=queue.claimed_rows(claim).exists,
            )
            QUEUE.record_answer(model_id)
            recipe = extractors.recipe_of(claim.mode, workspace_id=claim.workspace_id)
            _record_alone(claim, DocumentReading(stored, extraction, recipe, note), outcome)
        except Exception as error:
            _record_failure(claim, stored.document_id, error, outcome)


def _record_failure(claim: Claim, document_id: int, error: Exception, outcome: Outcome) -> None:
    """Records a failure. The log contains no text of the document."""
    failure = Failure.OWN
    wait = error.retry_after if isinstance(error, RagsiteError) else None
    if is_outage(error):
        failure = Failure.OUTAGE
    elif isinstance(error, RagsiteError):
        failure = Failure.FINAL  # errors of the site itself are permanent, but for limits
    model_id = chosen_models().get(claim.workspace_id)
    if failure is Failure.OUTAGE:
        QUEUE.record_outage(model_id)
    elif claim.mode == Collection.Graph.LLM and wait is None:
        QUEUE.record_answer(model_id)
    logger.warning("document %d could not be read: %s", document_id, type(error).__name__)
    claimed = queue.claimed_rows(claim).filter(document_id=document_id)
    reason = str(error) or type(error).__name__
    when = QUEUE.retry_later(claimed, reason, failure=failure, wait=wait)
    if when is not None:
        outcome.again[document_id] = when
