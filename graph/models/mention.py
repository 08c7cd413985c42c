"""Which passage names which node: what the graph is made of, and its provenance."""

from django.db import models

from accounts.models import Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from documents.models import Chunk
from graph.models.node import Node


class Mention(models.Model):
    """A passage names a node. It goes with the passage: the database sees to that."""

    class Kind(models.IntegerChoices):
        """In the order of `graph.extraction.found.KINDS`."""

        SELF = 0, "is the document's own name or address"
        HEADING = 1, "stands in a heading"
        TEXT = 2, "stands in the text"
        LINK = 3, "a link leads there"

    pk = models.CompositePrimaryKey("chunk_id", "node_id")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    chunk = models.ForeignKey(
        Chunk, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    node = models.ForeignKey(
        Node, models.DO_NOTHING, related_name="mentions", db_index=False, db_constraint=False
    )
    kind = models.PositiveSmallIntegerField(choices=Kind, default=Kind.TEXT)
    count = models.PositiveIntegerField(default=1)
    start = models.PositiveIntegerField(default=0, help_text="Offset in the passage's text.")
    end = models.PositiveIntegerField(default=0)

    objects = WorkspaceOwnedQuerySet["Mention"].as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["node", "chunk"], name="mention_node_chunk_index"),
            # Which document a link leads to, without a look at all that name it.
            models.Index(
                fields=["node", "kind", "chunk"],
                condition=models.Q(kind__in=[0, 3]),
                name="mention_link_index",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chunk_id} mentions {self.node_id}"
