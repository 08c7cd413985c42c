"""Conversations with their messages, pipelines, connections to catalogued databases, traces of
pipeline runs with their spans, and summaries of documents."""

from typing import Any, Self, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.utils.translation import gettext_lazy

from accounts.models import User, Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from documents.models import Collection

ModelT = TypeVar("ModelT", bound=models.Model)


class UserOwnedQuerySet(WorkspaceOwnedQuerySet[ModelT]):
    """Rows that belong to one user alone: other members of the workspace cannot read them."""

    #: Path from a row to its user, which may go through another row.
    user_field = "user"

    def visible_to(self, user: Any) -> Self:
        """The user's own rows in workspaces the user is a member of."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(**{self.user_field: user})


class MessageQuerySet(UserOwnedQuerySet[ModelT]):
    """Messages belong to the user of their conversation."""

    user_field = "conversation__user"


class SpanQuerySet(UserOwnedQuerySet[ModelT]):
    """Spans belong to the user of their trace."""

    user_field = "trace__user"


class Conversation(TimestampedModel):
    """A user's questions and their answers. `updated_at` is when the last message was written."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    collections = ArrayField(
        models.SlugField(max_length=63),
        default=list,
        blank=True,
        help_text=gettext_lazy("Slugs of those that were asked last. None: all."),
    )
    pipeline = models.CharField(
        max_length=63, blank=True, help_text=gettext_lazy("That was asked last.")
    )

    objects = UserOwnedQuerySet["Conversation"].as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [
            models.Index(
                fields=["workspace", "user", "-updated_at"], name="conversation_recent_index"
            )
        ]

    def __str__(self) -> str:
        # Without the question: the admin log keeps this text for ever.
        return f"Conversation {self.pk}"


class Message(models.Model):
    """A question, or an answer with its sources.

    An answer quotes documents. `documents` are all whose text it may contain, also through earlier
    messages: when one of them is deleted, a trigger (migration 0001) clears the message in the same
    transaction, whichever way the document is deleted.
    """

    class Role(models.TextChoices):
        USER = "user", gettext_lazy("User")
        ASSISTANT = "assistant", gettext_lazy("Assistant")

    class State(models.TextChoices):
        RUNNING = "running", gettext_lazy("being answered")
        COMPLETE = "complete", gettext_lazy("Complete")
        STOPPED = "stopped", gettext_lazy("Stopped")
        FAILED = "failed", gettext_lazy("Failed")
        REMOVED = "removed", gettext_lazy("removed with a document")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    role = models.CharField(max_length=9, choices=Role)
    state = models.CharField(max_length=8, choices=State, default=State.COMPLETE)
    content = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    model = models.CharField(max_length=200, blank=True)
    generator = models.CharField(max_length=10, blank=True)
    pipeline = models.CharField(max_length=63, blank=True)
    passages = models.JSONField(
        default=list, blank=True, help_text=gettext_lazy("What was found, without the texts.")
    )
    citations = models.JSONField(default=list, blank=True)
    verdict = models.JSONField(default=dict, blank=True)
    tables = models.JSONField(
        null=True, blank=True, help_text=gettext_lazy("What was computed, or what may be meant.")
    )
    memory = models.JSONField(null=True, blank=True, help_text=gettext_lazy("What memory added."))
    degraded = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    finish_reason = models.CharField(max_length=10, blank=True)
    reasoning = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("What the model thought: no part of the answer."),
    )
    reasoning_ms = models.FloatField(null=True, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    elapsed_ms = models.FloatField(null=True, blank=True)
    first_token_ms = models.FloatField(null=True, blank=True)
    documents = ArrayField(models.BigIntegerField(), default=list, editable=False)
    trace = models.ForeignKey(
        "rag.Trace", models.SET_NULL, null=True, blank=True, related_name="messages"
    )

    objects = MessageQuerySet["Message"].as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=["user", "assistant"]), name="message_role_check"
            ),
        ]
        indexes = [
            GinIndex(fields=["documents"], name="message_documents_index"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state="running"),
                name="message_running_index",
            ),
        ]

    def __str__(self) -> str:
        return f"Message {self.pk}"


