"""GraphML, written part by part. Pure. http://graphml.graphdrawing.org/specification.html"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # nosec B406  # only writes

from graph.reading.results import Link
from graph.reading.vertices import Vertex

#: Characters that XML 1.0 cannot hold in any way.
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: What a reader of XML would take for another white space.
_WHITE = {"\r": "&#13;"}

_NODE_KEYS = ("name", "kind", "labels", "origin", "props")
_EDGE_KEYS = (("rel", "string"), ("weight", "double"), ("origin", "string"))

HEAD = "\n".join(
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
TAIL = "</graph>\n</graphml>\n"


def nodes_text(vertices: Iterable[Vertex]) -> str:
    """These as elements. Labels are a JSON list: they may hold any character."""
    return "".join(map(_node, vertices))


def edges_text(links: Iterable[Link]) -> str:
    """These as elements; their ends must be among the nodes."""
    return "".join(map(_edge, links))


def _node(vertex: Vertex) -> str:
    values = {
        "name": vertex.name,
        "kind": vertex.kind,
        "labels": _json(vertex.labels),
        "origin": vertex.origin,
    }
    if vertex.props is not None:
        values["props"] = _json(vertex.props)
    return f"<node id={_attribute(vertex.id)}>{_data('n', values)}</node>\n"


def _edge(link: Link) -> str:
    values = {"rel": link.rel, "weight": repr(link.weight), "origin": link.origin}
    ends = f"source={_attribute(link.source)} target={_attribute(link.target)}"
    return f"<edge {ends}>{_data('e', values)}</edge>\n"


def _data(prefix: str, values: Mapping[str, str]) -> str:
    return "".join(
        f'<data key="{prefix}_{name}">{escape(_possible(value), _WHITE)}</data>'
        for name, value in values.items()
    )


def _attribute(value: str) -> str:
    return quoteattr(_possible(value))


def _possible(text: str) -> str:
    """The text with impossible characters written as Python would: `\\x01`."""
    return _IMPOSSIBLE.sub(lambda found: ascii(found[0])[1:-1], text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
