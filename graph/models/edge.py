"""Edges, and the passages that say so."""

from django.db import models
from django.db.models.functions import Now

from accounts.models import Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from documents.models import Chunk
from graph.models.node import Node
from graph.origin import Origin
from graph.querysets import EdgeQuerySet

MAX_REL_CHARACTERS = 100
MAX_WEIGHT = 1e9


class Edge(models.Model):
    """One relation between two nodes of a workspace, once. Deleting a node removes its edges: the
    database sees to that."""

    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_constraint=False
    )
    source = models.ForeignKey(
        Node, models.DO_NOTHING, related_name="outgoing", db_index=False, db_constraint=False
    )
    rel = models.CharField("relation", max_length=MAX_REL_CHARACTERS)
    target = models.ForeignKey(
        Node, models.DO_NOTHING, related_name="incoming", db_index=False, db_constraint=False
    )
    weight = models.FloatField(default=1.0)
    props = models.JSONField("properties", default=dict, blank=True)
    origin = models.CharField(max_length=9, choices=Origin, default=Origin.GIVEN)
    updated_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = EdgeQuerySet["Edge"].as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "rel", "target", "workspace"],
                name="edge_source_rel_target_unique",
            ),
            models.CheckConstraint(condition=~models.Q(rel=""), name="edge_rel_check"),
            models.CheckConstraint(
                condition=models.Q(weight__gte=0, weight__lte=MAX_WEIGHT),
                name="edge_weight_check",
            ),
        ]
        indexes = [
            # The most weighty neighbours of a hub without a look at all of them.
            models.Index(
                fields=["source", "-weight", "target", "rel"], name="edge_source_weight_index"
            ),
            models.Index(
                fields=["target", "-weight", "source", "rel"], name="edge_target_weight_index"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.rel} {self.target_id}"


class Evidence(models.Model):
    """A passage that says what an edge says: the sentence between `start` and `end` of its text."""

    pk = models.CompositePrimaryKey("chunk_id", "edge_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    chunk = models.ForeignKey(
        Chunk, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    edge = models.ForeignKey(Edge, models.DO_NOTHING, related_name="evidence", db_constraint=False)
    start = models.PositiveIntegerField(default=0)
    end = models.PositiveIntegerField(default=0)

    objects = WorkspaceOwnedQuerySet["Evidence"].as_manager()

    class Meta:
        verbose_name_plural = "evidence"

    def __str__(self) -> str:
        return f"{self.chunk_id} says {self.edge_id}"
