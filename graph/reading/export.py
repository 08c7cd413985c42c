"""The whole graph of a scope in batches, and GraphML.
http://graphml.graphdrawing.org/specification.html

Passages are left out: they are parts of documents, and too many.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # nosec B406  # only writes

from graph.reading.results import Link
from graph.reading.steps import Follow, make_links, step
from graph.reading.vertices import Kind, Ref, Vertex, fetch_rows, load_sql, load_vertices
from graph.scopes import AccessFilter

BATCH_SIZE = 1_000
#: Most relations per vertex and kind.
MAX_FAN = 1_000_000
MAX_EXPORTED_MENTIONS = 10_000_000


def all_vertices(seen: AccessFilter) -> Iterator[tuple[Vertex, ...]]:
    """All nodes, then all documents, with properties, in batches."""
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
            yield tuple(vertices[ref] for ref in sorted(vertices))


def all_links(
    seen: AccessFilter, ids: dict[Ref, str], rels: tuple[str, ...] = ()
) -> Iterator[tuple[Link, ...]]:
    """All relations among vertices of these ids, in batches."""
    follow = Follow(rels=rels, direction="out")
    refs = list(ids)
    for start in range(0, len(refs), BATCH_SIZE):
        here = refs[start : start + BATCH_SIZE]
        stepped = step(seen, here, follow, fan=MAX_FAN, mentions=MAX_EXPORTED_MENTIONS)
        yield make_links(stepped.steps, ids)


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
    return "".join(map(_node_element, vertices))


def edges_text(links: Iterable[Link]) -> str:
    """Edge elements; their ends must be among the nodes."""
    return "".join(map(_edge_element, links))


def _node_element(vertex: Vertex) -> str:
    values = {
        "name": vertex.name,
        "kind": vertex.kind,
        "labels": _compact_json(vertex.labels),
        "origin": vertex.origin,
    }
    if vertex.props is not None:
        values["props"] = _compact_json(vertex.props)
    return f"<node id={_attribute(vertex.id)}>{_data_elements('n', values)}</node>\n"


def _edge_element(link: Link) -> str:
    values = {"rel": link.rel, "weight": repr(link.weight), "origin": link.origin}
    ends = f"source={_attribute(link.source)} target={_attribute(link.target)}"
    return f"<edge {ends}>{_data_elements('e', values)}</edge>\n"


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
