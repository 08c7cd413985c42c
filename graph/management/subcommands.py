"""Subcommands of `manage.py graph`."""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from accounts.services import get_workspace_by_slug
from common import features
from common.console import PARTIAL, CommandOutput, Options, terminal_safe
from common.errors import InvalidInput, NotFound
from common.json_lines import STANDARD_STREAM, open_for_reading, write_output
from common.text import pluralized
from documents.management.cli import ProgressBar, find_collection, get_collection_by_slug
from documents.models import Collection
from graph import services
from graph.reading.results import Truncated
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope, graph_scope
from graph.services.extraction import (
    ExtractionState,
    extract_waiting,
    extraction_state,
    reextract_collection,
)
from graph.services.json_lines import export_lines, import_lines


def vertex_data(vertex: Vertex) -> dict[str, Any]:
    data = {
        "id": vertex.id,
        "kind": vertex.kind,
        "name": vertex.name,
        "labels": list(vertex.labels),
        "origin": vertex.origin,
    }
    return data if vertex.props is None else {**data, "props": dict(vertex.props)}


def truncated_notes(truncated: Truncated) -> Iterator[str]:
    """Notes on what was left out."""
    if truncated.work:
        yield "given up: too much to look at"
    if truncated.hubs:
        yield f"only the heaviest neighbors of {pluralized(len(truncated.hubs), 'node')} were"
        " looked at"


LINK_FIELDS = ("source", "rel", "target", "weight", "origin")


def scope_from(options: Options) -> GraphScope:
    """Scope of the whole workspace. Raises NotFound."""
    return graph_scope(user=None, workspace=get_workspace_by_slug(options["workspace"]))


# --- looked at -----------------------------------------------------------------------------------


def stats(options: Options) -> CommandOutput:
    """Size of the graph and its largest parts."""
    found = services.graph_statistics(scope=scope_from(options))
    counts = asdict(found)
    counts["best_connected"] = [
        {**vertex_data(each.vertex), "degree": each.degree} for each in found.best_connected
    ]
    about = "about " if found.sampled else ""
    rows = [
        (kind, value, count)
        for kind, name in (("origin", "origins"), ("label", "labels"), ("relation", "rels"))
        for value, count in counts[name].items()
    ]
    for node in counts["best_connected"]:
        rows.append(("most relations", node["name"], node["degree"]))
    summary = (
        f"{about}{pluralized(found.nodes, 'node')}, {pluralized(found.edges, 'edge')},"
        f" {pluralized(found.documents, 'document')}, {pluralized(found.mentions, 'mention')}"
    )
    return CommandOutput(counts, [summary], ("of", "", "number"), rows)


def find_nodes(options: Options) -> CommandOutput:
    """Nodes that match a name."""
    found = services.find_nodes(
        scope=scope_from(options),
        text=options["text"],
        labels=options["label"] or (),
        limit=options["n"],
    )
    rows = [(each.id, each.name, ", ".join(each.labels), each.origin) for each in found]
    heads = ("id", "name", "labels", "origin")
    return CommandOutput(
        list(map(vertex_data, found)),
        (f"{len(found):,} found",),
        heads,
        rows,
    )


def show_node(options: Options) -> CommandOutput:
    """One node with all its properties."""
    vertex = services.get_node(scope=scope_from(options), id=options["id"])
    if vertex is None:
        raise NotFound(f"There is no node “{options['id']}”. Look for it: graph find NAME.")
    node = vertex_data(vertex)
    rows = [(name, _format_value(value)) for name, value in node.items() if name != "props"]
    rows += [
        (f"props.{name}", _format_value(value)) for name, value in (vertex.props or {}).items()
    ]
    return CommandOutput(node, (), ("", ""), rows)


def neighbors(options: Options) -> CommandOutput:
    """Neighbors of a node as a table."""
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
            **vertex_data(each.vertex),
            "rel": each.rel,
            "direction": "out" if each.outgoing else "in",
            "weight": each.weight,
        }
        for each in page.items
    ]
    data = {
        "node": vertex_data(page.vertex),
        "total": page.total,
        "neighbors": beside,
        "truncated": asdict(page.truncated),
    }
    columns = ("rel", "direction", "id", "name", "weight")
    cells = [[each[name] for name in columns] for each in beside]
    summary = [f"{len(page.items):,} of {page.total:,}", *truncated_notes(page.truncated)]
    heads = ("relation", "", "id", "name", "weight")
    return CommandOutput(data, [" · ".join(summary)], heads, cells)


def shortest_path(options: Options) -> CommandOutput:
    """The shortest path between two nodes."""
    found = services.shortest_path(
        scope=scope_from(options),
        source=options["source"],
        target=options["target"],
        max_depth=options["max_depth"],
        rels=options["rel"] or (),
        direction=options["direction"],
        grain=options["grain"],
    )
    data = {
        "found": found.found,
        "truncated": asdict(found.truncated),
        "nodes": list(map(vertex_data, found.vertices)),
        "edges": [{name: getattr(each, name) for name in LINK_FIELDS} for each in found.links],
    }
    if not found.found:
        none = f"no way of at most {pluralized(found.max_depth, 'step')}"
        return CommandOutput(data, (" · ".join([none, *truncated_notes(found.truncated)]),))
    cells = [("", found.vertices[0].id, found.vertices[0].name)]
    for link, (before, vertex) in zip(found.links, pairwise(found.vertices), strict=True):
        way = f"{link.rel} →" if link.source == before.id else f"← {link.rel}"
        cells.append((way, vertex.id, vertex.name))
    return CommandOutput(data, [pluralized(len(found.links), "step")], ("", "id", "name"), cells)


