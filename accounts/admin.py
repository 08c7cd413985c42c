"""Curation of users, workspaces and memberships."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from unfold.admin import ModelAdmin, TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.api_keys import revoke_key
from accounts.audit import Action, Channel, Kind, describe_details, record_change, summarize
from accounts.invitations import revoke_invitation
from accounts.models import (
    ApiKey,
    Change,
    GroupMember,
    IdempotencyRecord,
    Identity,
    Invitation,
    LoginSession,
    Membership,
    Role,
    SecondFactor,
    User,
    Workspace,
    WorkspaceGroup,
)
from accounts.second_factors import remove_factor
from accounts.sign_in import end_sessions
from common.admin import ReadOnlyAdmin, requires, value_filter
from common.text import parse_integer

admin.site.unregister(Group)


class AuditedAdmin(ModelAdmin):
    """Admin whose changes are recorded in the audit log."""

    kind: Kind

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if not change:
            self._note(Action.MADE, obj)
        elif form.changed_data:
            self._note(Action.CHANGED, obj, fields=form.changed_data)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        super().save_formset(request, form, formset, change)
        if formset.model is Membership:
            record_memberships(Action.MADE, formset.new_objects)
            record_memberships(Action.CHANGED, [row for row, _ in formset.changed_objects])
            record_memberships(Action.DELETED, formset.deleted_objects)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self._note(Action.DELETED, obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self._note(Action.DELETED, row)
        super().delete_queryset(request, queryset)

    def _note(self, action: Action, row: Any, fields: Sequence[str] = ()) -> None:
        if isinstance(row, Membership):
            record_memberships(action, [row])
            return
        # The deletion of a workspace would delete its record too.
        own = row.pk if isinstance(row, Workspace) and action != Action.DELETED else None
        record_change(
            action=action, kind=self.kind, workspace_id=own, object_id=row.pk, fields=fields
        )


def record_memberships(action: Action, rows: Iterable[Any]) -> None:
    """Record in the audit log who was added to or removed from a workspace, and in which role."""
    for row in rows:
        # Deleted by a formset it has no number any more.
        record_change(
            action=action,
            kind=Kind.MEMBERSHIP,
            workspace_id=row.workspace_id,
            object_id=row.pk,
            values={"role": Role(row.role), "user": row.user_id},
        )


class MembershipInline(TabularInline):
    """Members of a workspace, edited on the workspace's page."""

    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


