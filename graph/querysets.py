"""Origin of nodes and edges, and querysets with their access rules."""

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy

from accounts.models import WorkspaceOwnedQuerySet
from common.rls import current_collections
from documents.models import Chunk, Document


class Origin(models.TextChoices):
    """Extracted rows are deleted when no passage mentions them; given ones stay."""

    GIVEN = "given", gettext_lazy("given by a person or program")
    EXTRACTED = "extracted", gettext_lazy("found in documents")


M = TypeVar("M", bound=models.Model)


class GraphQuerySet(WorkspaceOwnedQuerySet[M]):
    """Rows that are given, or extracted from passages."""

    #: The reverse relation to the rows that say which passages those are.
    provenance: str

    def visible_to(self, user: Any) -> Self:
        """Given rows of the user's workspaces, and those extracted from a current
        passage that the user may read.
        """
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        readable = Chunk.objects.visible_to(user).filter(is_current=True)
        relation: Any = self.model._meta.get_field(self.provenance)
        own = {relation.field.name: OuterRef("pk")}
        by_passage = Exists(self._related(self.provenance).filter(**own, chunk__in=readable))
        if current_collections() is not None:
            return rows.filter(by_passage)  # what was put in by hand belongs to no collection
        return rows.filter(Q(origin=Origin.GIVEN) | by_passage)

    def _related(self, name: str) -> models.QuerySet[Any]:
        model: Any = self.model._meta.get_field(name).related_model
        queryset: models.QuerySet[Any] = model._default_manager.all()
        return queryset


class NodeQuerySet(GraphQuerySet[M]):
    provenance = "mentions"

    def visible_to(self, user: Any) -> Self:
        """Rows of documents and passages only where the user may read these."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        documents = Document.objects.visible_to(user)
        chunks = Chunk.objects.visible_to(user)
        return rows.filter(
            Q(document=None) | Q(document__in=documents), Q(chunk=None) | Q(chunk__in=chunks)
        )


class EdgeQuerySet(GraphQuerySet[M]):
    provenance = "evidence"

    def visible_to(self, user: Any) -> Self:
        """Only between nodes that the user may see."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        nodes: Any = self._related("source")
        return rows.filter(source__in=nodes.visible_to(user), target__in=nodes.visible_to(user))
