"""What `manage.py graph` does, action by action."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from common.errors import NotFound
from common.showing import Shown, table_of
from common.wording import counted
from documents.management.naming import workspace_named
from graph import services
from graph.management.rows import link_of, truncated_in_words, vertex_of
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope, graph_scope
from graph.storing.merging import Merge

Options = Mapping[str, Any]


def scope_from(options: Options) -> GraphScope:
    """The whole graph of the workspace that is named. Raises NotFound."""
    return graph_scope(user=None, workspace=workspace_named(options["workspace"]))


# --- looked at -----------------------------------------------------------------------------------


def stats(options: Options) -> Shown:
    """How large it is."""
    found = services.graph_statistics(scope=scope_from(options))
    counts = asdict(found)
    counts["best_connected"] = [
        {**vertex_of(each.vertex), "degree": each.degree} for each in found.best_connected
    ]
    about = "about " if found.sampled else ""
    rows = [(kind, name, count) for kind, name, count in _parts(counts)]
    told = (
        f"{about}{counted(found.nodes, 'node')}, {counted(found.edges, 'edge')},"
        f" {counted(found.documents, 'document')}, {counted(found.mentions, 'mention')}"
    )
    return Shown(counts, (told,), table_of(("of", "", "number"), rows) if rows else None)


def _parts(counts: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for kind, name in (("origin", "origins"), ("label", "labels"), ("relation", "rels")):
        yield from ((kind, value, count) for value, count in counts[name].items())
    for node in counts["best_connected"]:
        yield "most relations", node["name"], node["degree"]


def find(options: Options) -> Shown:
    """What may be meant by a name."""
    found = services.find_nodes(
        scope=scope_from(options),
        text=options["text"],
        labels=options["label"] or (),
        limit=options["n"],
    )
    return _listed(found)


def show(options: Options) -> Shown:
    """One node with all that is known of it."""
    vertex = services.get_node(scope=scope_from(options), id=options["id"])
    if vertex is None:
        raise NotFound(f"There is no node “{options['id']}”. Look for it: graph find NAME.")
    node = vertex_of(vertex)
    rows = [(name, _told(value)) for name, value in node.items() if name != "props"]
    rows += [(f"props.{name}", _told(value)) for name, value in (vertex.props or {}).items()]
    return Shown(node, (), table_of(("", ""), rows))


def neighbors(options: Options) -> Shown:
    """What is one step away."""
    page = services.neighbors(
        scope=scope_from(options),
        id=options["id"],
        rel=options["rel"] or (),
        direction=options["direction"],
        grain=options["grain"],
        limit=options["n"],
    )
    beside = [
        {
            **vertex_of(each.vertex),
            "rel": each.rel,
            "direction": "out" if each.outgoing else "in",
            "weight": each.weight,
        }
        for each in page.items
    ]
    data = {
        "node": vertex_of(page.vertex),
        "total": page.total,
        "neighbors": beside,
        "truncated": asdict(page.truncated),
    }
    columns = ("rel", "direction", "id", "name", "weight")
    cells = [[each[name] for name in columns] for each in beside]
    told = [f"{len(page.items):,} of {page.total:,}", *truncated_in_words(page.truncated)]
    heads = ("relation", "", "id", "name", "weight")
    return Shown(data, (" · ".join(told),), table_of(heads, cells) if cells else None)


def path(options: Options) -> Shown:
    """How two are connected."""
    found = services.shortest_path(
        scope=scope_from(options),
        source=options["source"],
        target=options["target"],
        max_depth=options["max_depth"],
        rels=options["rel"] or (),
        direction=options["direction"],
        grain=options["grain"],
    )
    data: dict[str, Any] = {"found": found.path is not None, "truncated": asdict(found.truncated)}
    if found.path is None:
        told = [
            f"no way of at most {counted(found.max_depth, 'step')}",
            *truncated_in_words(found.truncated),
        ]
        return Shown({**data, "nodes": [], "edges": []}, (" · ".join(told),))
    nodes, links = found.path.vertices, found.path.links
    data |= {"nodes": list(map(vertex_of, nodes)), "edges": list(map(link_of, links))}
    cells = [("", nodes[0].id, nodes[0].name)]
    for link, before, vertex in zip(links, nodes, nodes[1:], strict=False):
        way = f"{link.rel} →" if link.source == before.id else f"← {link.rel}"
        cells.append((way, vertex.id, vertex.name))
    return Shown(data, (counted(len(links), "step"),), table_of(("", "id", "name"), cells))


def _listed(vertices: Sequence[Vertex]) -> Shown:
    rows = [(each.id, each.name, ", ".join(each.labels), each.origin) for each in vertices]
    heads = ("id", "name", "labels", "origin")
    return Shown(
        list(map(vertex_of, vertices)),
        (f"{len(vertices):,} found",),
        table_of(heads, rows) if rows else None,
    )


def _told(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- changed -------------------------------------------------------------------------------------


def merge(options: Options) -> Shown:
    """Nodes that are one thing, made one."""
    scope, what = scope_from(options), {"keep": options["keep"], "others": options["others"]}
    if options["dry_run"]:
        return _merged(services.merge_preview(scope=scope, **what), "would go")
    return _merged(services.merge_nodes(scope=scope, **what).done, "went")


def _merged(done: Merge, verb: str) -> Shown:
    told = (
        f"{counted(done.nodes, 'node')} {verb} into it, with {counted(done.edges, 'edge')}"
        f" ({done.edges_joined:,} of them there already),"
        f" {counted(done.mentions, 'mention')} and {counted(done.aliases, 'name')};"
        f" {counted(done.edges_dropped, 'edge')} among them {verb} away"
    )
    return Shown(asdict(done), (told,))
