"""Curation of users, workspaces and memberships."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.models import IdempotencyRecord, Membership, User, Workspace
from common.admin import ReadOnlyAdmin

admin.site.unregister(Group)


class MembershipInline(TabularInline):
    """Who belongs to a workspace."""

    model = Membership
    extra = 0
    autocomplete_fields = ["user"]


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """People, in the theme."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Groups, in the theme."""


@admin.register(Workspace)
class WorkspaceAdmin(ModelAdmin):
    """Deleted only when empty: what collections leave behind in files and statistics is known to
    their own service, which deletes them one by one."""

    list_display = ["name", "slug", "created_at"]
    search_fields = ["name", "slug"]
    inlines = [MembershipInline]
    prepopulated_fields = {"slug": ["name"]}

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_empty = obj is not None and not obj.collections.exists()
        return is_empty and bool(super().has_delete_permission(request, obj))


@admin.register(Membership)
class MembershipAdmin(ModelAdmin):
    """Who may do what where."""

    list_display = ["user", "workspace", "role"]
    list_filter = ["role"]
    list_select_related = ["user", "workspace"]
    autocomplete_fields = ["user", "workspace"]
    search_fields = ["user__username", "workspace__name"]


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(ReadOnlyAdmin):
    """Answers that are kept for a day."""

    list_display = ["key", "user", "workspace", "status", "created_at"]
    list_select_related = ["user", "workspace"]
    list_heavy_fields = ("body",)
    search_fields = ["key"]
    ordering = ["-id"]
    fields = ["key", "user", "workspace", "created_at", "status", "location", "body"]
