"""Staging tables: items to write are checked and copied there first.

Ids stand in one table and are numbers in the others: each is checked, sent and looked up once,
however many edges use it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.sql import copy_rows
from graph import inputs
from graph.extraction.normalized_names import normalize_name
from graph.inputs import EdgeInput, NodeInput
from graph.node_ids import (
    DERIVED_RELATIONS,
    check_id,
    check_rel,
    check_writable,
    entity_value,
    is_content_id,
    retired_id_form,
)
from graph.reading.vertices import Vertex, resolve
from graph.scopes import AccessFilter, GraphScope

# They stay in the session, empty: recreating them for each call would bloat the catalogue.
_MAKE_STAGE_SQL = """
    CREATE TEMP TABLE graph_stage_key (
        no int4, key text, retired text, document_id int8, chunk_id int8,
        lost bool, node_id int8, fresh bool NOT NULL DEFAULT false,
        unseen bool NOT NULL DEFAULT false
    ) ON COMMIT DELETE ROWS;
    CREATE TEMP TABLE graph_stage_node (
        position int4, no int4, name text, labels text[], props text
    ) ON COMMIT DELETE ROWS;
    CREATE TEMP TABLE graph_stage_edge (
        position int4, source int4, rel text, target int4, weight float8, props text
    ) ON COMMIT DELETE ROWS;
    CREATE TEMP TABLE graph_stage_alias (
        no int4, form text
    ) ON COMMIT DELETE ROWS;
    -- A request and a command may take turns with the connection, in different roles.
    GRANT ALL ON graph_stage_key, graph_stage_node, graph_stage_edge, graph_stage_alias TO PUBLIC;
"""
#: Fewer rows are taken out faster one by one.
LARGE_STAGE = 1_000
_KEY_COLUMNS = (
    ("no", "int4"),
    ("key", "text"),
    ("retired", "text"),
    ("document_id", "int8"),
    ("chunk_id", "int8"),
    ("lost", "bool"),
)
_NODE_COLUMNS = (
    ("position", "int4"),
    ("no", "int4"),
    ("name", "text"),
    ("labels", "text[]"),
    ("props", "text"),
)
_EDGE_COLUMNS = (
    ("position", "int4"),
    ("source", "int4"),
    ("rel", "text"),
    ("target", "int4"),
    ("weight", "float8"),
    ("props", "text"),
)


_TABLES = ("graph_stage_key", "graph_stage_node", "graph_stage_edge", "graph_stage_alias")


@dataclass(slots=True)
class StagedItems:
    """Staged ids with their numbers from 0; the first `named` are those of described nodes, the
    rest ends of edges. With `many`, errors name the item.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    many: bool = True
    named: int = 0
    nodes: int = 0
    edges: int = 0
    forms: list[tuple[int, str]] = field(default_factory=list)

    @property
    def is_large(self) -> bool:
        """Whether the planner needs statistics of the staging tables."""
        return len(self.numbers) + self.nodes + self.edges > LARGE_STAGE

    def number(self, node_id: str, name: str) -> int:
        """The number of an id, assigned on first use."""
        try:
            return self.numbers[node_id]
        except (KeyError, TypeError):
            number = self.numbers[check_id(node_id, field=name)] = len(self.numbers)
            return number


