"""Users, workspaces (the tenants) and who belongs to which in what role."""

from typing import Any

from django.contrib.auth.models import AbstractUser
from django.db import models

from accounts.querysets import WorkspaceOwnedQuerySet
from common.models import TimestampedModel


class User(AbstractUser):
    """A person. Custom from the first migration, because it cannot be swapped later."""


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