@admin.register(User)
class UserAdmin(DjangoUserAdmin, AuditedAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Django's user admin in Unfold's theme."""

    kind = Kind.USER
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        end_sessions(user=obj)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for user in queryset:
            end_sessions(user=user)
        super().delete_queryset(request, queryset)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = Group.objects.filter(workspace_group=None)
        return super().formfield_for_manytomany(db_field, request, **kwargs)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Django's group admin in Unfold's theme. Rows that stand for a group of a workspace are not
    shown, because nobody is in them."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).filter(workspace_group=None)


@admin.register(Workspace)
class WorkspaceAdmin(AuditedAdmin):
    """Deleted only when empty: what collections leave behind in files and statistics is known to
    their own service, which deletes them one by one."""

    kind = Kind.WORKSPACE
    list_display = ["name", "slug", "created_at", *(["shard"] if settings.DATABASE_SHARDS else [])]
    search_fields = ["name", "slug"]
    inlines = [MembershipInline]
    prepopulated_fields = {"slug": ["name"]}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_empty = obj is not None and not obj.collections.using(obj.alias).exists()
        return is_empty and bool(super().has_delete_permission(request, obj))


@admin.register(Membership)
class MembershipAdmin(AuditedAdmin):
    kind = Kind.MEMBERSHIP
    list_display = ["user", "workspace", "role"]
    list_filter = ["role"]
    list_select_related = ["user", "workspace"]
    autocomplete_fields = ["user", "workspace"]
    search_fields = ["user__username", "workspace__name"]


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys of all users. None is created here, because nobody should know another user's secret."""

    list_display = [
        "name",
        "prefix",
        "user",
        "workspace",
        "scopes",
        "collections",
        "last_used_at",
        "expires_at",
        "revoked_at",
    ]
    search_fields = ["name", "prefix", "user__username", "workspace__name"]
    fields = [*list_display, "created_at"]
    actions = ["revoke"]
    # Users and memberships that have keys could not be deleted otherwise.
    can_delete = True

    has_revoke_permission = requires("accounts.change_apikey")

    @admin.action(description=gettext_lazy("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        for key in queryset:
            revoke_key(key=key)
        messages.success(
            request,
            gettext("Revoked: {queryset}.").format(
                queryset=", ".join(str(key) for key in queryset)
            ),
        )


@admin.register(WorkspaceGroup)
class WorkspaceGroupAdmin(ReadOnlyAdmin):
    """Groups of workspaces, which their owners manage."""

    list_display = ["name", "workspace", "external_names", "created_at"]
    search_fields = ["name", "workspace__name"]
    fields = list_display

    def page_address(self, row: WorkspaceGroup) -> str:
        return reverse("group", args=[row.pk])


@admin.register(GroupMember)
class GroupMemberAdmin(ReadOnlyAdmin):
    """Who is in which group of a workspace."""

    list_display = ["membership", "group", "source", "created_at"]
    list_select_related = ["membership__user", "membership__workspace", "group"]
    search_fields = ["group__name", "membership__user__username"]
    fields = list_display
    # Memberships and groups that have some could not be deleted otherwise.
    can_delete = True


@admin.register(Invitation)
class InvitationAdmin(ReadOnlyAdmin):
    """Invitations, whose links nobody can read."""

    list_display = ["id", "workspace", "role", "email", "uses", "max_uses", "expires_at"]
    search_fields = ["email", "workspace__name"]
    fields = [*list_display, "groups", "created_by", "created_at", "revoked_at"]
    actions = ["revoke"]

    has_revoke_permission = requires("accounts.change_invitation")

    @admin.action(description=gettext_lazy("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Invitation]) -> None:
        for invitation in queryset:
            revoke_invitation(invitation=invitation)
        messages.success(request, gettext("Their links no longer work."))


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    """Answers that are stored for a day under an `Idempotency-Key`."""

    list_display = ["key", "user", "workspace", "status", "created_at"]
    list_heavy_fields = ("body",)
    search_fields = ["key"]
    fields = ["key", "user", "workspace", "created_at", "status", "location", "body"]


class PersonalAdmin(ReadOnlyAdmin):
    """How people come in. Nothing is made here, and a deletion is written to the audit log."""

    search_fields = ["user__username"]
    can_delete = True
    kind: Kind

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        record_change(
            action=Action.DELETED,
            kind=self.kind,
            workspace_id=None,
            object_id=obj.pk,
            values={"user": obj.user_id},
        )
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)


@admin.register(Identity)
class IdentityAdmin(PersonalAdmin):
    """Accounts elsewhere. Without it, the next sign-in may make another account here."""

    kind = Kind.IDENTITY
    list_display = ["subject", "issuer", "user", "method", "last_used_at"]
    search_fields = ["subject", "user__username"]
    list_filter = ["method"]
    fields = [*list_display, "groups", "created_at"]


@admin.register(SecondFactor)
class SecondFactorAdmin(PersonalAdmin):
    """Deleted here, a lost one is asked for no more."""

    kind = Kind.FACTOR
    list_display = ["factor", "user", "kind", "last_used_at", "created_at"]
    list_filter = ["kind"]
    fields = ["user", "kind", "name", "created_at", "last_used_at"]
    heavy_fields = ("secret",)

    @display(description=gettext_lazy("second factor"))
    def factor(self, row: SecondFactor) -> str:
        return str(row)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        remove_factor(factor=obj)


@admin.register(LoginSession)
class LoginSessionAdmin(PersonalAdmin):
    """Deleted here, a session is over."""

    kind = Kind.SESSION
    list_display = ["user", "method", "address", "agent", "created_at", "last_seen_at"]
    list_filter = ["method"]
    fields = list_display

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        end_sessions(user=obj.user, number=obj.pk)


@admin.register(Change)
class ChangeAdmin(ReadOnlyAdmin):
    """The audit log, read only."""

    list_display = ["what", "details_text", "user", "door", "workspace", "created_at"]
    list_filter = [
        value_filter(gettext_lazy("kind"), "kind", Kind),
        value_filter(gettext_lazy("action"), "action", Action),
        value_filter(gettext_lazy("door"), "door", Channel),
        ("user", AutocompleteSelectFilter),
        ("workspace", AutocompleteSelectFilter),
        "created_at",
    ]
    search_fields = ["thing"]
    search_help_text = gettext_lazy(
        "The id of an object, document or collection, or a full user name."
    )
    sortable_by = ["what"]
    fields = [
        "action",
        "kind",
        "thing",
        "count",
        "collection",
        "document",
        "details",
        "user",
        "key",
        "door",
        "workspace",
        "created_at",
    ]

    def search_rows(self, rows: QuerySet[Change], term: str) -> QuerySet[Change]:
        """Search through the indexes: Django's own search would cast numbers to text row by row."""
        for word in term.split():
            number = parse_integer(word)
            if number is not None:
                thing = Q(kind__in=list(Kind), thing=number)
                rows = rows.filter(thing | Q(document=number) | Q(collection=number))
            else:
                people = User.objects.filter(username=word.replace("\0", ""))
                rows = rows.filter(user__in=list(people.values_list("pk", flat=True)))
        return rows

    @display(description=gettext_lazy("what"), ordering="id")
    def what(self, row: Change) -> str:
        return summarize(row)

    @display(description=gettext_lazy("more"))
    def details_text(self, row: Change) -> str:
        return describe_details(row) or "—"
