"""Nodes, and the names by which texts are known to mean them."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models

from accounts.models import Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from documents.models import Chunk, Document
from graph.origin import Origin
from graph.querysets import NodeQuerySet

MAX_KEY_CHARACTERS = 1024
MAX_FORM_CHARACTERS = 300


class Node(TimestampedModel):
    """One thing: somebody, somewhere, a term, or whatever a caller says.

    `key` is its id to the outside, such as `ent:name:ada lovelace`. Documents and passages are
    nodes without a row here (`doc:…`, `chunk:…`); they get one, which goes with them, only when an
    edge of a caller hangs on them.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    key = models.CharField("id", max_length=MAX_KEY_CHARACTERS)
    name = models.TextField(blank=True, help_text="As people read it. Empty: its id.")
    labels = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    props = models.JSONField("properties", default=dict, blank=True)
    origin = models.CharField(max_length=9, choices=Origin, default=Origin.GIVEN)
    is_stub = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="Nobody described it: an edge hangs on it, and it goes with the last one.",
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
            # Few nodes stand for one: the others pay nothing for it.
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
    """A normalised name (`graph.extraction.forms.form`) that means one node of the workspace.

    Texts and questions are read by these. Merged nodes leave theirs to the one that stays, so that
    reading a document again does not bring them back.
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
