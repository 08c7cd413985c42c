"""Users, workspaces (the tenants), memberships, groups, invitations, API keys, idempotency records,
the audit log.

Reads go through `visible_to(user)`.
"""

from typing import Any, Self, TypeVar

from django.contrib.auth.models import AbstractUser, AnonymousUser, Group
from django.contrib.postgres.fields import ArrayField
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts.credentials import Identity, LoginSession, SecondFactor
from common.models import TimestampedModel
from common.shards import shard_for_new_workspace

__all__ = ["Identity", "LoginSession", "SecondFactor"]

M = TypeVar("M", bound=models.Model)


class WorkspaceOwnedQuerySet(models.QuerySet[M]):
    """Rows that belong to a workspace."""

    #: How a row names its workspace; an app's model may own through another row.
    workspace_field = "workspace"

    def visible_to(self, user: Any) -> Self:
        """Rows of the workspaces that `user` is a member of.

        Being a superuser opens the admin, not other people's documents.
        """
        if user is None or isinstance(user, AnonymousUser) or not user.is_active:
            return self.none()
        return self.filter(**{f"{self.workspace_field}__memberships__user": user})


class User(AbstractUser):
    """A person. Custom from the first migration, because it cannot be swapped later."""

    language = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy(
            "The language of pages, such as “de”. Empty: the language of the browser."
        ),
    )

    #: With their workspaces, by name, where they were read with the user of a session.
    own_memberships: "list[Membership] | None" = None


class WorkspaceQuerySet(WorkspaceOwnedQuerySet["Workspace"]):
    """Workspaces themselves are filtered by membership."""

    def visible_to(self, user: Any) -> "WorkspaceQuerySet":
        if user is None or not user.is_authenticated or not user.is_active:
            return self.none()
        return self.filter(memberships__user=user)


class Workspace(TimestampedModel):
    """The tenant: every owned row belongs to one, and nothing crosses between two."""

    slug = models.SlugField(max_length=63)
    name = models.CharField(max_length=200)
    shard = models.CharField(
        max_length=31,
        blank=True,
        default=shard_for_new_workspace,
        db_default="",
        editable=False,
        help_text=gettext_lazy("The server with its rows. Empty: the main database."),
    )
    is_moving = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=gettext_lazy("Writes wait during its move to another shard."),
    )

    objects = WorkspaceQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["slug"], name="workspace_slug_unique")]

    def __str__(self) -> str:
        return self.name

    @property
    def alias(self) -> str:
        """The alias of its shard for work in the main database."""
        return self.shard or DEFAULT_DB_ALIAS


class Role(models.TextChoices):
    """Rights of a member: each role includes those after it."""

    OWNER = "owner", gettext_lazy("Owner")
    EDITOR = "editor", gettext_lazy("Editor")
    VIEWER = "viewer", gettext_lazy("Viewer")


