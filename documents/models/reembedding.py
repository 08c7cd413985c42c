"""Moving chunks to another embedding space."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from common.models import TimestampedModel
from documents.models.collection import Collection
from documents.models.space import EmbeddingSpace


class Reembedding(TimestampedModel):
    """One move of a collection, or of all, to a space.

    How far it is stands in the chunks themselves: whatever is not in `target` yet is still to be
    done, so it can be stopped or killed anywhere and taken up again.
    """

    class State(models.TextChoices):
        RUNNING = "running"
        STOPPED = "stopped"
        FAILED = "failed"
        DONE = "done"

    target = models.ForeignKey(EmbeddingSpace, models.CASCADE, related_name="reembeddings")
    collection = models.ForeignKey(
        Collection, models.CASCADE, null=True, blank=True, related_name="+", help_text="Empty: all."
    )
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    total = models.PositiveBigIntegerField(default=0, help_text="Chunks to move, at the start.")
    done = models.PositiveBigIntegerField(default=0, help_text="Chunks moved since then.")
    sources = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        help_text="Spaces that chunks came from.",
    )
    refused = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        editable=False,
        help_text="Chunks whose text the model gives no usable vector for.",
    )
    error = models.TextField(blank=True)
    # Who works on it: a worker that was taken for dead and comes back changes nothing.
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
        """How much of it is done, 0..1."""
        if self.state == self.State.DONE:
            return 1.0
        return min(1.0, self.done / self.total) if self.total else 0.0
