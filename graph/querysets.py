"""Chainable reads of the graph."""

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Exists, OuterRef, Q

from accounts.querysets import WorkspaceOwnedQuerySet
from documents.models import Chunk, Document
from graph.origin import Origin

M = TypeVar("M", bound=models.Model)


def _seen_through(link: type[models.Model], column: str, user: Any) -> Exists:
    """Whether a passage that the user may read, of a current version, is behind the row."""
    readable = Chunk.objects.visible_to(user).filter(is_current=True)
    return Exists(link._default_manager.filter(**{column: OuterRef("pk")}, chunk__in=readable))


class NodeQuerySet(WorkspaceOwnedQuerySet[M]):
    """Nodes: whoever learnt of one from a document must be able to read it."""

    def visible_to(self, user: Any) -> Self:
        """Given ones of the user's workspaces; of those found in documents what the user may read
        there; documents and passages themselves under their own access lists."""
        from graph.models import Mention  # noqa: PLC0415 (models are made of these)

        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        documents = Document.objects.visible_to(user)
        chunks = Chunk.objects.visible_to(user)
        return rows.filter(
            Q(document=None) | Q(document__in=documents), Q(chunk=None) | Q(chunk__in=chunks)
        ).filter(Q(origin=Origin.GIVEN) | _seen_through(Mention, "node", user))


class EdgeQuerySet(WorkspaceOwnedQuerySet[M]):
    """Edges: seen by those who see both ends, and what says so."""

    def visible_to(self, user: Any) -> Self:
        """Given ones, and those with evidence that the user may read, between visible nodes."""
        from graph.models import Evidence, Node  # noqa: PLC0415 (likewise)

        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        nodes = Node.objects.visible_to(user)
        return rows.filter(source__in=nodes, target__in=nodes).filter(
            Q(origin=Origin.GIVEN) | _seen_through(Evidence, "edge", user)
        )
