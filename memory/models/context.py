"""Contexts: turns of conversations."""

from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils import timezone

from common.fields import ToTSVector
from common.search_vector import Words, joined
from memory.querysets import RememberedQuerySet
from memory.remembered import Remembered, byte_size

#: What the user said has weight A, so that ranking can tell it from the answer (B).
SEARCH_VECTOR = joined(
    ToTSVector("language", Words("user_message"), weight="A"),
    ToTSVector("language", Words("assistant_response"), weight="B"),
)


class Context(Remembered):
    """What a user said and what was answered, once for each user however often it was said.

    `created_at` is when it was said last. `conversation` is the caller's name for where.
    """

    conversation = models.CharField(max_length=255, blank=True)
    user_message = models.TextField()
    assistant_response = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    content_sha256 = models.CharField(max_length=64, editable=False)
    size = byte_size("user_message", "assistant_response")
    search_vector = models.GeneratedField(
        expression=SEARCH_VECTOR, output_field=SearchVectorField(), db_persist=True
    )

    objects = RememberedQuerySet["Context"].as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user_id", "content_sha256"],
                name="context_workspace_user_content_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(embedding__isnull=True) | models.Q(space__isnull=False),
                name="context_embedding_space_check",
            ),
        ]
        indexes = [
            # With the sizes: quotas add up without reading texts and vectors.
            models.Index(
                fields=["workspace", "user_id", "created_at"],
                include=["size"],
                name="context_age_index",
            ),
            models.Index(
                fields=["id"],
                condition=models.Q(embedding__isnull=True),
                name="context_unembedded_index",
            ),
            models.Index(fields=["space"], name="context_space_index"),
        ]

    def __str__(self) -> str:
        # Without what was said: the admin's log keeps this for ever.
        return f"Context {self.pk}"
