"""The graph for other programs."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from graph.reading.graphml import HEAD, TAIL, edges_text, nodes_text
from graph.reading.results import Subgraph
from graph.reading.vertices import Ref
from graph.reading.whole import all_links, all_vertices
from graph.scopes import GraphScope, Sight, sight
from graph.services.reading import subgraph


def export_graphml(
    *,
    scope: GraphScope,
    ids: Sequence[str] = (),
    hops: int = 1,
    cap: int = 1_000,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Iterator[bytes]:
    """GraphML, part by part: of what is around `ids`, or else of all nodes and documents that the
    scope may see, with the relations among them.

    Its node ids are ours; characters that XML cannot hold are written as `\\x01`. `labels` and
    `props` are JSON. Raises NotFound and InvalidInput, before the first part.
    """
    if not ids:
        return _whole(sight(scope), tuple(rels), frozenset(labels))
    return _part(
        subgraph(scope=scope, ids=ids, hops=hops, cap=cap, rels=rels, labels=labels, props=True)
    )


def export_cytoscape(subgraph: Subgraph) -> dict[str, Any]:
    """A subgraph as cytoscape.js reads it, with what was left out in `truncated`."""
    truncated = subgraph.truncated
    return {
        "elements": {
            "nodes": [
                {
                    "data": {
                        "id": vertex.id,
                        "name": vertex.name,
                        "labels": list(vertex.labels),
                        "kind": vertex.kind,
                        "degree": subgraph.degrees.get(vertex.id, 0),
                        "origin": vertex.origin,
                    }
                }
                for vertex in subgraph.vertices
            ],
            "edges": [
                {
                    "data": {
                        "id": json.dumps([link.source, link.rel, link.target], ensure_ascii=False),
                        "source": link.source,
                        "target": link.target,
                        "rel": link.rel,
                        "weight": link.weight,
                        "origin": link.origin,
                    }
                }
                for link in subgraph.links
            ],
        },
        "truncated": {
            "limit": truncated.limit,
            "hubs": list(truncated.hubs),
            "work": truncated.work,
        },
    }


def _part(found: Subgraph) -> Iterator[bytes]:
    yield HEAD.encode()
    yield nodes_text(found.vertices).encode()
    yield edges_text(found.links).encode()
    yield TAIL.encode()


def _whole(seen: Sight, rels: tuple[str, ...], labels: frozenset[str]) -> Iterator[bytes]:
    ids: dict[Ref, str] = {}
    yield HEAD.encode()
    for vertices in all_vertices(seen):
        told = [each for each in vertices if not labels or not labels.isdisjoint(each.labels)]
        ids |= {each.ref: each.id for each in told}
        yield nodes_text(told).encode()
    for links in all_links(seen, ids, rels):
        yield edges_text(links).encode()
    yield TAIL.encode()
