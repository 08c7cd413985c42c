"""Pipelines that a workspace keeps."""

from django.db import models

from accounts.models import User, Workspace
from accounts.querysets import WorkspaceOwnedQuerySet
from common.models import TimestampedModel


class Pipeline(TimestampedModel):
    """A definition under a name. `version` counts its changes.

    It goes before a template of the same slug.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    definition = models.JSONField(help_text="Nodes and edges: docs/reference/pipelines.md.")
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
