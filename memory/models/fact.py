"""Facts: one current value a key, and what was held true before."""

from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.utils import timezone

from common.fields import ToTSVector
from common.search_vector import Words, joined
from memory.models.context import Context
from memory.querysets import FactQuerySet
from memory.remembered import Remembered, byte_size

MAX_KEY_CHARACTERS = 200

SEARCH_VECTOR = joined(
    ToTSVector("language", Words("key"), weight="A"),
    ToTSVector("language", Words("value"), weight="B"),
)


class Fact(Remembered):
    """What is known of a user under a key, from `valid_from` until before `valid_to`.

    The current one has no end, and the database allows one such a key. `source` is the turn that
    it was learnt from, `superseded_by` what took its place.
    """

    key = models.CharField(max_length=MAX_KEY_CHARACTERS)
    value = models.TextField()
    valid_from = models.DateTimeField(default=timezone.now)
    valid_to = models.DateTimeField(null=True, blank=True)
    confirmed_at = models.DateTimeField(
        default=timezone.now, help_text="When the same was said last."
    )
    source = models.ForeignKey(
        Context, models.SET_NULL, null=True, blank=True, related_name="facts"
    )
    superseded_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="supersedes"
    )
    size = byte_size("key", "value")
    search_vector = models.GeneratedField(
        expression=SEARCH_VECTOR, output_field=SearchVectorField(), db_persist=True
    )

    objects = FactQuerySet["Fact"].as_manager()

    class Meta:
        ordering = ["key", "-valid_from", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user_id", "key"],
                condition=models.Q(valid_to=None),
                name="fact_workspace_user_key_current_unique",
            ),
            models.CheckConstraint(
                condition=models.Q(valid_to=None) | models.Q(valid_to__gte=models.F("valid_from")),
                name="fact_valid_to_check",
            ),
            models.CheckConstraint(
                condition=models.Q(embedding__isnull=True) | models.Q(space__isnull=False),
                name="fact_embedding_space_check",
            ),
        ]
        indexes = [
            models.Index(
                fields=["workspace", "user_id", "key", "valid_from"], name="fact_history_index"
            ),
            models.Index(
                fields=["id"],
                condition=models.Q(embedding__isnull=True),
                name="fact_unembedded_index",
            ),
            models.Index(fields=["space"], name="fact_space_index"),
        ]

    def __str__(self) -> str:
        # Without key and value: the admin's log keeps this for ever.
        return f"Fact {self.pk}"
