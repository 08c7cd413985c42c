"""Searches that a person keeps."""

from django.db import models

from accounts.models import User, Workspace
from common.models import TimestampedModel
from search.querysets import SavedSearchQuerySet


class SavedSearch(TimestampedModel):
    """A search with a name, its owner's alone: `parameters` is the address of the search page
    behind the `?`, which holds all of its state."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    parameters = models.TextField()

    objects = SavedSearchQuerySet["SavedSearch"].as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name_plural = "saved searches"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "name"], name="savedsearch_name_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name
