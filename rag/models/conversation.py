"""Conversations with one's documents."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from accounts.models import User, Workspace
from common.models import TimestampedModel
from rag.querysets import MessageQuerySet, OwnQuerySet


class Conversation(TimestampedModel):
    """Questions of one user and their answers. `updated_at` is when something was said last."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    title = models.CharField(max_length=200, blank=True)
    collections = ArrayField(
        models.SlugField(max_length=63),
        default=list,
        blank=True,
        help_text="Slugs of those that were asked last. None: all.",
    )
    pipeline = models.CharField(max_length=63, blank=True, help_text="That was asked last.")

    objects = OwnQuerySet["Conversation"].as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        indexes = [
            models.Index(
                fields=["workspace", "user", "-updated_at"], name="conversation_recent_index"
            )
        ]

    def __str__(self) -> str:
        # Without what was asked: the admin's log keeps this for ever.
        return f"Conversation {self.pk}"


class Message(models.Model):
    """A question, or an answer with what it rests on.

    An answer quotes documents. `documents` are all whose text it may hold, also by way of the
    messages before it: when one of them is deleted, a trigger (migration 0001) empties the message
    in the same transaction, which no way of deleting goes around.
    """

    class Role(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"

    class State(models.TextChoices):
        RUNNING = "running", "being answered"
        COMPLETE = "complete"
        STOPPED = "stopped"
        FAILED = "failed"
        REMOVED = "removed", "removed with a document"

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    role = models.CharField(max_length=9, choices=Role)
    state = models.CharField(max_length=8, choices=State, default=State.COMPLETE)
    content = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    model = models.CharField(max_length=200, blank=True)
    generator = models.CharField(max_length=10, blank=True)
    pipeline = models.CharField(max_length=63, blank=True)
    passages = models.JSONField(
        default=list, blank=True, help_text="What was found, without the texts."
    )
    citations = models.JSONField(default=list, blank=True)
    verdict = models.JSONField(default=dict, blank=True)
    memory = models.JSONField(null=True, blank=True, help_text="What memory added.")
    degraded = ArrayField(models.CharField(max_length=20), default=list, blank=True)
    finish_reason = models.CharField(max_length=10, blank=True)
    error_code = models.CharField(max_length=40, blank=True)
    error = models.TextField(blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    elapsed_ms = models.FloatField(null=True, blank=True)
    first_token_ms = models.FloatField(null=True, blank=True)
    documents = ArrayField(models.BigIntegerField(), default=list, editable=False)
    trace = models.ForeignKey(
        "rag.Trace", models.SET_NULL, null=True, blank=True, related_name="messages"
    )

    objects = MessageQuerySet["Message"].as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=["user", "assistant"]), name="message_role_check"
            ),
        ]
        indexes = [
            GinIndex(fields=["documents"], name="message_documents_index"),
            models.Index(
                fields=["created_at"],
                condition=models.Q(state="running"),
                name="message_running_index",
            ),
        ]

    def __str__(self) -> str:
        return f"Message {self.pk}"
