"""Nodes, edges and aliases written to the graph, all or none. Begin with `upsert_many`.

Callers have checked that the user of the scope may edit in its workspace. What that user cannot
see does not exist here: written, it starts from the user's own description.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from common.errors import Conflict, InvalidInput
from common.leases import retry_on_deadlock
from graph import inputs
from graph.inputs import EdgeInput, NodeInput
from graph.models import Edge, Node
from graph.node_ids import is_content_id
from graph.reading.results import Link
from graph.reading.vertices import Vertex, resolve, vertex_rows
from graph.scopes import AccessFilter, GraphScope
from graph.services.stage import StagedItems, clear_stage, item_field, stage_items

#: Attempts to lock nodes that are deleted concurrently.
LOCK_TRIES = 5

_RESOLVE_NODES_SQL = (
    """
    UPDATE graph_stage_key AS stage SET node_id = node.id
    FROM graph_node AS node
    WHERE stage.node_id IS NULL AND NOT stage.lost
      AND node.workspace_id = %(workspace)s AND node.key = stage.key
    """,
    """
    UPDATE graph_stage_key AS stage SET node_id = alias.node_id
    FROM graph_alias AS alias
    WHERE stage.node_id IS NULL AND NOT stage.lost
      AND alias.workspace_id = %(workspace)s AND alias.form = stage.retired
    """,
)
# In one order, so that two who make the same nodes do not wait for each other.
_INSERT_NODES_SQL = """
    WITH item AS (
        SELECT DISTINCT ON (no) no, name, labels, props
        FROM graph_stage_node ORDER BY no, position DESC
    ), made AS (
        INSERT INTO graph_node (
            workspace_id, key, name, labels, props, origin, is_stub, document_id, chunk_id,
            created_at, updated_at)
        SELECT %(workspace)s, stage.key, coalesce(item.name, ''), coalesce(item.labels, '{}'),
               coalesce(item.props, '{}')::jsonb, 'given', item.no IS NULL, stage.document_id,
               stage.chunk_id, now(), now()
        FROM graph_stage_key AS stage LEFT JOIN item USING (no)
        WHERE stage.node_id IS NULL AND NOT stage.lost
          AND (%(lenient)s OR stage.no < %(named)s OR stage.retired IS NULL)
        ORDER BY stage.key COLLATE "C"
        ON CONFLICT (workspace_id, key) DO NOTHING
        RETURNING id, key
    )
    UPDATE graph_stage_key AS stage SET node_id = made.id, fresh = true
    FROM made WHERE made.key = stage.key
"""
# Neither deleted nor merged until the end: in the order of their ids, as everywhere. What hangs on
# them is written after.
_LOCK_NODES_SQL = """
    SELECT count(*), (SELECT count(DISTINCT node_id) FROM graph_stage_key WHERE NOT fresh)
    FROM (
        SELECT node.id FROM graph_node AS node
        WHERE node.id IN (SELECT node_id FROM graph_stage_key WHERE NOT fresh)
        ORDER BY node.id FOR KEY SHARE
    ) AS held
"""
_FORGET_DELETED_SQL = """
    UPDATE graph_stage_key AS stage SET node_id = NULL
    WHERE NOT EXISTS (SELECT FROM graph_node AS node WHERE node.id = stage.node_id)
"""
_MARK_INVISIBLE_SQL = """
    UPDATE graph_stage_key AS stage SET unseen = true
    FROM graph_node AS node
    WHERE node.id = stage.node_id AND node.origin = 'extracted' AND ({seen}) IS NOT TRUE
"""
# An end is adopted: it is given now, too. What the caller cannot see it does not get to see by
# adopting it: such a node begins anew, as the caller describes it.
_CHANGED_NODES_SQL = """
    SELECT node.id, changed.name, changed.labels, changed.props, changed.is_stub
    FROM (
        SELECT DISTINCT ON (stage.node_id)
               stage.node_id, stage.unseen, item.no IS NULL AS as_end,
               item.name, item.labels, item.props::jsonb AS props
        FROM graph_stage_key AS stage LEFT JOIN graph_stage_node AS item USING (no)
        WHERE NOT stage.fresh AND stage.node_id IS NOT NULL
        ORDER BY stage.node_id, item.position DESC NULLS LAST
    ) AS wanted
    JOIN graph_node AS node ON node.id = wanted.node_id
    CROSS JOIN LATERAL (
        SELECT coalesce(wanted.name, CASE WHEN unseen THEN '' ELSE node.name END) AS name,
               coalesce(wanted.labels, CASE WHEN unseen THEN '{}' ELSE node.labels::text[] END)
               AS labels,
               CASE WHEN unseen OR %(replace)s AND wanted.props IS NOT NULL
                    THEN coalesce(wanted.props, '{}')
                    ELSE node.props || coalesce(wanted.props, '{}') END AS props,
               as_end AND (node.is_stub OR unseen) AS is_stub
    ) AS changed
    WHERE (node.name, node.labels::text[], node.props, node.origin, node.is_stub)
          IS DISTINCT FROM (
              changed.name, changed.labels, changed.props, 'given', changed.is_stub)
