"""What people changed in the texts of documents."""

from django.db import models

from accounts.models import User, Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from documents.models.document import Document


class ChunkEdit(models.Model):
    """One change of one passage: the passage before and after.

    It outlives the passage: when the document is ingested again it is applied again, wherever
    `before` stands then. Where that is gone it is a conflict, until somebody dismisses it.
    """

    class State(models.TextChoices):
        APPLIED = "applied"
        CONFLICT = "conflict", "not applied: the source has changed there"
        UNDONE = "undone"
        CLOSED = "closed"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    document = models.ForeignKey(Document, models.CASCADE, related_name="edits")
    chunk = models.BigIntegerField(help_text="Id of the passage; it may be gone since.")
    start = models.PositiveBigIntegerField(help_text="Offset of the passage when it was changed.")
    before = models.TextField()
    after = models.TextField()
    state = models.CharField(max_length=8, choices=State, default=State.APPLIED)
    user = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    settled_by = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="Who undid or dismissed it.",
    )
    settled_at = models.DateTimeField(null=True, blank=True)

    objects = WorkspaceOwnedQuerySet["ChunkEdit"].as_manager()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        # Without its text: the admin's log keeps this for ever.
        return f"Edit {self.pk} of document {self.document_id}"