class Membership(TimestampedModel):
    """The role of a user in a workspace."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    external_names = ArrayField(
        models.CharField(max_length=200),
        default=list,
        db_default=[],
        blank=True,
        help_text=gettext_lazy("Names at sources of documents, entered by an owner."),
    )

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


class WorkspaceGroup(TimestampedModel):
    """Some members of a workspace, whom access lists name together as `group:<id>`.

    Its id is that of a row of Django's groups, so that those made in the admin, which access lists
    name in the same way, never share one. Nobody is in that row: members are `GroupMember`s.
    """

    group = models.OneToOneField(
        Group, models.CASCADE, primary_key=True, related_name="workspace_group", editable=False
    )
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="groups", db_index=False)
    name = models.CharField(max_length=100)
    external_names = ArrayField(
        models.CharField(max_length=200),
        default=list,
        blank=True,
        help_text=gettext_lazy(
            "Other names of the group: in a company's sign-in, or at a source of documents."
        ),
    )

    objects = WorkspaceOwnedQuerySet["WorkspaceGroup"].as_manager()

    class Meta:
        ordering = ["name"]
        verbose_name = gettext_lazy("group of a workspace")
        verbose_name_plural = gettext_lazy("groups of workspaces")
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name"], name="workspacegroup_workspace_name_unique"
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def principal(self) -> str:
        """Its entry in access lists."""
        return f"group:{self.pk}"


class GroupMember(models.Model):
    """A member of a workspace in one of its groups. It refers to the membership, so that who leaves
    the workspace cannot stay in a group.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(WorkspaceGroup, models.CASCADE, related_name="members")
    membership = models.ForeignKey(
        Membership, models.CASCADE, related_name="group_members", db_index=False
    )
    source = models.CharField(
        max_length=40,
        blank=True,
        help_text=gettext_lazy("The sign-in that manages this membership. Empty: an owner."),
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = WorkspaceOwnedQuerySet["GroupMember"].as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = gettext_lazy("member of a group")
        verbose_name_plural = gettext_lazy("members of groups")
        constraints = [
            models.UniqueConstraint(
                fields=["membership", "group", "source"], name="groupmember_membership_group_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.membership_id} in {self.group_id}"


class InvitationQuerySet(WorkspaceOwnedQuerySet["Invitation"]):
    def open(self) -> "InvitationQuerySet":
        """Neither revoked nor expired, nor used as often as they may be."""
        return self.filter(
            models.Q(max_uses=None) | models.Q(uses__lt=models.F("max_uses")),
            revoked_at=None,
            expires_at__gt=Now(),
        )


class Invitation(models.Model):
    """A link that makes who opens it a member of a workspace. Its token is random and not stored;
    `digest` is its SHA-256.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    digest = models.CharField(max_length=64, editable=False)
    role = models.CharField(max_length=10, choices=Role, default=Role.VIEWER)
    groups = ArrayField(
        models.IntegerField(), default=list, blank=True, help_text=gettext_lazy("Ids of groups.")
    )
    email = models.EmailField(blank=True, help_text=gettext_lazy("The recipient of the link."))
    max_uses = models.PositiveIntegerField(
        null=True, blank=True, help_text=gettext_lazy("Empty: without a limit.")
    )
    uses = models.PositiveIntegerField(default=0)
    accepted_by = ArrayField(
        models.BigIntegerField(),
        default=list,
        blank=True,
        editable=False,
        help_text=gettext_lazy("Ids of users. The key ends when one of them leaves."),
    )
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "workspace"], name="invitation_digest_unique"
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="invitation_role_check"
            ),
            models.CheckConstraint(
                condition=models.Q(max_uses=None) | models.Q(uses__lte=models.F("max_uses")),
                name="invitation_uses_check",
            ),
        ]

    def __str__(self) -> str:
        return f"invitation {self.pk}"

    @property
    def is_open(self) -> bool:
        """Whether it can still be accepted."""
        is_used_up = self.max_uses is not None and self.uses >= self.max_uses
        return self.revoked_at is None and not is_used_up and self.expires_at > timezone.now()


class Scope(models.TextChoices):
    """Permissions of an API key; none includes another."""

    READ = "read", gettext_lazy("Read")
    WRITE = "write", gettext_lazy("Write")
    MEMORY = "memory", gettext_lazy("Memory")
    CHAT = "chat", gettext_lazy("Chat")
    ADMIN = "admin", gettext_lazy("Admin")


class ApiKeyQuerySet(WorkspaceOwnedQuerySet["ApiKey"]):
    def visible_to(self, user: Any) -> "ApiKeyQuerySet":
        """The user's own keys, and all keys of workspaces that the user owns."""
        rows = super().visible_to(user)
        owned = Membership.objects.visible_to(user).filter(user=user.pk, role=Role.OWNER)
        return rows.filter(
            models.Q(user=user.pk) | models.Q(workspace__in=owned.values("workspace"))
        )

    def usable(self) -> "ApiKeyQuerySet":
        """Neither revoked nor expired, of an active user who is still a member."""
        return self.filter(
            models.Q(expires_at=None) | models.Q(expires_at__gt=Now()),
            revoked_at=None,
            user__is_active=True,
            membership__user=models.F("user"),
            membership__workspace=models.F("workspace"),
        )


class ApiKey(models.Model):
    """Credential of a program: it acts for one user in one workspace.

    The secret is random and not stored; `digest` is its SHA-256. A key is deleted with its
    membership.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    membership = models.ForeignKey(Membership, models.CASCADE, related_name="+", editable=False)
    name = models.CharField(max_length=100)
    prefix = models.CharField(
        max_length=16, help_text=gettext_lazy("First characters of the secret.")
    )
    digest = models.CharField(max_length=64, editable=False)
    scopes = ArrayField(models.CharField(max_length=10, choices=Scope))
    collections = ArrayField(
        models.BigIntegerField(),
        default=list,
        db_default=[],
        blank=True,
        help_text=gettext_lazy("Ids of the collections it gives access to. Empty: all."),
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text=gettext_lazy("Accurate to a minute, to limit writes."),
    )
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    #: Of those in `collections` that are there, where a page shows them.
    collection_names: "list[str] | None" = None

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = gettext_lazy("API key")
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
        """Whether it is neither revoked nor expired."""
        is_over = self.expires_at is not None and self.expires_at <= timezone.now()
        return self.revoked_at is None and not is_over


class IdempotencyRecord(models.Model):
    """The answer to a request with an `Idempotency-Key`, so that a repeated request gets the same
    answer and does nothing.

    Created before the work begins. `status` is empty until it is done; the worker renews
    `leased_until`, so that a request whose process died can be repeated.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    user = models.ForeignKey(User, models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text=gettext_lazy("SHA-256 of the request."))
    token = models.UUIDField(editable=False, help_text=gettext_lazy("The request in progress."))
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
    def visible_to(self, user: Any) -> "ChangeQuerySet":
        """Changes of workspaces in which the user may edit; about memories only the user's own
        changes.
        """
        editing = Membership.objects.filter(user=user.pk, role__in=(Role.OWNER, Role.EDITOR))
        rows = super().visible_to(user).filter(workspace__in=editing.values("workspace"))
        return rows.filter(models.Q(subject="") | models.Q(user=user.pk))

    def about(self, kind: str, pk: int) -> "ChangeQuerySet":
        """Changes of one object; of a collection or document including its contents."""
        within = {"collection": "collection", "document": "document"}.get(kind)
        thing = models.Q(kind=kind, thing=pk)
        return self.filter(models.Q(**{within: pk}) if within else thing)


class Change(models.Model):
    """An entry of the audit log, written by `accounts.audit.record_change` alone.

    It holds no text of the object, only numbers, names of fields, and values that are numbers or
    choices, so that it may outlive the object. Objects are named by id, because they belong to apps
    that this one does not know.
    """

    workspace = models.ForeignKey(
        Workspace, models.CASCADE, null=True, related_name="+", db_index=False
    )
    user = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text=gettext_lazy("The user who made the change."),
    )
    key = models.ForeignKey(
        ApiKey,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text=gettext_lazy("The API key used."),
    )
    door = models.CharField(
        max_length=10, blank=True, help_text=gettext_lazy("The workspace. Empty: the site itself.")
    )
    action = models.CharField(max_length=20)
    kind = models.CharField(max_length=20, help_text=gettext_lazy("Kind of object."))
    thing = models.BigIntegerField(
        null=True, help_text=gettext_lazy("Its id, for a single object.")
    )
    count = models.BigIntegerField(default=1, help_text=gettext_lazy("Number of objects."))
    collection = models.BigIntegerField(null=True, help_text=gettext_lazy("Id of its collection."))
    document = models.BigIntegerField(null=True, help_text=gettext_lazy("Id of its document."))
    subject = models.CharField(
        max_length=64,
        blank=True,
        help_text=gettext_lazy("SHA-256 of the memory's user id, for erasure."),
    )
    details = models.JSONField(
        default=dict,
        help_text=gettext_lazy("Changed fields and values, or the ids of many objects."),
    )
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
        return f"{self.action} {self.kind} {self.thing or ''}".rstrip()
