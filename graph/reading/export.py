"""A graph as GraphML (http://graphml.graphdrawing.org/specification.html) and for cytoscape.js.

Passages are left out: they are parts of documents, and too many.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # nosec B406  # only writes

from graph.reading.results import Link, Subgraph
from graph.reading.steps import Follow, make_links, step
from graph.reading.traversal import subgraph
from graph.reading.vertices import Kind, Ref, Vertex, fetch_rows, load_sql, load_vertices
from graph.scopes import AccessFilter, GraphScope

BATCH_SIZE = 1_000
#: Most relations per vertex and kind.
MAX_FAN = 1_000_000
MAX_EXPORTED_MENTIONS = 10_000_000


def export_graphml(
    *,
    scope: GraphScope,
    ids: Sequence[str] = (),
    hops: int = 1,
    cap: int = 1_000,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Iterator[bytes]:
    """GraphML in parts: the subgraph around `ids`, or all visible nodes and documents with their
    relations.

    Node ids are ours; characters that XML cannot hold become Python escapes. `labels` and
    `props` are JSON. Raises NotFound and InvalidInput before the first part.
    """
    if ids:
        found = subgraph(
            scope=scope, ids=ids, hops=hops, cap=cap, rels=rels, labels=labels, props=True
        )
        parts: Iterable[str] = (nodes_text(found.vertices), edges_text(found.links))
    else:
        parts = _graph_parts(AccessFilter(scope), tuple(rels), frozenset(labels))
    return (part.encode() for part in chain([GRAPHML_HEAD], parts, [GRAPHML_TAIL]))


def _graph_parts(
    seen: AccessFilter, rels: tuple[str, ...], labels: frozenset[str]
) -> Iterator[str]:
    """All nodes, then all documents, then the relations among them, in batches."""
    ids: dict[Ref, str] = {}
    kinds: tuple[tuple[Kind, str], ...] = (
        ("node", load_sql("all_nodes").format(node=seen.node("node"))),
        ("document", load_sql("all_documents").format(document=seen.listed("document"))),
    )
    for kind, statement in kinds:
        after = 0
        while found := fetch_rows(
            statement, seen.parameters | {"after": after, "limit": BATCH_SIZE}
        ):
            after = found[-1][0]
            vertices = load_vertices(seen, [Ref(kind, pk) for (pk,) in found], props=True)
            listed = [
                vertex
                for _, vertex in sorted(vertices.items())
                if not labels or not labels.isdisjoint(vertex.labels)
            ]
            ids |= {each.ref: each.id for each in listed}
            yield nodes_text(listed)
    refs = list(ids)
    for start in range(0, len(refs), BATCH_SIZE):
        steps, _ = step(
            seen,
            refs[start : start + BATCH_SIZE],
            Follow(rels=rels, direction="out"),
            fan=MAX_FAN,
            mentions=MAX_EXPORTED_MENTIONS,
        )
        yield edges_text(make_links(steps, ids))


#: Characters that XML 1.0 cannot hold in any way.
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What a reader of XML would take for another white space.
_WHITE_SPACE = {"\r": "&#13;"}

_NODE_KEYS = ("name", "kind", "labels", "origin", "props")
_EDGE_KEYS = (("rel", "string"), ("weight", "double"), ("origin", "string"))

GRAPHML_HEAD = "\n".join(
    (
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'<key id="n_{name}" for="node" attr.name="{name}" attr.type="string"/>'
            for name in _NODE_KEYS
        ),
        *(
            f'<key id="e_{name}" for="edge" attr.name="{name}" attr.type="{kind}"/>'
            for name, kind in _EDGE_KEYS
        ),
        '<graph edgedefault="directed">\n',
    )
)
GRAPHML_TAIL = "</graph>\n</graphml>\n"


def nodes_text(vertices: Iterable[Vertex]) -> str:
    """Node elements. Labels are a JSON list, since they may hold any character."""
    elements = []
    for vertex in vertices:
        values = {
            "name": vertex.name,
            "kind": vertex.kind,
            "labels": _compact_json(vertex.labels),
            "origin": vertex.origin,
        }
        if vertex.props is not None:
            values["props"] = _compact_json(vertex.props)
        elements.append(f"<node id={_attribute(vertex.id)}>{_data_elements('n', values)}</node>\n")
    return "".join(elements)


def edges_text(links: Iterable[Link]) -> str:
    """Edge elements; their ends must be among the nodes."""
    elements = []
    for link in links:
        values = {"rel": link.rel, "weight": repr(link.weight), "origin": link.origin}
        ends = f"source={_attribute(link.source)} target={_attribute(link.target)}"
        elements.append(f"<edge {ends}>{_data_elements('e', values)}</edge>\n")
    return "".join(elements)


def _data_elements(prefix: str, values: Mapping[str, str]) -> str:
    return "".join(
        f'<data key="{prefix}_{name}">{escape(_escape_impossible(value), _WHITE_SPACE)}</data>'
        for name, value in values.items()
    )


def _attribute(value: str) -> str:
    return quoteattr(_escape_impossible(value))


def _escape_impossible(text: str) -> str:
    """The text with characters that XML cannot hold as Python escapes."""
    return _IMPOSSIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def export_cytoscape(subgraph: Subgraph) -> dict[str, Any]:
    """A subgraph in the format of cytoscape.js, with `truncated`."""
    nodes = [
        {
            "id": vertex.id,
            "name": vertex.name,
            "labels": list(vertex.labels),
            "kind": vertex.kind,
            "degree": subgraph.degrees.get(vertex.id, 0),
            "origin": vertex.origin,
        }
        for vertex in subgraph.vertices
    ]
    edges = [
        {
            "id": json.dumps([link.source, link.rel, link.target], ensure_ascii=False),
            "source": link.source,
            "target": link.target,
            "rel": link.rel,
            "weight": link.weight,
            "origin": link.origin,
        }
        for link in subgraph.links
    ]
    truncated = asdict(subgraph.truncated) | {"hubs": list(subgraph.truncated.hubs)}
    return {"elements": cytoscape_elements(nodes, edges), "truncated": truncated}


def cytoscape_elements(
    nodes: Iterable[dict[str, Any]], edges: Iterable[dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Nodes and edges in the format of cytoscape.js."""
    return {
        "nodes": [{"data": node} for node in nodes],
        "edges": [{"data": edge} for edge in edges],
    }
