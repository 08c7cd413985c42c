"""The tool that writes to the graph."""

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.models import Workspace
from accounts.services import require_editor
from common.wording import quoted
from graph import services
from graph.inputs import EdgeInput, NodeInput
from graph.scopes import GraphScope

#: Of each kind in one call.
MAX_ITEMS = 100


def graph_upsert(
    *,
    scope: GraphScope,
    nodes: Sequence[Mapping[str, Any]] = (),
    edges: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Make or change nodes and edges, all or none. Raises Forbidden unless the user may."""
    if scope.user is not None:
        workspace = Workspace.objects.get(pk=scope.workspace_id)
        require_editor(user=scope.user, workspace=workspace)
    done = services.upsert_many(
        scope=scope,
        nodes=[NodeInput(**node) for node in nodes],
        edges=[EdgeInput(**edge) for edge in edges],
    )
    counts = (
        (done.nodes_created, "node(s) made"),
        (done.nodes_updated, "node(s) changed"),
        (done.edges_created, "edge(s) made"),
        (done.edges_updated, "edge(s) changed"),
    )
    told = ", ".join(f"{number} {what}" for number, what in counts if number)
    lines = [f"{told}." if told else "Everything was there already."]
    if done.taken:
        names = ", ".join(map(quoted, done.taken))
        lines.append(f"These names mean another node already: {names}.")
    return "\n".join(lines)
