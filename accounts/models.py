"""Users, workspaces (the tenants), who belongs to which in what role, and their API keys."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from accounts.querysets import WorkspaceOwnedQuerySet
from common.models import TimestampedModel


class User(AbstractUser):
    """A person. Custom from the first migration, because it cannot be swapped later."""

    #: With their workspaces, by name, where they were read with the user of a session.
    own_memberships: "list[Membership] | None" = None


class WorkspaceQuerySet(WorkspaceOwnedQuerySet["Workspace"]):
    """Workspaces themselves obey the same door."""

    def visible_to(self, user: Any) -> "WorkspaceQuerySet":
        if user is None or not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(memberships__user=user)


class Workspace(TimestampedModel):
    """The tenant: every owned row names one, and nothing crosses between two."""

    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["slug"], name="workspace_slug_unique")]

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    """What a member may do: each role includes those after it."""

    OWNER = "owner"
    EDITOR = "editor"
    VIEWER = "viewer"


class Membership(TimestampedModel):
    """A user in a workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)

    objects = WorkspaceOwnedQuerySet["Membership"].as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user"], name="membership_workspace_user_unique"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="membership_role_check"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.role} of {self.workspace}"


class Scope(models.TextChoices):
    """What an API key may be used for; none includes another."""

    READ = "read"
    WRITE = "write"
    MEMORY = "memory"
    CHAT = "chat"
    ADMIN = "admin"


class ApiKeyQuerySet(WorkspaceOwnedQuerySet["ApiKey"]):
    """Keys."""

    def visible_to(self, user: Any) -> "ApiKeyQuerySet":
        """The user's own, and of the workspaces that the user owns all."""
        rows = super().visible_to(user)
        owned = Membership.objects.visible_to(user).filter(user=user.pk, role=Role.OWNER)
        return rows.filter(
            models.Q(user=user.pk) | models.Q(workspace__in=owned.values("workspace"))
        )

    def usable(self) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, of an active user who is a member still."""
        return self.filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=Now()),
            revoked_at=None,
            user__is_active=True,
            membership__user=models.F("user"),
            membership__workspace=models.F("workspace"),
        )


class ApiKey(models.Model):
    """What a program shows in place of a password: it acts for one user in one workspace.

    The secret is random and stored nowhere; `digest` is its SHA-256. A key goes with the membership
    that it acts by.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    membership = models.ForeignKey(Membership, models.CASCADE, related_name="+", editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, help_text="How the secret begins.")
    digest = models.CharField(max_length=64, editable=False)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(
        null=True, blank=True, help_text="To the minute, so that reading writes seldom."
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = "API key"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scopes__contained_by=Scope.values, scopes__len__gte=1),
                name="apikey_scopes_check",
            ),
            models.UniqueConstraint(
                fields=["workspace", "user", "digest"], name="apikey_workspace_user_digest_unique"
            ),
        ]
        indexes = [models.Index(fields=["prefix"], name="apikey_prefix_index")]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def is_live(self) -> bool:
        """Neither revoked nor expired."""
        is_over = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is None and not is_over


class IdempotencyRecord(models.Model):
    """What a request with an `Idempotency-Key` was answered, so that the same request again is
    answered the same and does nothing.

    Made before the work begins. `status` is empty until it is done; whoever does it renews
    `leased_until`, so that a request whose process died can be made again.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the request.")
    token = models.UUIDField(editable=False, help_text="Of the request that does the work.")
    leased_until = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    location = models.CharField(max_length=2000, blank=True)
    body = models.TextField(blank=True, help_text="JSON.")
    created_at = models.DateTimeField()

    objects = WorkspaceOwnedQuerySet["IdempotencyRecord"].as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "user", "key"], name="idempotencyrecord_key_unique"
            )
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotencyrecord_age_index")]

    def __str__(self) -> str:
        return self.key


class ChangeQuerySet(WorkspaceOwnedQuerySet["Change"]):
    """Changes."""

    def visible_to(self, user: Any) -> "ChangeQuerySet":
        """Of the workspaces in which the user may change things too; of memories only what the
        user did, because nobody else shall know what one is remembered by."""
        editing = Membership.objects.filter(user=user.pk, role__in=(Role.OWNER, Role.EDITOR))
        rows = super().visible_to(user).filter(workspace__in=editing.values("workspace"))
        return rows.filter(models.Q(subject="") | models.Q(user=user.pk))

    def about(self, kind: str, pk: int) -> "ChangeQuerySet":
        """Of one thing; of a collection or a document with what is in it."""
        within = {"collection": "collection", "document": "document"}.get(kind)
        thing = models.Q(kind=kind, thing=pk)
        return self.filter(models.Q(**{within: pk}) if within else thing)


class Change(models.Model):
    """That somebody changed something: written by `accounts.history.note_change` alone.

    It holds no text of what was changed, only numbers, names of fields, and values that are
    numbers or chosen from a list, so that it may outlive what it tells of. Things are named by
    their ids, because they belong to apps that this one knows nothing of.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, null=True, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        User, models.SET_NULL, null=True, related_name="+", help_text="Who did it."
    )
    key = models.ForeignKey(
        ApiKey, models.SET_NULL, null=True, related_name="+", help_text="With which API key."
    )
    door = models.CharField(max_length=10, blank=True, help_text="Where; empty: the site itself.")
    action = models.CharField(max_length=20)
    kind = models.CharField(max_length=20, help_text="What kind of thing.")
    thing = models.BigIntegerField(null=True, help_text="Its id, where it is one.")
    count = models.BigIntegerField(default=1, help_text="How many things.")
    collection = models.BigIntegerField(null=True, help_text="Id of the collection it is in.")
    document = models.BigIntegerField(null=True, help_text="Id of the document it is in.")
    subject = models.CharField(
        max_length=64, blank=True, help_text="SHA-256 of whose memory it is, to be erased by."
    )
    details = models.JSONField(default=dict, help_text="Fields, values, ids of many.")
    created_at = models.DateTimeField(default=timezone.now)

    objects = ChangeQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="change_workspace_index"),
            models.Index(fields=["kind", "thing", "-id"], name="change_thing_index"),
            models.Index(
                fields=["collection", "-id"],
                condition=models.Q(collection__isnull=False),
                name="change_collection_index",
            ),
            models.Index(
                fields=["document", "-id"],
                condition=models.Q(document__isnull=False),
                name="change_document_index",
            ),
            models.Index(
                fields=["workspace", "subject"],
                condition=~models.Q(subject=""),
                name="change_subject_index",
            ),
            models.Index(fields=["created_at"], name="change_age_index"),
        ]

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """What was done to what, such as “changed document 12”."""
        from accounts.telling import in_words  # noqa: PLC0415 (which reads this)

        return in_words(self)
