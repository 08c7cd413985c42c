"""Nodes and edges written, one or a million: by COPY, all or none."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection, transaction

from common.deadlocks import despite_deadlocks
from common.errors import InvalidInput
from graph.inputs import EdgeInput, NodeInput
from graph.keys import names_content
from graph.scopes import GraphScope
from graph.storing import edges as edge_rows
from graph.storing import naming
from graph.storing import nodes as node_rows
from graph.storing.staging import FindContent, FormsOf, Staged, clear, stage

#: From so many edges on, sorting them on disk costs more than the memory is worth.
LARGE = 20_000
_MORE_MEMORY = "SELECT set_config('work_mem', %s, true)"
_MEMORY = "SELECT current_setting('work_mem')"
_FIRST_EDGES = """
    SELECT position, source, target FROM graph_stage_edge
    WHERE source = ANY(%(lost)s) OR target = ANY(%(lost)s) ORDER BY position LIMIT 5
"""
_FIRST_NODES = """
    SELECT position, no FROM graph_stage_node WHERE no = ANY(%(lost)s) ORDER BY position LIMIT 5
"""


class MissingNode(InvalidInput):
    """An edge hangs on a node that is not there, or a document is described that is not; `ids`
    are the first of them."""

    code = "missing_node"

    def __init__(self, ids: Sequence[str], *, place: str = "") -> None:
        names = ", ".join(f"“{node_id}”" for node_id in ids)
        if all(names_content(node_id) for node_id in ids):
            cure = "Name a document that is there, as doc:<collection>:<key>."
        else:
            cure = "Make it first, or write without strict to have it made."
        where = f"{place}: there" if place else "There"
        super().__init__(f"{where} is no node {names}. {cure}", field=place)
        self.ids = tuple(ids)


@dataclass(frozen=True, slots=True)
class Upserted:
    """What a call wrote. What was there already, and the same, counts nowhere.

    `stubs` are nodes made because an edge hangs on them. `taken` are names that mean another node
    already, in their normal form.
    """

    nodes_created: int = 0
    nodes_updated: int = 0
    stubs: int = 0
    edges_created: int = 0
    edges_updated: int = 0
    taken: tuple[str, ...] = ()


def upsert(
    scope: GraphScope,
    *,
    nodes: Iterable[NodeInput],
    edges: Iterable[EdgeInput],
    strict: bool,
    replace_props: bool,
    many: bool,
    forms_of: FormsOf,
    find_content: FindContent,
) -> Upserted:
    """Write all or none. Raises InvalidInput and MissingNode, which name the item."""
    with transaction.atomic():
        staged = stage(nodes, edges, many=many, forms_of=forms_of, find_content=find_content)
        with _memory_for(staged):
            written = despite_deadlocks(
                lambda: _write(scope, staged, strict=strict, replace_props=replace_props),
                savepoint=True,
            )
        clear(staged)
    return written


@contextmanager
def _memory_for(staged: Staged) -> Iterator[None]:
    """Room to sort what is large; the transaction may be somebody else's and go on after."""
    if staged.edges < LARGE:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(_MEMORY)
        (before,) = cursor.fetchone()
        cursor.execute(_MORE_MEMORY, ["64MB"])
    yield
    with connection.cursor() as cursor:
        cursor.execute(_MORE_MEMORY, [before])


def _write(scope: GraphScope, staged: Staged, *, strict: bool, replace_props: bool) -> Upserted:
    with transaction.atomic():
        lost = node_rows.settle(
            scope, named=staged.named, lenient=not strict, large=staged.is_large
        )
        if lost:
            raise _missing(staged, lost)
        nodes = node_rows.update(named=staged.named, replace_props=replace_props)
        edges = edge_rows.EdgesWritten()
        if staged.edges:
            edges = edge_rows.write(scope, staged=staged.edges, replace_props=replace_props)
        taken = naming.register(scope) if staged.forms else ()
    return Upserted(
        nodes_created=nodes.created,
        nodes_updated=nodes.updated,
        stubs=nodes.stubs,
        edges_created=edges.created,
        edges_updated=edges.updated,
        taken=taken,
    )


def _missing(staged: Staged, lost: Sequence[int]) -> MissingNode:
    """The first items for which there is no node."""
    ids = list(staged.numbers)
    what, rows = "nodes", _rows(_FIRST_NODES, lost)
    if not rows:
        what, rows = "edges", _rows(_FIRST_EDGES, lost)
    numbers = dict.fromkeys(number for row in rows for number in row[1:] if number in set(lost))
    place = f"{what}[{rows[0][0]}]" if staged.many else ""
    return MissingNode([ids[number] for number in numbers], place=place)


def _rows(statement: str, lost: Sequence[int]) -> list[tuple[int, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"lost": list(lost)})
        rows: list[tuple[int, ...]] = cursor.fetchall()
    return rows
