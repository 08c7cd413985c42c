"""The queue of documents that are to be read for the graph."""

from django.db import models

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.queues import QueuedWork
from documents.models import Collection, Document, IngestionRun


class Extraction(QueuedWork):
    """Queue entry of a document, and the result of its last extraction.

    Written in the transaction that loads the document's passages, so that none is missed.
    Contains no text.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        DEAD = "dead", "given up"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    document = models.OneToOneField(Document, models.CASCADE, related_name="+")
    run = models.ForeignKey(IngestionRun, models.SET_NULL, null=True, blank=True, related_name="+")
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    recipe = models.CharField(
        max_length=64, blank=True, help_text="How it was read: rules or a model, and which version."
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
