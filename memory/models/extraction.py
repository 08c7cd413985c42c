"""The queue of conversations out of which facts are to be learnt."""

from django.db import models
from django.utils import timezone

from accounts.models import Workspace
from memory.querysets import RememberedQuerySet
from memory.scopes import MAX_USER_ID_CHARACTERS


class ExtractionItem(models.Model):
    """A conversation, how far it has been read, and what of it waits to be.

    Progress is kept for each conversation by itself, so that none holds up another. The texts are
    removed as soon as they have been read.
    """

    class State(models.TextChoices):
        IDLE = "idle", "nothing waits"
        WAITING = "waiting"
        RUNNING = "running"
        DEAD = "dead", "given up"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    key = models.CharField(
        "conversation", max_length=255, help_text="The caller's name for the conversation."
    )
    messages = models.JSONField(
        default=list, blank=True, help_text="What the user said and nobody has read yet."
    )
    seen = models.PositiveIntegerField(
        default=0, help_text="How many of the user's messages were taken over."
    )
    taken = models.JSONField(
        default=list,
        blank=True,
        editable=False,
        help_text="Digests of the last ones, to tell what is new when they are sent again.",
    )
    state = models.CharField(max_length=7, choices=State, default=State.IDLE)
    attempts = models.PositiveSmallIntegerField(default=0)
    outages = models.PositiveSmallIntegerField(
        default=0, help_text="How often in a row there was no model to ask."
    )
    error = models.TextField(blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    token = models.UUIDField(null=True, blank=True, editable=False)
    leased_until = models.DateTimeField(null=True, blank=True)
    last_message_at = models.DateTimeField(default=timezone.now)
    extracted_at = models.DateTimeField(null=True, blank=True)
    extractor = models.CharField(max_length=200, blank=True, help_text="Rules, or a model's name.")
    facts = models.PositiveIntegerField(default=0, help_text="Learnt so far.")
    contexts = models.PositiveIntegerField(default=0, help_text="Learnt so far.")

    objects = RememberedQuerySet["ExtractionItem"].as_manager()

    class Meta:
        ordering = ["-last_message_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user_id", "key"], name="extractionitem_conversation_unique"
            )
        ]
        indexes = [
            models.Index(fields=["state", "due_at"], name="extractionitem_due_index"),
        ]

    def __str__(self) -> str:
        return f"Conversation {self.pk}"
