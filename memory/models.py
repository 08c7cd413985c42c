"""Models of a user's memory: contexts (turns), facts with history, the extraction queue,
prunings.
"""

from datetime import datetime
from typing import Any, Self, TypeVar

from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy
from pgvector.django import VectorField

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from common.fields import RegConfigField, ToTSVector
from common.queues import QueuedWork
from common.search_vector import Words, joined
from documents.models import EmbeddingSpace
from memory.scopes import MAX_USER_ID_CHARACTERS, UserScope, account_id

M = TypeVar("M", bound=models.Model)

#: Values of a key as they came after each other: of two of one moment the one that ended then was
#: first.
LATEST_FIRST_ORDER = (F("valid_from").desc(), F("valid_to").desc(nulls_first=True), F("pk").desc())


class UserRowQuerySet(WorkspaceOwnedQuerySet[M]):
    """Rows that belong to a user of a workspace."""

    def of(self, scope: UserScope | None) -> Self:
        """Rows of this user; none for None."""
        if scope is None:
            return self.none()
        return self.filter(workspace_id=scope.workspace_id, user_id=scope.user_id)

    def visible_to(self, user: Any) -> Self:
        """An account's own rows: members of a workspace share documents, never memories."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(user_id=account_id(user))

    def unembedded(self) -> Self:
        """Rows without a vector, which are found by words only."""
        return self.filter(embedding__isnull=True)


class FactQuerySet(UserRowQuerySet[M]):
    """Facts of users, current and former ones."""

    def current(self) -> Self:
        return self.filter(valid_to=None)

    def latest_first(self) -> Self:
        """The last value of a key before the ones it superseded."""
        return self.order_by(*LATEST_FIRST_ORDER)

    def latest_per_key(self) -> Self:
        """The last value of each key, by key."""
        return self.order_by("key", *LATEST_FIRST_ORDER).distinct("key")

    def as_of(self, moment: datetime) -> Self:
        """Facts that held at `moment`."""
        return self.filter(Q(valid_to=None) | Q(valid_to__gt=moment), valid_from__lte=moment)


#: A text that the model refused so often is found by its words only.
MAX_EMBED_ATTEMPTS = 5


class Origin(models.TextChoices):
    """How a row came into memory."""

    TURN = "turn", gettext_lazy("a turn of a conversation")
    GIVEN = "given", gettext_lazy("given by a person or program")
    RULES = "rules", gettext_lazy("extracted by rules")
    MODEL = "model", gettext_lazy("extracted by a chat model")


class MemoryItem(models.Model):
    """A row of one user, found by words at once and by meaning once it is embedded.

    `space` names the model of `embedding`; both are empty until then.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    origin = models.CharField(max_length=5, choices=Origin, default=Origin.GIVEN)
    language = RegConfigField(max_length=63, default="simple")
    space = models.ForeignKey(
        EmbeddingSpace, models.PROTECT, null=True, blank=True, related_name="+", db_index=False
    )
    embedding = VectorField(null=True, blank=True)
    embed_attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        abstract = True


class OctetLength(Func):
    """Number of bytes of a text."""

    function = "octet_length"
    output_field = models.PositiveIntegerField()


def byte_size(*fields: str) -> models.GeneratedField:
    """A stored column: total bytes of these texts, for quotas."""
    expression: Any = sum((OctetLength(F(name)) for name in fields[1:]), OctetLength(F(fields[0])))
    return models.GeneratedField(
        expression=expression, output_field=models.PositiveIntegerField(), db_persist=True
    )


#: What the user said has weight A, so that ranking can tell it from the answer (B).
CONTEXT_SEARCH_VECTOR = joined(
    ToTSVector("language", Words("user_message"), weight="A"),
    ToTSVector("language", Words("assistant_response"), weight="B"),
)


class Context(MemoryItem):
    """A turn: what a user said and the answer, stored once a user however often it was said.

    `created_at` is when it was last said, `outdated_at` when a fact that it states ended: from then
    on it is put before no model. `conversation` is the caller's name for the conversation.
    """

    conversation = models.CharField(max_length=255, blank=True)
    user_message = models.TextField()
    assistant_response = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    content_sha256 = models.CharField(max_length=64, editable=False)
    outdated_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=gettext_lazy("When a fact that it states ended. It is not searched any more."),
    )
    size = byte_size("user_message", "assistant_response")
    search_vector = models.GeneratedField(
        expression=CONTEXT_SEARCH_VECTOR, output_field=SearchVectorField(), db_persist=True
    )

    objects = UserRowQuerySet["Context"].as_manager()

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
        # No text of the turn: the admin's log keeps this for ever.
        return f"Context {self.pk}"