"""
_LOCK_CHANGED_NODES_SQL = f"""
    SELECT node.id FROM graph_node AS node
    WHERE node.id IN (SELECT id FROM ({_CHANGED_NODES_SQL}) AS changed)
    ORDER BY node.id FOR NO KEY UPDATE
"""  # noqa: S608 - fixed pieces, values are parameters
_UPDATE_NODES_SQL = f"""
    WITH written AS (
        UPDATE graph_node AS node
        SET name = changed.name, labels = changed.labels, props = changed.props,
            origin = 'given', is_stub = changed.is_stub, updated_at = now()
        FROM ({_CHANGED_NODES_SQL}) AS changed
        WHERE node.id = changed.id
        RETURNING node.id, octet_length(node.props::text) AS size
    )
    SELECT array_agg(id), array_agg(id) FILTER (WHERE size > %(most)s) FROM written
"""  # noqa: S608 - fixed pieces, values are parameters
_COUNT_NODES_SQL = """
    SELECT count(*) FILTER (WHERE no < %(named)s AND (fresh OR unseen)),
           count(*) FILTER (WHERE no >= %(named)s AND (fresh OR unseen)),
           count(DISTINCT node_id) FILTER (
               WHERE no < %(named)s AND NOT unseen AND node_id = ANY(%(written)s))
    FROM graph_stage_key
"""
_LOST_NODES_SQL = """
    SELECT no FROM graph_stage_key
    WHERE node_id IS NULL OR (NOT %(lenient)s AND unseen AND no >= %(named)s)
    ORDER BY no LIMIT 1000
"""


def find_or_make_nodes(scope: GraphScope, *, named: int, lenient: bool, large: bool) -> list[int]:
    """Finds or creates the node of each staged id and locks it; returns up to 1,000
    numbers without node.
    """
    parameters = {"workspace": scope.workspace_id, "named": named, "lenient": lenient}
    with connection.cursor() as cursor:
        for _ in range(LOCK_TRIES):
            for statement in (*_RESOLVE_NODES_SQL, _INSERT_NODES_SQL, *_RESOLVE_NODES_SQL):
                cursor.execute(statement, parameters)
            # The planner needs statistics of the resolved ids.
            if large:
                cursor.execute("ANALYZE graph_stage_key")
            cursor.execute(_LOCK_NODES_SQL)
            held, wanted = cursor.fetchone()
            if held == wanted:
                break
            cursor.execute(_FORGET_DELETED_SQL)
        else:
            raise Conflict(
                gettext("Other requests keep deleting the same nodes. Try again in a moment.")
            )
        if scope.user is not None:
            seen = AccessFilter(scope)
            cursor.execute(_MARK_INVISIBLE_SQL.format(seen=seen.node("node")), seen.parameters)
        cursor.execute(_LOST_NODES_SQL, parameters)
        return [number for (number,) in cursor.fetchall()]


def update_nodes(*, named: int, replace_props: bool) -> tuple[int, int, int]:
    """Writes changes of existing nodes; returns the number of new ones, of changed ones, and of
    those created as ends of edges. Raises InvalidInput for too large properties.
    """
    most: int = settings.GRAPH_MAX_PROPS_BYTES
    parameters: dict[str, Any] = {"replace": replace_props, "named": named, "most": most}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_CHANGED_NODES_SQL, parameters)
        cursor.execute(_UPDATE_NODES_SQL, parameters)
        written, large = cursor.fetchone()
        for node in Node.objects.filter(pk__in=large or ()).only("key", "props"):
            inputs.check_merged_props(node.props, owner=node.key)
        cursor.execute(_COUNT_NODES_SQL, parameters | {"written": written or []})
        created, stubs, updated = cursor.fetchone()
    return created, updated, stubs


# The last word on each edge counts. Sorted, so that two who write the same edges do not wait for
# each other.
_WANTED_EDGES_SQL = """
    SELECT DISTINCT ON (source.node_id, item.rel COLLATE "C", target.node_id)
           source.node_id AS source_id, item.rel, target.node_id AS target_id, item.weight,
           item.props::jsonb AS props
    FROM graph_stage_edge AS item
    JOIN graph_stage_key AS source ON source.no = item.source
    JOIN graph_stage_key AS target ON target.no = item.target
    ORDER BY source.node_id, item.rel COLLATE "C", target.node_id, item.position DESC
