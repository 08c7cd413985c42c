"""Documents, and what is known of one that waits for its vectors."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.utils.translation import gettext_lazy

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.models import TimestampedModel
from documents.models.collection import Collection, EmbeddingSpace
from documents.querysets import DocumentQuerySet


class Document(TimestampedModel):
    """A document: its text is in its chunks.

    `status` is that of the newest ingestion. While a changed document is processed, or when that
    fails, the chunks of the previous text stay searchable: readers see the old or the new text,
    never a mix.
    """

    class Status(models.TextChoices):
        QUEUED = "queued", gettext_lazy("Queued")
        PROCESSING = "processing", gettext_lazy("Processing")
        READY = "ready", gettext_lazy("Ready")
        FAILED = "failed", gettext_lazy("Failed")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="documents")
    key = models.CharField(
        max_length=1024, help_text=gettext_lazy("The caller's id, or the source's path.")
    )
    version = models.PositiveIntegerField(default=1)
    is_current = models.BooleanField(default=True)
    title = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=1024, blank=True)
    url = models.URLField(max_length=2000, blank=True)
    media_type = models.CharField(max_length=100, blank=True)
    rendering = models.CharField(max_length=10, default="plain")
    language = models.CharField(max_length=20, blank=True, help_text=gettext_lazy("ISO code."))
    metadata = models.JSONField(default=dict, blank=True)
    declared = models.JSONField(
        default=dict,
        blank=True,
        help_text=gettext_lazy("What the caller said of it; goes before the file."),
    )
    corrections = models.JSONField(
        default=dict,
        blank=True,
        help_text=gettext_lazy(
            "What people set here: `title`, `metadata`, `without`. It goes before all that"
            " a source says, also when that is ingested again."
        ),
    )
    access = ArrayField(models.CharField(max_length=80), null=True, blank=True)
    file = models.FileField(upload_to="documents/%Y/%m/", max_length=300, blank=True)
    size = models.PositiveBigIntegerField(default=0, help_text=gettext_lazy("Bytes of the source."))

    source_sha256 = models.CharField(max_length=64, blank=True)
    duplicate_of = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="duplicates",
        help_text=gettext_lazy("The first document of the collection with the same bytes."),
    )
    content_sha256 = models.CharField(max_length=64, blank=True)
    recipe = models.CharField(
        max_length=64,
        blank=True,
        help_text=gettext_lazy("Hash of how the text was cut and embedded."),
    )
    chunk_count = models.PositiveIntegerField(default=0)
    token_count = models.PositiveBigIntegerField(default=0)

    tokens_model = models.CharField(
        max_length=200,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text=gettext_lazy("The token encoder that has read all of its passages."),
    )

    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    claimed_by = models.UUIDField(null=True, editable=False)
    claimed_until = models.DateTimeField(null=True, editable=False)
    indexed_at = models.DateTimeField(null=True, blank=True)

    objects = DocumentQuerySet["Document"].as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "key", "version", "workspace"],
                name="document_collection_key_version_unique",
            ),
            models.UniqueConstraint(
                fields=["collection", "key", "workspace"],
                condition=models.Q(is_current=True),
                name="document_current_key_unique",
            ),
        ]
        indexes = [
            models.Index(
                fields=["claimed_until"],
                condition=models.Q(status__in=["queued", "processing"]),
                name="document_unfinished_index",
            ),
            # Finds what a token encoder has not read.
            models.Index(
                fields=["tokens_model"],
                condition=models.Q(is_current=True, status="ready", chunk_count__gt=0),
                name="document_tokens_model_index",
            ),
            # Finds duplicates.
            models.Index(fields=["collection", "source_sha256"], name="document_source_index"),
            # Finds documents while their title is typed.
            GinIndex(OpClass("title", name="gin_trgm_ops"), name="document_title_index"),
        ]

    def __str__(self) -> str:
        return self.title or self.key

    @property
    def display_title(self) -> str:
        """The title, else the source, else the key."""
        return self.title or self.source or self.key

    def is_unchanged(self, policy: str, source_sha256: str, recipe: str) -> bool:
        """Whether the policy allows skipping it: same bytes, same recipe."""
        return (
            policy != "overwrite"
            and self.status == self.Status.READY
            and self.source_sha256 == source_sha256
            and self.recipe == recipe
        )

    @property
    def is_link(self) -> bool:
        """Whether its text is stored with the original, the first document with the same bytes."""
        return self.duplicate_of_id is not None and self.chunk_count == 0

    @property
    def text_id(self) -> int:
        """Id of the document that has the chunks of its text."""
        return self.duplicate_of_id if self.is_link and self.duplicate_of_id else self.pk

    @property
    def has_text(self) -> bool:
        """Whether any text of it, perhaps a previous one, was ever loaded."""
        return self.chunk_count > 0 or self.is_link or self.status == self.Status.READY

    @property
    def is_searchable(self) -> bool:
        """Whether any text of it, perhaps a previous one, is searchable."""
        return self.is_current and (self.chunk_count > 0 or self.is_link)

    @property
    def versions(self) -> "models.QuerySet[Document]":
        """All versions of the document, including itself, newest first."""
        rows = Document.objects.filter(collection_id=self.collection_id, key=self.key)
        return rows.order_by("-version")


class StagedDocument(models.Model):
    """Parsed and chunked, not yet embedded: passed from the `ingest` to the `embed` queue.

    In the database, because the embed worker may run on a host without the uploaded files.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    document = models.OneToOneField(Document, models.CASCADE, related_name="staged")
    payload = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["StagedDocument"].as_manager()

    def __str__(self) -> str:
        return f"staged: {self.document_id}"