MAX_KEY_CHARACTERS = 200

FACT_SEARCH_VECTOR = joined(
    ToTSVector("language", Words("key"), weight="A"),
    ToTSVector("language", Words("value"), weight="B"),
)


class Fact(MemoryItem):
    """A value of a key, valid from `valid_from` until before `valid_to`.

    The current one has no end, and the database allows one such a key. `source` is the turn that it
    was learnt from, `superseded_by` the value that replaced it.
    """

    class State(models.TextChoices):
        CURRENT = "current", gettext_lazy("true now")
        SUPERSEDED = "superseded", gettext_lazy("replaced by another value")
        ENDED = "ended", gettext_lazy("no longer true")

    key = models.CharField(max_length=MAX_KEY_CHARACTERS)
    value = models.TextField()
    valid_from = models.DateTimeField(default=timezone.now)
    valid_to = models.DateTimeField(null=True, blank=True)
    confirmed_at = models.DateTimeField(
        default=timezone.now, help_text=gettext_lazy("Time of the last repetition.")
    )
    source = models.ForeignKey(
        Context, models.SET_NULL, null=True, blank=True, related_name="facts"
    )
    superseded_by = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="supersedes"
    )
    size = byte_size("key", "value")
    search_vector = models.GeneratedField(
        expression=FACT_SEARCH_VECTOR, output_field=SearchVectorField(), db_persist=True
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

    @property
    def state(self) -> State:
        if self.valid_to is None:
            return self.State.CURRENT
        return self.State.SUPERSEDED if self.superseded_by_id else self.State.ENDED


class ExtractionItem(QueuedWork):
    """A conversation, the progress of its extraction, and the messages that wait.

    Progress is per conversation, so that none blocks another. Texts are deleted once they have been
    read.
    """

    class State(models.TextChoices):
        IDLE = "idle", gettext_lazy("nothing pending")
        WAITING = "waiting", gettext_lazy("Waiting")
        RUNNING = "running", gettext_lazy("Running")
        DEAD = "dead", gettext_lazy("given up")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    key = models.CharField(
        "conversation",
        max_length=255,
        help_text=gettext_lazy("The conversation id of the caller."),
    )
    messages = models.JSONField(
        default=list,
        blank=True,
        help_text=gettext_lazy("Messages that are not processed yet."),
    )
    seen = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Number of the user's messages processed.")
    )
    taken = models.JSONField(
        default=list,
        blank=True,
        editable=False,
        help_text=gettext_lazy("Hashes of the last messages, to recognize repeated ones."),
    )
    state = models.CharField(max_length=7, choices=State, default=State.IDLE)
    last_message_at = models.DateTimeField(default=timezone.now)
    extracted_at = models.DateTimeField(null=True, blank=True)
    extractor = models.CharField(
        max_length=200, blank=True, help_text=gettext_lazy("Rules, or a model's name.")
    )
    facts = models.PositiveIntegerField(default=0, help_text=gettext_lazy("Learned so far."))
    contexts = models.PositiveIntegerField(default=0, help_text=gettext_lazy("Learned so far."))
    last_keys = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        editable=False,
        help_text=gettext_lazy(
            "Keys of the facts stated last, which the next message may withdraw."
        ),
    )

    objects = UserRowQuerySet["ExtractionItem"].as_manager()

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


class Pruning(models.Model):
    """How many of a user's oldest contexts were deleted, and why. It holds none of their text."""

    class Reason(models.TextChoices):
        USER = "user", gettext_lazy("the user's quota")
        WORKSPACE = "workspace", gettext_lazy("the workspace's quota")

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user_id = models.CharField("user", max_length=MAX_USER_ID_CHARACTERS)
    reason = models.CharField(max_length=9, choices=Reason)
    rows = models.PositiveIntegerField()
    bytes = models.PositiveBigIntegerField()
    until = models.DateTimeField(help_text=gettext_lazy("Time of the last removed turn."))
    created_at = models.DateTimeField(default=timezone.now)

    objects = UserRowQuerySet["Pruning"].as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["workspace", "user_id", "created_at"], name="pruning_user_index")
        ]

    def __str__(self) -> str:
        return f"Pruning {self.pk}"