"""
_INSERT_EDGES_SQL = f"""
    INSERT INTO graph_edge (
        workspace_id, source_id, rel, target_id, weight, props, origin, updated_at)
    SELECT %(workspace)s, source_id, rel, target_id, coalesce(weight, 1), coalesce(props, '{{}}'),
           'given', now()
    FROM ({_WANTED_EDGES_SQL}) AS wanted
    ON CONFLICT (source_id, rel, target_id, workspace_id) DO NOTHING
"""  # noqa: S608 - fixed pieces, values are parameters
_EXISTING_EDGES_SQL = f"""
    SELECT edge.id, wanted.weight, wanted.props
    FROM ({_WANTED_EDGES_SQL}) AS wanted
    JOIN graph_edge AS edge
      ON edge.workspace_id = %(workspace)s AND edge.source_id = wanted.source_id
     AND edge.rel = wanted.rel AND edge.target_id = wanted.target_id
"""  # noqa: S608 - fixed pieces, values are parameters
_INVISIBLE_EDGES_SQL = """
    SELECT edge.id FROM ({there}) AS there JOIN graph_edge AS edge USING (id)
    WHERE edge.origin = 'extracted' AND ({seen}) IS NOT TRUE
"""
_CHANGED_EDGES_SQL = f"""
    SELECT edge.id, changed.weight, changed.props
    FROM ({_EXISTING_EDGES_SQL}) AS there
    JOIN graph_edge AS edge USING (id)
    CROSS JOIN LATERAL (SELECT edge.id = ANY(%(unseen)s) AS unseen) AS known
    CROSS JOIN LATERAL (
        SELECT coalesce(there.weight, CASE WHEN unseen THEN 1 ELSE edge.weight END) AS weight,
               CASE WHEN unseen OR %(replace)s AND there.props IS NOT NULL
                    THEN coalesce(there.props, '{{}}')
                    ELSE edge.props || coalesce(there.props, '{{}}') END AS props
    ) AS changed
    WHERE (edge.weight, edge.props, edge.origin)
          IS DISTINCT FROM (changed.weight, changed.props, 'given')
"""  # noqa: S608 - fixed pieces, values are parameters
_LOCK_EDGES_SQL = f"""
    SELECT edge.id FROM graph_edge AS edge
    WHERE edge.id IN (SELECT id FROM ({_CHANGED_EDGES_SQL}) AS changed)
    ORDER BY edge.id FOR NO KEY UPDATE
"""  # noqa: S608 - fixed pieces, values are parameters
_UPDATE_EDGES_SQL = f"""
    WITH written AS (
        UPDATE graph_edge AS edge
        SET weight = changed.weight, props = changed.props, origin = 'given', updated_at = now()
        FROM ({_CHANGED_EDGES_SQL}) AS changed
        WHERE edge.id = changed.id
        RETURNING edge.id, octet_length(edge.props::text) AS size
    )
    SELECT count(*), count(*) FILTER (WHERE id = ANY(%(unseen)s)),
           array_agg(id) FILTER (WHERE size > %(most)s)
    FROM written
"""  # noqa: S608 - fixed pieces, values are parameters


def write_edges(scope: GraphScope, *, staged: int, replace_props: bool) -> tuple[int, int]:
    """Writes the staged edges, whose ends are locked; returns the number of new and of changed
    ones. Raises InvalidInput for too large properties.

    Extracted edges that the caller cannot see are treated as new.
    """
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "replace": replace_props,
        "most": settings.GRAPH_MAX_PROPS_BYTES,
    }
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_EDGES_SQL, parameters)
        created = cursor.rowcount
        if created == staged:
            return created, 0
        parameters["unseen"] = []
        if scope.user is not None:
            seen = AccessFilter(scope)
            cursor.execute(
                _INVISIBLE_EDGES_SQL.format(there=_EXISTING_EDGES_SQL, seen=seen.edge("edge")),
                seen.parameters,
            )
            parameters["unseen"] = [pk for (pk,) in cursor.fetchall()]
        cursor.execute(_LOCK_EDGES_SQL, parameters)
        cursor.execute(_UPDATE_EDGES_SQL, parameters)
        updated, adopted, large = cursor.fetchone()
    for edge in Edge.objects.filter(pk__in=large or ()).only("rel", "props"):
        inputs.check_merged_props(edge.props, owner=edge.rel)
    return created + adopted, updated - adopted


_INSERT_ALIASES_SQL = """
    INSERT INTO graph_alias (workspace_id, form, node_id)
    SELECT DISTINCT ON (item.form) %(workspace)s, item.form, stage.node_id
    FROM graph_stage_alias AS item JOIN graph_stage_key AS stage USING (no)
    ORDER BY item.form, item.no
    ON CONFLICT (workspace_id, form) DO NOTHING
