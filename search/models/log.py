"""The search log and saved searches."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import User, Workspace
from common.models import TimestampedModel
from search.querysets import SavedSearchQuerySet, SearchLogQuerySet


class SearchLog(models.Model):
    """One search and how it went, without any document text.

    Deletions reach it: rows are deleted with their user or workspace, ids of documents and
    collections removed by triggers (migration 0001). Searches of deleted collections only are
    deleted too.
    """

    class Source(models.TextChoices):
        WEB = "web"
        API = "api", "API"
        COMMAND = "command"
        CHAT = "chat"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, null=True, blank=True, related_name="+")
    query = models.TextField(verbose_name="question")
    mode = models.CharField(max_length=10)
    filter = models.JSONField(null=True, blank=True, help_text="In JSON form. Empty: none.")
    collections = ArrayField(
        models.BigIntegerField(), default=list, help_text="Ids of those that were searched."
    )
    documents = ArrayField(
        models.BigIntegerField(), default=list, help_text="Ids of the best ones found, in order."
    )
    total = models.PositiveIntegerField(help_text="Hits that were ranked.")
    lexical_total = models.PositiveIntegerField(
        null=True, blank=True, help_text="Passages found by words. Empty: words did not count."
    )
    similarity = models.FloatField(
        null=True, blank=True, help_text="Of the nearest hit, −1 to 1. Empty: not known."
    )
    refused = models.BooleanField(
        default=False, help_text="Asked in a chat, and answered that the sources do not say."
    )
    degraded = ArrayField(
        models.CharField(max_length=20), default=list, help_text="What should have worked."
    )
    milliseconds = models.FloatField()
    source = models.CharField(max_length=10, choices=Source)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SearchLogQuerySet["SearchLog"].as_manager()

    class Meta:
        verbose_name = "logged search"
        verbose_name_plural = "logged searches"
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["created_at"], name="searchlog_created_at_index"),
            models.Index(fields=["workspace", "created_at"], name="searchlog_workspace_index"),
            models.Index(
                fields=["workspace", "created_at"],
                condition=models.Q(total=0) | models.Q(refused=True),
                name="searchlog_found_nothing_index",
            ),
            GinIndex(fields=["documents"], name="searchlog_documents_index"),
        ]

    def __str__(self) -> str:
        return self.query


class SavedSearch(TimestampedModel):
    """A saved search of one user: `parameters` is the query string of the search page."""

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
