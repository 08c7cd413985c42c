"""What a run of a pipeline did, step by step."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import User, Workspace
from rag.querysets import OwnQuerySet, SpanQuerySet


class Trace(models.Model):
    """One run. It holds texts of documents, like an answer: `documents` are those, and a trigger
    (migration 0001) empties it and its spans when one of them is deleted. `removed_at` tells."""

    class State(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        TIMED_OUT = "timed_out", "timed out"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    pipeline = models.CharField(max_length=63)
    version = models.PositiveIntegerField(
        null=True, blank=True, help_text="Of the pipeline. Empty: a template, or one of no name."
    )
    definition = models.JSONField(default=dict, blank=True)
    question = models.TextField(blank=True)
    answer = models.TextField(blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.RUNNING)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    documents = ArrayField(models.BigIntegerField(), default=list, editable=False)
    sources = models.JSONField(
        default=list,
        blank=True,
        editable=False,
        help_text="Of each passage that was found: its number, document and chunk. No text.",
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = OwnQuerySet["Trace"].as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(fields=["workspace", "user", "-started_at"], name="trace_recent_index"),
            models.Index(
                fields=["workspace", "pipeline", "-started_at"], name="trace_pipeline_index"
            ),
            models.Index(fields=["started_at"], name="trace_age_index"),
            GinIndex(fields=["documents"], name="trace_documents_index"),
        ]

    def __str__(self) -> str:
        return f"Run {self.pk} of {self.pipeline}"


class Span(models.Model):
    """A step of a run: a node, or within it (`parent`) a call of the model or of a tool.

    `ordinal` is its place in the order in which the run tells its steps. `input` and `output` are
    texts as far as they are kept; `is_cut` says that they were longer.
    """

    class Kind(models.TextChoices):
        NODE = "node"
        MODEL = "model", "model call"
        TOOL = "tool", "tool call"

    class State(models.TextChoices):
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    trace = models.ForeignKey(Trace, models.CASCADE, related_name="spans", db_index=False)
    parent = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="children"
    )
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=5, choices=Kind)
    node = models.CharField(max_length=63, help_text="Id of the node that it belongs to.")
    type = models.CharField(max_length=63, help_text="Of the node; the model's or tool's name.")
    iteration = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=9, choices=State, default=State.DONE)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    input = models.TextField(blank=True)
    output = models.TextField(blank=True)
    is_cut = models.BooleanField(default=False)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True)

    objects = SpanQuerySet["Span"].as_manager()

    class Meta:
        ordering = ["trace", "ordinal"]
        constraints = [
            models.UniqueConstraint(
                fields=["trace", "ordinal", "workspace"], name="span_trace_ordinal_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.node}"

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return (self.ended_at - self.started_at).total_seconds() * 1000