"""
# Aliases of nodes that the caller cannot see are not reported.
_TAKEN_ALIASES_SQL = """
    SELECT DISTINCT item.form
    FROM graph_stage_alias AS item
    JOIN graph_stage_key AS stage USING (no)
    JOIN graph_alias AS alias ON alias.workspace_id = %(workspace)s AND alias.form = item.form
    JOIN graph_node AS node ON node.id = alias.node_id
    WHERE alias.node_id <> stage.node_id AND {seen}
    ORDER BY item.form LIMIT 100
"""


def register_aliases(scope: GraphScope) -> tuple[str, ...]:
    """Adds the aliases; returns up to 100 that already mean another node."""
    seen = AccessFilter(scope)
    condition = seen.node("node") if scope.user is not None else "TRUE"
    with connection.cursor() as cursor:
        cursor.execute(_INSERT_ALIASES_SQL, {"workspace": scope.workspace_id})
        cursor.execute(_TAKEN_ALIASES_SQL.format(seen=condition), seen.parameters)
        return tuple(form for (form,) in cursor.fetchall())


#: From this number of edges on, sorting gets more memory.
LARGE_EDGE_COUNT = 20_000
_SET_WORK_MEM_SQL = "SELECT set_config('work_mem', %s, true)"
_GET_WORK_MEM_SQL = "SELECT current_setting('work_mem')"
_FIRST_EDGES_SQL = """
    SELECT position, source, target FROM graph_stage_edge
    WHERE source = ANY(%(lost)s) OR target = ANY(%(lost)s) ORDER BY position LIMIT 5
"""
_FIRST_NODES_SQL = """
    SELECT position, no FROM graph_stage_node WHERE no = ANY(%(lost)s) ORDER BY position LIMIT 5
