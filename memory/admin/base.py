"""What the admin of every remembered row has in common: whose it is, and how that is found."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from accounts.models import Workspace
from common.admin import ReadOnlyAdmin, deletion_preview, isolated, link_to_list
from memory.scopes import UserScope


def scope_of_row(row: Any) -> UserScope:
    """Whose a row is."""
    return UserScope(row.workspace_id, row.user_id)


class RememberedAdmin(ReadOnlyAdmin):
    """Rows of users, found by the user's id: compared to the letter, as everywhere.

    Words are not searched for here: to curate memory is to look at one person's, not to look
    through everybody's.
    """

    search_fields = ["user_id"]
    search_help_text = "A user's id, the whole of it."
    list_select_related: Any = ["workspace"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if not search_term:
            return queryset, False
        # With the workspaces named, an index finds the user.
        workspaces = list(Workspace.objects.values_list("pk", flat=True))
        return queryset.filter(workspace__in=workspaces, user_id=search_term), False

    @display(description="user", ordering="user_id")
    def user(self, row: Any) -> SafeString:
        return isolated(row.user_id)

    @display(description="user")
    def user_link(self, row: Any) -> SafeString:
        whose = {"workspace__id__exact": row.workspace_id, "user_id__exact": row.user_id}
        everything = self.params_for_all_rows | whose
        link = link_to_list(self.model, f"all {self.opts.verbose_name_plural}", **everything)
        return format_html("<bdi>{}</bdi> · {}", row.user_id, link)

    #: What shows all rows of a list that shows some of them by itself.
    params_for_all_rows: dict[str, Any] = {}


class ForgettableAdmin(RememberedAdmin):
    """Rows that may be deleted, by the services and with a preview that loads nothing else."""

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(super(ReadOnlyAdmin, self).has_delete_permission(request, obj))

    def forget(self, rows: Iterable[Any]) -> None:
        """Delete these rows."""
        raise NotImplementedError

    def counted(self, rows: list[Any]) -> dict[str, int]:
        """What goes with these rows, for the preview."""
        return {str(self.opts.verbose_name_plural): len(rows)}

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.forget([obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self.forget(queryset)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(objs)
        return deletion_preview(self, request, [str(row) for row in rows], self.counted(rows))
