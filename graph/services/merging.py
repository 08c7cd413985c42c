"""Nodes that turn out to be one thing, made one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.errors import InvalidInput, NotFound
from graph.keys import check_id
from graph.reading.resolving import resolve
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope, sight
from graph.storing import merging
from graph.storing.merging import Merge


@dataclass(frozen=True, slots=True)
class Merged:
    """The node that was kept, as it is now, and what was done."""

    node: Vertex
    done: Merge


def merge_nodes(*, scope: GraphScope, keep: str, others: Iterable[str]) -> Merged:
    """Make the nodes called `others` one with `keep`, whose id, name and properties count.

    Labels are united, and properties that `keep` has not are taken over. Every edge stays once: of
    those that become equal one stays, a given one before a found one, with the greatest weight and
    the passages that speak for any of them. Edges from one of the nodes to another go. A passage
    that mentions several mentions the kept one, their counts added. Names and former ids go on to
    find the kept node, so that reading a document again brings nothing back. The node is given if
    one of them was. Raises NotFound where one is not there or cannot be seen, and InvalidInput for
    documents, passages, and a node with itself.
    """
    kept, rest = _resolved(scope, keep, others)
    done = merging.merge(
        sight(scope),
        workspace_id=scope.workspace_id,
        keep=kept.pk,
        others=[vertex.pk for vertex in rest],
    )
    return Merged(node=resolve(sight(scope), [kept.id], props=True)[kept.id], done=done)


def merge_preview(*, scope: GraphScope, keep: str, others: Iterable[str]) -> Merge:
    """What `merge_nodes` would do, as far as the scope may see it. Raises what that raises."""
    kept, rest = _resolved(scope, keep, others)
    return merging.preview(sight(scope), keep=kept.pk, others=[vertex.pk for vertex in rest])


def _resolved(
    scope: GraphScope, keep: str, others: Iterable[str]
) -> tuple[Vertex, Sequence[Vertex]]:
    ids = [check_id(node_id, field="others") for node_id in dict.fromkeys(others)]
    if not ids:
        raise InvalidInput("Name at least one node that is to go into it.", field="others")
    found = resolve(sight(scope), [check_id(keep, field="keep"), *ids])
    if missing := [node_id for node_id in (keep, *ids) if node_id not in found]:
        names = ", ".join(f"“{node_id}”" for node_id in missing[:5])
        raise NotFound(f"There is no node {names}. Look again which there are.")
    if content := next((each for each in found.values() if each.kind != "node"), None):
        raise InvalidInput(
            f"“{content.id}” is a {content.kind}: it stays what it is. Merge nodes only.",
            field="others",
        )
    rest = list({found[node_id].pk: found[node_id] for node_id in ids}.values())
    if any(vertex.pk == found[keep].pk for vertex in rest):
        raise InvalidInput("A node cannot be merged with itself.", field="others")
    return found[keep], rest