class Pipeline(TimestampedModel):
    """A definition under a name; it takes precedence over a template of the same slug. `version`
    counts its changes."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    definition = models.JSONField(
        help_text=gettext_lazy("Nodes and edges: docs/reference/pipelines.md.")
    )
    version = models.PositiveIntegerField(default=1)
    changed_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )

    objects = WorkspaceOwnedQuerySet["Pipeline"].as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "slug"], name="pipeline_workspace_slug_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_template(self) -> bool:
        """Whether it comes with the site: it has no row, no version and no date."""
        return self.pk is None


class DatabaseConnection(TimestampedModel):
    """A connection on which queries over a catalogued database may be run: that of the tables in
    `collection` whose catalogue calls it `database`. Its role only reads."""

    class Encryption(models.TextChoices):
        """As libpq calls them."""

        VERIFY = "verify-full", gettext_lazy("TLS, certificate checked")
        REQUIRE = "require", gettext_lazy("TLS")
        PREFER = "prefer", gettext_lazy("TLS where the server has it")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    name = models.CharField(max_length=200)
    address = models.CharField(max_length=500, help_text="Without a login.")
    database = models.CharField(max_length=500, help_text="What its catalogue calls it.")
    username = models.CharField(max_length=200)
    credentials = models.BinaryField(
        default=bytes, editable=False, help_text="The password, encrypted."
    )
    encryption = models.CharField(max_length=20, choices=Encryption)
    seconds = models.PositiveSmallIntegerField(help_text="That a query may take.")
    max_rows = models.PositiveSmallIntegerField(help_text="Of an answer.")
    access = ArrayField(
        models.CharField(max_length=80),
        null=True,
        blank=True,
        help_text="Who may run queries, such as group:3. Empty: who sees the tables.",
    )
    is_enabled = models.BooleanField(default=True, help_text="Whether queries are run.")
    by_operator = models.BooleanField(
        default=False,
        help_text="Set by the operator of the site: it may lead into the site's own network.",
    )
    server_version = models.CharField(max_length=100, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["DatabaseConnection"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = "database connection"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"], name="databaseconnection_name_unique"
            ),
            models.UniqueConstraint(
                fields=["workspace", "collection", "database"],
                name="databaseconnection_database_unique",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Trace(models.Model):
    """One pipeline run. It contains texts of `documents`, like an answer: when one of them is
    deleted, a trigger (migration 0001) clears the trace and its spans and sets `removed_at`."""

    class State(models.TextChoices):
        RUNNING = "running", gettext_lazy("Running")
        DONE = "done", gettext_lazy("Done")
        FAILED = "failed", gettext_lazy("Failed")
        CANCELLED = "cancelled", gettext_lazy("Cancelled")
        TIMED_OUT = "timed_out", gettext_lazy("timed out")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    pipeline = models.CharField(max_length=63)
    version = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Of the pipeline. Empty: a template, or one of no name."),
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
        help_text=gettext_lazy(
            "Of each passage that was found: its number, document and chunk. No text."
        ),
    )
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = UserOwnedQuerySet["Trace"].as_manager()

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
    """A step of a run: a node, or within it (`parent`) a call of the model or of a tool. `ordinal`
    is its place in the order of steps. `input` and `output` are truncated; `is_cut` says that they
    were longer."""

    class Kind(models.TextChoices):
        NODE = "node", gettext_lazy("Node")
        MODEL = "model", gettext_lazy("model call")
        TOOL = "tool", gettext_lazy("tool call")

    class State(models.TextChoices):
        DONE = "done", gettext_lazy("Done")
        FAILED = "failed", gettext_lazy("Failed")
        CANCELLED = "cancelled", gettext_lazy("Cancelled")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    trace = models.ForeignKey(Trace, models.CASCADE, related_name="spans", db_index=False)
    parent = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="children"
    )
    ordinal = models.PositiveIntegerField()
    kind = models.CharField(max_length=5, choices=Kind)
    node = models.CharField(
        max_length=63, help_text=gettext_lazy("Id of the node that it belongs to.")
    )
    type = models.CharField(
        max_length=63, help_text=gettext_lazy("Of the node; the model's or tool's name.")
    )
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
        return (self.ended_at - self.started_at).total_seconds() * 1000


class Summary(TimestampedModel):
    """What some passages are about, as it was made from exactly these: another text, or another
    choice of documents, has another `fingerprint`. Whoever may read all the passages may read it.

    It goes with any of its documents, and when the text of one changes: by a trigger.
    """

    class Kind(models.TextChoices):
        ABOUT = "about", "what it is about"
        SUMMARY = "summary"

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of its passages.")
    kind = models.CharField(max_length=7, choices=Kind)
    model = models.CharField(max_length=200, blank=True, help_text="None: sentences are quoted.")
    state = models.CharField(max_length=7, choices=State, default=State.DONE)
    text = models.TextField(blank=True)
    citations = models.JSONField(default=list, blank=True)
    documents = ArrayField(models.BigIntegerField(), default=list, editable=False)
    chunks = ArrayField(
        models.BigIntegerField(),
        default=list,
        editable=False,
        help_text="The passages that were read, the most central ones of a long text.",
    )
    passage_count = models.PositiveIntegerField(default=0, help_text="Of the whole text.")
    user = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who had a chat model write it.",
    )
    calls_done = models.PositiveSmallIntegerField(default=0)
    calls_total = models.PositiveSmallIntegerField(default=0)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["Summary"].as_manager()

    class Meta:
        verbose_name_plural = "summaries"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "fingerprint", "kind", "model"],
                name="summary_workspace_fingerprint_kind_model_unique",
            )
        ]
        indexes = [
            GinIndex(fields=["documents"], name="summary_documents_index"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state__in=["waiting", "running"]),
                name="summary_unfinished_index",
            ),
        ]

    def __str__(self) -> str:
        return f"Summary {self.pk}"

    @property
    def is_unfinished(self) -> bool:
        """Whether a chat model is still to write it, or writes it now."""
        return self.state in (self.State.WAITING, self.State.RUNNING)

    @property
    def is_sampled(self) -> bool:
        """Whether a part of the passages was read only."""
        return len(self.chunks) < self.passage_count