"""


class MissingNode(InvalidInput):
    """An edge uses a missing node, or a missing document is described; `ids` are the first ones."""

    code = "missing_node"

    def __init__(self, ids: Sequence[str], *, item: tuple[str, int] | None = None) -> None:
        names = ", ".join(f"“{node_id}”" for node_id in ids)
        if all(is_content_id(node_id) for node_id in ids):
            cure = "Name a document that is there, as doc:<collection>:<key>."
        else:
            cure = "Make it first, or write without strict to have it made."
        where = f"{item[0]}[{item[1]}]: there" if item else "There"
        field = item_field(*item) if item else ""
        super().__init__(f"{where} is no node {names}. {cure}", field=field)
        self.ids = tuple(ids)


@dataclass(frozen=True, slots=True)
class UpsertResult:
    """Counts of written rows; unchanged ones are not counted.

    `stubs` are nodes created as ends of edges. `taken` are normalised names that already mean
    another node.
    """

    nodes_created: int = 0
    nodes_updated: int = 0
    stubs: int = 0
    edges_created: int = 0
    edges_updated: int = 0
    taken: tuple[str, ...] = ()


def upsert_many(
    *,
    scope: GraphScope,
    nodes: Iterable[NodeInput] = (),
    edges: Iterable[EdgeInput] = (),
    strict: bool = True,
    replace_props: bool = False,
    named_items: bool = True,
) -> UpsertResult:
    """Writes all or none, nodes first; tens of thousands per second.

    Semantics as `upsert_node` and `upsert_edge`; of duplicates the last counts; unchanged rows
    are not written. Iterables are read once, and must not use the database. Raises InvalidInput
    and MissingNode, which name the item unless `named_items` is false.
    """
    with transaction.atomic():
        staged = stage_items(nodes, edges, scope=scope, many=named_items)
        with _work_memory(staged):
            written = retry_on_deadlock(
                lambda: _write_staged(scope, staged, strict=strict, replace_props=replace_props),
                savepoint=True,
            )
        clear_stage(staged)
        # Records counts in the audit log.
        for action, kind, count in (
            (Action.MADE, Kind.NODE, written.nodes_created + written.stubs),
            (Action.CHANGED, Kind.NODE, written.nodes_updated),
            (Action.MADE, Kind.EDGE, written.edges_created),
            (Action.CHANGED, Kind.EDGE, written.edges_updated),
        ):
            record_change(action=action, kind=kind, workspace_id=scope.workspace_id, count=count)
    return written


@contextmanager
def _work_memory(staged: StagedItems) -> Iterator[None]:
    """More memory for large sorts; restored, since the transaction may go on."""
    if staged.edges < LARGE_EDGE_COUNT:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(_GET_WORK_MEM_SQL)
        (before,) = cursor.fetchone()
        cursor.execute(_SET_WORK_MEM_SQL, ["64MB"])
    yield
    with connection.cursor() as cursor:
        cursor.execute(_SET_WORK_MEM_SQL, [before])


def _write_staged(
    scope: GraphScope, staged: StagedItems, *, strict: bool, replace_props: bool
) -> UpsertResult:
    with transaction.atomic():
        lost = find_or_make_nodes(
            scope, named=staged.named, lenient=not strict, large=staged.is_large
        )
        if lost:
            # The first items with a missing node.
            ids = list(staged.numbers)
            what, rows = "nodes", _first_rows(_FIRST_NODES_SQL, lost)
            if not rows:
                what, rows = "edges", _first_rows(_FIRST_EDGES_SQL, lost)
            numbers = dict.fromkeys(
                number for row in rows for number in row[1:] if number in set(lost)
            )
            item = (what, rows[0][0]) if staged.many else None
            raise MissingNode([ids[number] for number in numbers], item=item)
        nodes_created, nodes_updated, stubs = update_nodes(
            named=staged.named, replace_props=replace_props
        )
        edges_created = edges_updated = 0
        if staged.edges:
            edges_created, edges_updated = write_edges(
                scope, staged=staged.edges, replace_props=replace_props
            )
        taken = register_aliases(scope) if staged.forms else ()
    return UpsertResult(
        nodes_created=nodes_created,
        nodes_updated=nodes_updated,
        stubs=stubs,
        edges_created=edges_created,
        edges_updated=edges_updated,
        taken=taken,
    )


def _first_rows(statement: str, lost: Sequence[int]) -> list[tuple[int, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"lost": list(lost)})
        rows: list[tuple[int, ...]] = cursor.fetchall()
    return rows


@dataclass(frozen=True, slots=True)
class NodeChange:
    """The node after a write."""

    node: Vertex
    created: bool
    changed: Annotated[bool, "False if it existed unchanged."]
    taken: Annotated[
        tuple[str, ...], "Names by which texts mean another node already, in their normal form."
    ] = ()


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """The edge after a write."""

    edge: Link
    created: bool
    changed: Annotated[bool, "False if it existed unchanged."]
    stubs: Annotated[int, "Nodes that were created for its ends."] = 0


def upsert_node(
    *,
    scope: GraphScope,
    id: str,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    props: Mapping[str, Any] | None = None,
    aliases: Sequence[str] = (),
    replace_props: bool = False,
) -> NodeChange:
    """Creates or changes a node; None leaves a value as it is.

    Properties are merged by top-level key, or replaced with `replace_props`. Texts find the
    node by name, aliases and, for an unnamed `ent:<type>:<value>`, by the value. Former ids
    mean the kept node. An extracted node becomes given. Documents and passages (`doc:…`,
    `chunk:…`) can get labels and properties. Raises InvalidInput.
    """
    item = NodeInput(id, name, labels, props, aliases)
    written = upsert_many(scope=scope, nodes=[item], replace_props=replace_props, named_items=False)
    return NodeChange(
        node=resolve(AccessFilter(scope), [id], props=True)[id],
        created=bool(written.nodes_created),
        changed=bool(written.nodes_created or written.nodes_updated),
        taken=written.taken,
    )


def upsert_edge(
    *,
    scope: GraphScope,
    source: str,
    rel: str,
    target: str,
    weight: float | None = None,
    props: Mapping[str, Any] | None = None,
    strict: bool = True,
    replace_props: bool = False,
) -> EdgeChange:
    """Creates an edge, or changes its weight and properties, as `upsert_node` does.

    Both ends become given. Raises MissingNode for a missing end; without `strict` it is created
    without a name, unless it names a document. Raises InvalidInput.
    """
    item = EdgeInput(source, rel, target, weight, props)
    written = upsert_many(
        scope=scope, edges=[item], strict=strict, replace_props=replace_props, named_items=False
    )
    ends = resolve(AccessFilter(scope), [source, target])
    rows = vertex_rows(ends)
    edge = Edge.objects.get(source=rows[source], rel=rel, target=rows[target])
    return EdgeChange(
        edge=Link(ends[source].id, rel, ends[target].id, edge.weight, edge.origin, edge.props),
        created=bool(written.edges_created),
        changed=bool(written.edges_created or written.edges_updated),
        stubs=written.stubs,
    )