def _format_value(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- changed -------------------------------------------------------------------------------------


def merge_nodes(options: Options) -> CommandOutput:
    """Merges nodes into one, or previews it."""
    act, verb = (
        (services.merge_preview, "would go")
        if options["dry_run"]
        else (services.merge_nodes, "went")
    )
    done = act(scope=scope_from(options), keep=options["keep"], others=options["others"])
    summary = (
        f"{pluralized(done.nodes, 'node')} {verb} into it, with {pluralized(done.edges, 'edge')}"
        f" ({done.edges_joined:,} of them there already),"
        f" {pluralized(done.mentions, 'mention')} and {pluralized(done.aliases, 'name')};"
        f" {pluralized(done.edges_dropped, 'edge')} among them {verb} away"
    )
    return CommandOutput(asdict(done), (summary,))


_SPOOLED = 16 * 1024 * 1024


def import_file(options: Options) -> CommandOutput:
    """Imports JSON Lines, all or none."""
    scope = scope_from(options)
    with _rereadable_file(options["file"]) as read:
        done = import_lines(
            scope=scope,
            read=read,
            strict=not options["lenient"],
            replace_props=options["replace_props"],
        )
    summary = [
        f"{pluralized(done.nodes_created, 'node')} new, {done.nodes_updated:,} changed",
        f"{pluralized(done.edges_created, 'edge')} new, {done.edges_updated:,} changed",
    ]
    summary += [f"{pluralized(done.stubs, 'node')} made for edges"] if done.stubs else []
    lines = ["; ".join(summary)]
    if done.taken:
        lines.append(f"mean another node already: {', '.join(map(terminal_safe, done.taken))}")
    return CommandOutput(asdict(done), tuple(lines))


@contextmanager
def _rereadable_file(name: str) -> Iterator[Callable[[], Iterable[bytes]]]:
    """A file that can be read repeatedly, also standard input."""
    if name != STANDARD_STREAM:

        def lines() -> Iterator[bytes]:
            with open_for_reading(name) as file:
                yield from file

        with open_for_reading(name):  # not there: said before anything begins
            yield lines
        return
    with tempfile.SpooledTemporaryFile(_SPOOLED) as copy, open_for_reading(name) as file:
        copy.writelines(file)

        def read() -> Iterable[bytes]:
            copy.seek(0)
            return copy

        yield read


def export_file(options: Options) -> CommandOutput:
    """Writes the graph, or a subgraph, to a file."""
    scope = scope_from(options)
    parts = _export_parts(scope, options)
    sized = write_output(options["output"], lambda file: sum(file.write(part) for part in parts))
    return CommandOutput(warnings=[pluralized(sized, "byte")])


def _export_parts(scope: GraphScope, options: Options) -> Iterable[bytes]:
    around = {
        "ids": options["around"] or (),
        "hops": options["hops"],
        "cap": options["limit"],
    }
    if options["format"] == "graphml":
        return services.export_graphml(scope=scope, **around)
    if options["format"] == "jsonl":
        if options["around"]:
            raise InvalidInput("jsonl is the whole graph. Leave --around out, or use graphml.")
        return export_lines(scope=scope, extracted=options["extracted"])
    if not options["around"]:
        raise InvalidInput("json is a drawing of what is around some nodes: name them by --around.")
    found = services.subgraph(scope=scope, **around)
    return [json.dumps(services.export_cytoscape(found), ensure_ascii=False).encode()]


def extraction_states(options: Options) -> CommandOutput:
    """Progress of extraction by collection."""
    return _state_table(_collections(options), "")


def extract_now(options: Options) -> CommandOutput:
    """Extracts waiting documents in this process."""
    features.require("graph")
    collections = [each for each in _collections(options) if each.graph != Collection.Graph.OFF]
    read = sum(_extract_collection(collection, quiet=options["json"]) for collection in collections)
    shown = _state_table(collections, f"documents read: {read:,}")
    left = any(state["waiting"] or state["dead"] for state in shown.data)
    return replace(shown, code=PARTIAL if left else 0)


def _extract_collection(collection: Collection, *, quiet: bool) -> int:
    total = extraction_state(collection=collection).waiting
    with ProgressBar(collection.slug, quiet=quiet) as bar:
        return extract_waiting(
            collection=collection, on_progress=lambda read: bar.show(read, total)
        )


def reextract(options: Options) -> CommandOutput:
    """Queues all documents again, or outdated ones."""
    features.require("graph")
    collection = get_collection_by_slug(workspace=options["workspace"], slug=options["collection"])
    if collection.graph == Collection.Graph.OFF:
        raise InvalidInput(
            f"“{collection.slug}” is not read for the graph. Change it to rules or llm on its page."
        )
    queued = reextract_collection(collection=collection, only_stale=options["stale"])
    shown = _state_table([collection], f"documents waiting to be read again: {queued:,}")
    return replace(shown, data={"queued": queued, "state": shown.data[0]})


def _collections(options: Options) -> list[Collection]:
    if collection := find_collection(options):
        return [collection]
    workspace = get_workspace_by_slug(options["workspace"])
    return list(Collection.objects.filter(workspace=workspace).order_by("slug"))


def _state_table(collections: list[Collection], summary: str) -> CommandOutput:
    states = {each: extraction_state(collection=each) for each in collections}
    data = [
        {"collection": each.slug, "graph": str(each.graph), **asdict(state)}
        for each, state in states.items()
    ]
    heads = ("collection", "graph", *ExtractionState.__slots__)
    cells = [tuple(row.values()) for row in data]
    return CommandOutput(data, [summary] if summary else [], heads, cells)
