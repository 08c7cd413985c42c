"""Nodes and edges as plain data, for JSON, and in words."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from common.wording import counted
from graph.reading.results import Link, Truncated
from graph.reading.vertices import Vertex


def vertex_of(vertex: Vertex) -> dict[str, Any]:
    told = {
        "id": vertex.id,
        "kind": vertex.kind,
        "name": vertex.name,
        "labels": list(vertex.labels),
        "origin": vertex.origin,
    }
    return told if vertex.props is None else {**told, "props": dict(vertex.props)}


def link_of(link: Link) -> dict[str, Any]:
    return asdict(link)


def truncated_in_words(truncated: Truncated) -> Iterator[str]:
    """What was left out, if anything was."""
    if truncated.work:
        yield "given up: too much to look at"
    if truncated.hubs:
        yield f"only the weightiest neighbours of {counted(len(truncated.hubs), 'node')} were"
        " looked at"
