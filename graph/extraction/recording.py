"""What was found in documents, into the graph: all of it and the progress, or nothing.

Rows are held in one order by all: queue, passages, nodes, edges, runs. See decision 0030.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction

from common.copy import copy_rows
from common.deadlocks import TRIES, despite_deadlocks
from documents.models import Chunk
from graph.extraction import queue, relating
from graph.extraction.found import KINDS, Extraction, Mention
from graph.extraction.queue import Claim
from graph.extraction.relating import Statement
from graph.extraction.resolving import Resolved, Vanished, resolve
from graph.extraction.sources import Stored
from graph.extraction.tally import together
from graph.models import Evidence
from graph.models import Extraction as Row
from graph.models import Mention as MentionRow
from graph.storing.orphans import Mentioned, mentioned_by, remove_orphans

_COLUMNS = (
    ("workspace_id", "int8"),
    ("chunk_id", "int8"),
    ("node_id", "int8"),
    ("kind", "int2"),
    ("count", "int4"),
    ("start", "int4"),
    ("end", "int4"),
)
_HOLD_EDGES = "SELECT id FROM graph_edge WHERE id = ANY(%s) ORDER BY id FOR "
_HOLD_NODES = "SELECT id FROM graph_node WHERE id = ANY(%s) ORDER BY id FOR "


@dataclass(frozen=True, slots=True)
class Reading:
    """What a document tells, and by what recipe. `note` is what went wrong on the way."""

    stored: Stored
    extraction: Extraction
    recipe: str
    note: str = ""

    @property
    def document_id(self) -> int:
        return self.stored.document_id


@dataclass(frozen=True, slots=True)
class _Plan:
    """Rows to write. `before` is what the passages spoke of until now, and may have to go."""

    mentions: Mapping[tuple[int, int], Mention]
    statements: Sequence[Statement]
    before: Mentioned

    @property
    def nodes(self) -> set[int]:
        return {node for _, node in self.mentions}


def record(claim: Claim, readings: Sequence[Reading]) -> list[int]:
    """Replace what was known of these documents by what was found now; which ones were recorded.

    A document that the claim does not hold any more is passed over: somebody else reads it, or it
    was loaded anew and waits again.
    """
    for _ in range(TRIES - 1):
        try:
            return despite_deadlocks(partial(_record, claim, readings))
        except Vanished:
            continue
    return despite_deadlocks(partial(_record, claim, readings))


@transaction.atomic
def _record(claim: Claim, readings: Sequence[Reading]) -> list[int]:
    # Whoever removes passages holds these rows first, so nobody does it meanwhile. The documents
    # themselves stay free: whoever loads passes over those that are held.
    held = queue.held(claim).select_for_update().order_by("pk")
    rows = {row.document_id: row for row in held}
    mine = _unchanged([reading for reading in readings if reading.document_id in rows])
    if mine:
        plan = _plan(claim, mine)
        _hold(claim.workspace_id, plan)
        _replace(claim.workspace_id, mine, plan)
        _finish(mine, rows, plan)
    return [reading.document_id for reading in mine]


def _unchanged(readings: Sequence[Reading]) -> list[Reading]:
    """Those whose passages are still the ones that were read."""
    ids = [reading.document_id for reading in readings]
    there: dict[int, set[int]] = {}
    for document_id, pk in Chunk.objects.filter(document__in=ids).values_list("document_id", "pk"):
        there.setdefault(document_id, set()).add(pk)
    return [
        reading
        for reading in readings
        if there.get(reading.document_id, set()) == {*reading.stored.chunk_ids}
    ]


def _plan(claim: Claim, readings: Sequence[Reading]) -> _Plan:
    resolved = resolve(
        claim.workspace_id,
        (mention for reading in readings for mention in reading.extraction.mentions),
    )
    mentions: dict[tuple[int, int], Mention] = {}
    statements: list[Statement] = []
    for reading in readings:
        for key, mention in _mentions(reading, resolved):
            same = mentions.get(key)
            mentions[key] = together(same, mention) if same else mention
        statements += _statements(reading, resolved)
    chunk_ids = [pk for reading in readings for pk in reading.stored.chunk_ids]
    old = mentioned_by(Chunk.objects.filter(pk__in=chunk_ids))
    before = Mentioned({*old.nodes, *relating.ends_of(old.edges), *resolved.unused}, old.edges)
    return _Plan(mentions, statements, before)


def _mentions(reading: Reading, resolved: Resolved) -> Iterator[tuple[tuple[int, int], Mention]]:
    """Two names of one node may stand in one passage."""
    for mention in reading.extraction.mentions:
        chunk_id = reading.stored.chunk_ids[mention.passage]
        yield (chunk_id, resolved.nodes[mention.form]), mention


def _statements(reading: Reading, resolved: Resolved) -> Iterator[Statement]:
    """Nothing is related to itself, under whichever names."""
    for relation in reading.extraction.relations:
        chunk_id = reading.stored.chunk_ids[relation.passage]
        source, target = resolved.nodes[relation.source], resolved.nodes[relation.target]
        if source != target:
            triple = source, relation.rel, target
            yield Statement(chunk_id, triple, relation.start, relation.end)


def _hold(workspace_id: int, plan: _Plan) -> None:
    """Hold all nodes and edges that are spoken of, each in the order of their ids.

    Where some may be removed in the end all are held for that at once: whoever holds a row that
    others read and then wants it alone waits for those who do the same. Raises Vanished.
    """
    found = relating.find_edges(workspace_id, (said.triple for said in plan.statements))
    edges = {*found.values(), *plan.before.edges}
    nodes = {*plan.nodes, *plan.before.nodes}
    strength = "UPDATE" if plan.before.nodes else "KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(_HOLD_NODES + strength, [sorted(nodes)])
        if not plan.nodes <= {pk for (pk,) in cursor.fetchall()}:
            raise Vanished
        cursor.execute(_HOLD_EDGES + strength, [sorted(edges)])


def _replace(workspace_id: int, readings: Sequence[Reading], plan: _Plan) -> None:
    if plan.before.nodes:
        chunk_ids = [pk for reading in readings for pk in reading.stored.chunk_ids]
        Evidence.objects.filter(chunk__in=chunk_ids)._raw_delete("default")
        MentionRow.objects.filter(chunk__in=chunk_ids)._raw_delete("default")
    copy_rows("graph_mention", _COLUMNS, _rows(workspace_id, plan.mentions))
    relating.state(workspace_id, plan.statements)
    gone = {*plan.before.nodes} - plan.nodes
    remove_orphans(Mentioned(gone, plan.before.edges))


def _rows(
    workspace_id: int, mentions: Mapping[tuple[int, int], Mention]
) -> Iterable[tuple[int, ...]]:
    for (chunk_id, node_id), mention in mentions.items():
        kind = KINDS.index(mention.kind)
        place = mention.count, mention.start, mention.end
        yield workspace_id, chunk_id, node_id, kind, *place


_FINISH = """
    UPDATE graph_extraction
    SET mentions = %s, relations = %s, recipe = %s, error = %s, state = 'done',
        extracted_at = now(), token = NULL, leased_until = NULL, due_at = NULL, attempts = 0,
        outages = 0
    WHERE id = %s
"""
_COUNT = """
    UPDATE documents_ingestionrun SET mentions = mentions + %s, relations = relations + %s
    WHERE id = %s
"""


def _finish(readings: Sequence[Reading], rows: Mapping[int, Row], plan: _Plan) -> None:
    """The progress, and on the ingestion runs how much more there is of it."""
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
        cursor.executemany(_FINISH, done)
        cursor.executemany(_COUNT, [(*more[run], run) for run in sorted(more) if any(more[run])])
