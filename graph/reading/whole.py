"""The whole graph of a scope, batch by batch: nodes and documents, and what relates them.

Passages are left out: they are parts of documents, and there are too many.
"""

from collections.abc import Iterator

from graph.reading.linking import links_of
from graph.reading.results import Link
from graph.reading.statements import piece, rows
from graph.reading.steps import Follow, step
from graph.reading.vertices import Kind, Ref, Vertex, load
from graph.scopes import Sight

BATCH = 1_000
#: Of each vertex so many relations of a kind are told.
FAN = 1_000_000
MENTIONS = 10_000_000


def all_vertices(seen: Sight) -> Iterator[tuple[Vertex, ...]]:
    """All nodes, then all documents, with their properties."""
    kinds: tuple[tuple[Kind, str], ...] = (
        ("node", piece("all_nodes").format(node=seen.node("node"))),
        ("document", piece("all_documents").format(document=seen.listed("document"))),
    )
    for kind, statement in kinds:
        after = 0
        while found := rows(statement, seen.parameters | {"after": after, "limit": BATCH}):
            after = found[-1][0]
            vertices = load(seen, [Ref(kind, pk) for (pk,) in found], props=True)
            yield tuple(vertices[ref] for ref in sorted(vertices))


def all_links(
    seen: Sight, ids: dict[Ref, str], rels: tuple[str, ...] = ()
) -> Iterator[tuple[Link, ...]]:
    """All relations among vertices of these ids, each batch from some of them."""
    follow = Follow(rels=rels, direction="out")
    refs = list(ids)
    for start in range(0, len(refs), BATCH):
        here = refs[start : start + BATCH]
        stepped = step(seen, here, follow, fan=FAN, mentions=MENTIONS)
        yield links_of(stepped.steps, ids)
