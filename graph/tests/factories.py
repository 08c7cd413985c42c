"""Rows for the tests of the graph: valid, small, and consistent with one another."""

from itertools import count
from typing import Any

from accounts.models import Workspace
from documents.models import Chunk
from documents.tests.factories import WorkspaceFactory
from graph.models import Alias, Edge, Evidence, Mention, Node
from graph.querysets import Origin

_NUMBERS = count(1)


def make_node(
    key: str = "", *, workspace: Workspace | None = None, form: str = "", **fields: Any
) -> Node:
    """A given node, of a new workspace where none is given; texts find it by `form` if there is
    one."""
    node = Node.objects.create(
        workspace=workspace or WorkspaceFactory(),
        key=key or f"ent:name:thing {next(_NUMBERS)}",
        **fields,
    )
    if form:
        Alias.objects.create(workspace=node.workspace, node=node, form=form)
    return node


def make_edge(source: Node, rel: str, target: Node, **fields: Any) -> Edge:
    """A given edge between two nodes of a workspace."""
    return Edge.objects.create(
        workspace=source.workspace, source=source, rel=rel, target=target, **fields
    )


def make_mention(chunk: Chunk, node: Node, **fields: Any) -> Mention:
    """The passage names the node, once and in its text."""
    return Mention.objects.create(workspace=chunk.workspace, chunk=chunk, node=node, **fields)


def make_evidence(chunk: Chunk, edge: Edge, **fields: Any) -> Evidence:
    """The passage says what the edge says."""
    return Evidence.objects.create(workspace=chunk.workspace, chunk=chunk, edge=edge, **fields)


def make_extracted(key: str, *chunks: Chunk, **fields: Any) -> Node:
    """A node that these passages tell of, known by its value."""
    form = key.split(":", 2)[-1]
    node = make_node(
        key, workspace=chunks[0].workspace, form=form, origin=Origin.EXTRACTED, **fields
    )
    for chunk in chunks:
        make_mention(chunk, node)
    return node