def stage_items(
    nodes: Iterable[NodeInput],
    edges: Iterable[EdgeInput],
    *,
    scope: GraphScope,
    many: bool,
) -> StagedItems:
    """Copies all items to the staging tables, in the caller's transaction. Raises
    InvalidInput with the item.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('pg_temp.graph_stage_alias')")
        if cursor.fetchone() == (None,):
            cursor.execute(_MAKE_STAGE_SQL)
    staged = StagedItems(many=many)
    copy_rows("graph_stage_node", _NODE_COLUMNS, _node_rows(nodes, staged))
    staged.named = len(staged.numbers)
    copy_rows("graph_stage_edge", _EDGE_COLUMNS, _edge_rows(edges, staged))
    content = [node_id for node_id in staged.numbers if is_content_id(node_id)]
    found = resolve(AccessFilter(scope), content) if content else {}
    copy_rows("graph_stage_key", _KEY_COLUMNS, _key_rows(staged, found))
    if staged.forms:
        copy_rows("graph_stage_alias", (("no", "int4"), ("form", "text")), staged.forms)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE graph_stage_key, graph_stage_node, graph_stage_edge")
    return staged


def clear_stage(staged: StagedItems) -> None:
    """Empties the staging tables; the transaction may go on."""
    with connection.cursor() as cursor:
        if staged.is_large:
            cursor.execute(f"TRUNCATE {', '.join(_TABLES)}")
        else:
            cursor.execute("; ".join(f"DELETE FROM {table}" for table in _TABLES))  # noqa: S608 - fixed pieces, values are parameters


def _node_rows(nodes: Iterable[NodeInput], staged: StagedItems) -> Iterator[Sequence[Any]]:
    for position, node in enumerate(nodes):
        try:
            yield position, *_node_row(node, staged)
        except InvalidInput as error:
            if not staged.many:
                raise
            raise _item_error(error, "nodes", position) from error
        staged.nodes += 1


def _node_row(node: NodeInput, staged: StagedItems) -> Sequence[Any]:
    number = staged.number(node.id, "id")
    inputs.check_aliases(node.aliases)
    name = None if node.name is None else inputs.check_name(node.name)
    if is_content_id(node.id):
        if node.name is not None or node.aliases:
            raise InvalidInput(
                gettext(
                    "A document or passage takes its name from its title. Leave name and aliases"
                    " out, or change the document."
                ),
                field="name",
            )
    else:
        names = (node.name or entity_value(node.id), *node.aliases)
        forms = dict.fromkeys(normalize_name(each) for each in names)
        staged.forms += ((number, form) for form in forms if form)
    return (
        number,
        name,
        None if node.labels is None else inputs.check_labels(node.labels),
        None if node.props is None else inputs.props_text(node.props),
    )


def _edge_rows(edges: Iterable[EdgeInput], staged: StagedItems) -> Iterator[Sequence[Any]]:
    relations: set[str] = set()
    for position, edge in enumerate(edges):
        try:
            # Checks each id and relation once: a million edges have few of them.
            numbers, rel, weight, props = staged.numbers, edge.rel, edge.weight, edge.props
            try:
                source, target = numbers[edge.source], numbers[edge.target]
            except (KeyError, TypeError):
                source = staged.number(edge.source, "source")
                target = staged.number(edge.target, "target")
            if not isinstance(rel, str) or rel not in relations:
                relations.add(check_rel(rel))
            if rel in DERIVED_RELATIONS:
                check_writable(edge.source, rel, edge.target)
            if weight is not None:
                weight = inputs.check_weight(weight)
            text = None if props is None else inputs.props_text(props)
            yield position, source, rel, target, weight, text
        except InvalidInput as error:
            if not staged.many:
                raise
            raise _item_error(error, "edges", position) from error
        staged.edges += 1


def _key_rows(staged: StagedItems, found: dict[str, Vertex]) -> Iterator[Sequence[Any]]:
    for node_id, number in staged.numbers.items():
        if not is_content_id(node_id):
            yield number, node_id, retired_id_form(node_id), None, None, False
        elif (vertex := found.get(node_id)) and vertex.kind != "node":
            is_document = vertex.kind == "document"
            ends = (vertex.pk, None) if is_document else (None, vertex.pk)
            # The row is that of the document, whatever it is called now or later.
            yield number, f"{'doc' if is_document else 'chunk'}:{vertex.pk}", None, *ends, False
        else:
            yield number, node_id, None, None, None, True


def item_field(what: str, position: int, field: str = "") -> str:
    """Name of an item, or of a field of it, in errors: `nodes.3.weight`."""
    return f"{what}.{position}" + (f".{field}" if field else "")


def _item_error(error: InvalidInput, what: str, position: int) -> InvalidInput:
    field = item_field(what, position, error.field)
    return InvalidInput(f"{what}[{position}]: {error}", field=field)
