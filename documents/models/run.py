"""Ingestion runs with the outcome of each file, and moves of chunks to another embedding space."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.models import User, Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from documents.models.collection import Collection, EmbeddingSpace
from documents.models.document import Document
from documents.querysets import ItemQuerySet


class IngestionRun(TimestampedModel):
    """One upload, command or request. The counts change in the same transaction as the documents'
    rows, so that they are correct after any crash."""

    class State(models.TextChoices):
        RUNNING = "running", gettext_lazy("Running")
        SUCCEEDED = "succeeded", gettext_lazy("Succeeded")
        PARTIAL = "partial", gettext_lazy("some failed")
        FAILED = "failed", gettext_lazy("Failed")
        CANCELLED = "cancelled", gettext_lazy("Cancelled")

    class Policy(models.TextChoices):
        SKIP_IF_UNCHANGED = "skip_if_unchanged", gettext_lazy("Skip If Unchanged")
        OVERWRITE = "overwrite", gettext_lazy("Overwrite")
        NEW_VERSION = "new_version", gettext_lazy("New Version")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="runs")
    user = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    source = models.CharField(
        max_length=1024, blank=True, help_text=gettext_lazy("What was asked for.")
    )
    policy = models.CharField(max_length=20, choices=Policy, default=Policy.SKIP_IF_UNCHANGED)
    store_once = models.BooleanField(
        default=False,
        help_text=gettext_lazy("A file with the bytes of another document becomes a link to it."),
    )
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    retry_of = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="retries"
    )
    total = models.PositiveIntegerField(default=0)
    ready = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    cancelled = models.PositiveIntegerField(default=0)
    duplicates = models.PositiveIntegerField(
        default=0,
        help_text=gettext_lazy("Files with the bytes of another document of the collection."),
    )
    bytes = models.PositiveBigIntegerField(default=0)
    chunks = models.PositiveBigIntegerField(default=0)
    embedded = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("Chunks that were embedded.")
    )
    tokens = models.PositiveBigIntegerField(default=0)
    mentions = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("What its passages name, as the graph knows it.")
    )
    relations = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("Relations that its passages tell of.")
    )
    timings = models.JSONField(default=dict, blank=True, help_text=gettext_lazy("Seconds a stage."))
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["IngestionRun"].as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"run {self.pk}: {self.source or self.collection}"

    @property
    def settled(self) -> int:
        """Number of files in a final state."""
        return self.ready + self.skipped + self.failed + self.cancelled

    @property
    def is_finished(self) -> bool:
        """Whether the run has ended."""
        return self.finished_at is not None


class IngestionItem(models.Model):
    """One file of a run."""

    class State(models.TextChoices):
        WAITING = "waiting", gettext_lazy("Waiting")
        PARSING = "parsing", gettext_lazy("Parsing")
        EMBEDDING = "embedding", gettext_lazy("Embedding")
        READY = "ready", gettext_lazy("Ready")
        SKIPPED = "skipped", "unchanged"
        FAILED = "failed", gettext_lazy("Failed")
        CANCELLED = "cancelled", gettext_lazy("Cancelled")

    ACTIVE = (State.WAITING, State.PARSING, State.EMBEDDING)

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    run = models.ForeignKey(IngestionRun, models.CASCADE, related_name="items")
    document = models.ForeignKey(
        Document, models.SET_NULL, null=True, blank=True, related_name="items"
    )
    name = models.CharField(max_length=1024)
    size = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    pages_read = models.PositiveIntegerField(
        default=0, db_default=0, help_text=gettext_lazy("Pages that OCR has read.")
    )
    pages_to_read = models.PositiveIntegerField(
        default=0, db_default=0, help_text=gettext_lazy("Pages for OCR, all in all.")
    )
    chunks_embedded = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=gettext_lazy("Chunks of a long document that have their vectors by now."),
    )
    chunks_to_embed = models.PositiveIntegerField(
        default=0,
        db_default=0,
        help_text=gettext_lazy("Chunks of a long document to embed, all in all."),
    )

    objects = ItemQuerySet["IngestionItem"].as_manager()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name

    @property
    def page_being_read(self) -> int:
        """The page that OCR is at, counted among those that it must read; 0 when there is none."""
        is_reading = self.state == self.State.PARSING and self.pages_read < self.pages_to_read
        return self.pages_read + 1 if is_reading else 0

    @property
    def is_embedding_slices(self) -> bool:
        """Whether it is a long document on its way through the model."""
        return self.state == self.State.EMBEDDING and self.chunks_to_embed > 0


class Reembedding(TimestampedModel):
    """A move of one collection, or of all, to another space.

    Progress is in the chunks themselves: those not in `target` yet remain to be moved, so it can be
    stopped or killed at any point and resumed.
    """

    class State(models.TextChoices):
        RUNNING = "running", gettext_lazy("Running")
        STOPPED = "stopped", gettext_lazy("Stopped")
        FAILED = "failed", gettext_lazy("Failed")
        DONE = "done", gettext_lazy("Done")

    target = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="reembeddings")
    collection = models.ForeignKey(
        Collection,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text=gettext_lazy("Empty: all."),
    )
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    total = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("Chunks to move, at the start.")
    )
    done = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("Chunks moved since then.")
    )
    sources = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        help_text=gettext_lazy("Spaces that chunks came from."),
    )
    refused = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        editable=False,
        help_text=gettext_lazy("Chunks whose text the model gives no usable vector for."),
    )
    error = models.TextField(blank=True)
    # Of its worker: one that was presumed dead and comes back changes nothing.
    token = models.UUIDField(null=True, editable=False)
    seen_at = models.DateTimeField(default=timezone.now, editable=False)
    started_at = models.DateTimeField(default=timezone.now, editable=False)
    finished_at = models.DateTimeField(null=True, editable=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-id"]
        verbose_name = "re-embedding"
        constraints = [
            models.UniqueConstraint(
                fields=["target", "collection"],
                condition=~models.Q(state="done"),
                nulls_distinct=False,
                name="reembedding_target_collection_unique",
            )
        ]

    def __str__(self) -> str:
        return f"{self.collection or 'everything'} into {self.target.name}"

    @property
    def share(self) -> float:
        """Fraction of the chunks that were moved, 0..1."""
        if self.state == self.State.DONE:
            return 1.0
        return min(1.0, self.done / self.total) if self.total else 0.0
