"""Counts over time that cannot be computed afterwards."""

from django.db import models
from django.utils.translation import gettext_lazy

from accounts.models import Workspace, WorkspaceOwnedQuerySet


class Sample(models.Model):
    """Counts of a workspace at one time, taken every few minutes; older ones are thinned to one an
    hour."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    at = models.DateTimeField()
    documents = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Current documents that are ready.")
    )
    chunks = models.PositiveBigIntegerField(default=0)
    waiting = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Documents queued or in progress.")
    )
    failed = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Documents that failed.")
    )
    is_estimated = models.BooleanField(
        default=False, help_text=gettext_lazy("Counted later, from the remaining documents.")
    )

    objects = WorkspaceOwnedQuerySet["Sample"].as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["workspace", "at"], name="sample_workspace_at_unique")
        ]
        indexes = [models.Index(fields=["at"], name="sample_at_index")]

    def __str__(self) -> str:
        return f"Sample {self.pk}"