class StagedVectors(models.Model):
    """Vectors of some chunks of a long document that is not loaded yet.

    Kept slice by slice, so that nothing is embedded twice, whatever happens to the worker. They go
    when the document is loaded, cancelled or deleted.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="staged_vectors")
    space = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="+")
    digests = ArrayField(
        models.CharField(max_length=64), help_text=gettext_lazy("Content hashes of the chunks.")
    )
    vectors = models.BinaryField(
        help_text=gettext_lazy("float32 (chunks, dimensions), in the order of the hashes.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["StagedVectors"].as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = "staged vectors"
        verbose_name_plural = "staged vectors"

    def __str__(self) -> str:
        return f"staged vectors: {self.document_id}"


class ScannedPage(models.Model):
    """What OCR read on a page that has no text of its own: of a scanned PDF, or a picture.

    Kept as soon as it is read, so that nothing is read twice. `source_sha256` is that of the bytes
    it was read from, which while a changed document is processed are not yet the document's.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="scanned_pages")
    source_sha256 = models.CharField(max_length=64)
    page = models.PositiveIntegerField(help_text=gettext_lazy("From 1."))
    engine = models.CharField(max_length=40)
    text = models.TextField(blank=True)
    lines = models.JSONField(
        default=list,
        help_text=gettext_lazy(
            "In reading order: `box` (left, top, right, bottom as fractions of the shown"
            " page), `confidence`, and `words`, each a text and the four numbers of its box."
        ),
    )
    confidence = models.FloatField(help_text=gettext_lazy("Mean over its characters, 0 to 1."))
    rotation = models.PositiveSmallIntegerField(
        default=0, help_text=gettext_lazy("Degrees clockwise that set the page upright.")
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["ScannedPage"].as_manager()

    class Meta:
        ordering = ["document", "page"]
        constraints = [
            models.UniqueConstraint(
                fields=["document", "source_sha256", "page", "workspace"],
                name="scannedpage_document_source_page_unique",
            )
        ]
        indexes = [
            # Finds what was read of the same bytes.
            models.Index(fields=["source_sha256", "page"], name="scannedpage_source_index")
        ]

    def __str__(self) -> str:
        # Without its text: the admin's log keeps this for ever.
        return f"Page {self.page} of document {self.document_id}"
