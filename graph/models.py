"""The knowledge graph: nodes, edges, the passages that both come from, and the extraction of
documents."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from common.queues import QueuedWork
from documents.models import Chunk, Collection, Document, IngestionRun
from graph.querysets import EdgeQuerySet, NodeQuerySet, Origin

MAX_KEY_CHARACTERS = 1024
MAX_FORM_CHARACTERS = 300


class Node(TimestampedModel):
    """A thing: person, place, term, or whatever a caller describes.

    `key` is its public id, such as `ent:name:ada lovelace`. Documents and passages are nodes
    without a row (`doc:…`, `chunk:…`); they get one, deleted with them, only for edges of
    callers.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField("id", max_length=MAX_KEY_CHARACTERS)
    name = models.TextField(
        blank=True, help_text=gettext_lazy("The displayed name. Empty: its id.")
    )
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    props = models.JSONField("properties", default=dict, blank=True)
    origin = models.CharField(max_length=9, choices=Origin, default=Origin.GIVEN)
    is_stub = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=gettext_lazy(
            "Created by an edge, without a description; deleted with its last edge."
        ),
    )
    document = models.ForeignKey(
        Document,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        editable=False,
        db_index=False,
    )
    # In the database this one cascades: chunks are removed by the thousand, without Django's eyes.
    chunk = models.ForeignKey(
        Chunk,
        models.DO_NOTHING,
        null=True,
        blank=True,
        related_name="+",
        editable=False,
        db_index=False,
        db_constraint=False,
    )

    objects = NodeQuerySet["Node"].as_manager()

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "key"], name="node_workspace_key_unique"),
            models.CheckConstraint(condition=~models.Q(key=""), name="node_key_check"),
        ]
        indexes = [
            GinIndex(OpClass("name", name="gin_trgm_ops"), name="node_name_index"),
            GinIndex(fields=["labels"], name="node_labels_index"),
            # Partial: few nodes stand for a document.
            models.Index(
                fields=["document"],
                condition=models.Q(document__isnull=False),
                name="node_document_index",
            ),
            models.Index(
                fields=["chunk"],
                condition=models.Q(chunk__isnull=False),
                name="node_chunk_index",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.key})" if self.name else self.key


class Alias(models.Model):
    """A normalised name that means one node of the workspace, in texts and questions.

    Merged nodes leave theirs to the node that is kept, so that new extractions do not bring
    them back.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    form = models.CharField(max_length=MAX_FORM_CHARACTERS)
    # In the database this one cascades, too.
    node = models.ForeignKey(Node, models.DO_NOTHING, related_name="aliases", db_constraint=False)

    objects = WorkspaceOwnedQuerySet["Alias"].as_manager()

    class Meta:
        ordering = ["form"]
        verbose_name_plural = "aliases"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "form"], name="alias_workspace_form_unique"
            )
        ]

    def __str__(self) -> str:
        return self.form


MAX_REL_CHARACTERS = 100
MAX_WEIGHT = 1e9


class Edge(models.Model):
    """A relation between two nodes of a workspace; unique by source, relation and
    target. Deleted with its nodes, by the database.
    """

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
    """A passage that states an edge, in the sentence from `start` to `end` of its text."""

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


class Mention(models.Model):
    """A passage mentions a node. Deleted with the passage, by the database."""

    class Kind(models.IntegerChoices):
        """In the order of `graph.extraction.mentions.KINDS`."""

        SELF = 0, gettext_lazy("name or address of the document")
        HEADING = 1, gettext_lazy("in a heading")
        TEXT = 2, gettext_lazy("in the text")
        LINK = 3, gettext_lazy("target of a link")

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
    start = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Offset in the passage's text.")
    )
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


class Extraction(QueuedWork):
    """Queue entry of a document, and the result of its last extraction.

    Written in the transaction that loads the document's passages, so that none is missed.
    Contains no text.
    """

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        RUNNING = "running", gettext_lazy("Running")
        DONE = "done", gettext_lazy("Done")
        DEAD = "dead", gettext_lazy("given up")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    document = models.OneToOneField(Document, models.CASCADE, related_name="+")
    run = models.ForeignKey(IngestionRun, models.SET_NULL, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    recipe = models.CharField(
        max_length=64,
        blank=True,
        help_text=gettext_lazy("Extraction method and version."),
    )
    mentions = models.PositiveIntegerField(default=0)
    relations = models.PositiveIntegerField(default=0)
    extracted_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["Extraction"].as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["due_at"],
                condition=models.Q(state__in=["waiting", "running"]),
                name="extraction_unfinished_index",
            ),
        ]

    def __str__(self) -> str:
        return f"Extraction of document {self.document_id}"


__all__ = [
    "MAX_WEIGHT",
    "Alias",
    "Edge",
    "Evidence",
    "Extraction",
    "Mention",
    "Node",
    "Origin",
]
