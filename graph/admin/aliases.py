"""Names by which texts and questions mean nodes."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from accounts.models import Workspace
from common.admin import LargeTableAdmin, LoggedByNumber, deletion_preview, isolated
from graph.admin.base import named
from graph.admin.forms import NewAliasForm
from graph.extraction.forms import form as normal_form
from graph.keys import is_retired_form
from graph.models import Alias
from graph.services.curating import add_alias, remove_aliases


@admin.register(Alias)
class AliasAdmin(LoggedByNumber, LargeTableAdmin):
    """Added and removed, never edited: another name is another row."""

    form = NewAliasForm
    list_display = ["name", "node_name", "workspace"]
    list_filter = [("workspace", AutocompleteSelectFilter), ("node", AutocompleteSelectFilter)]
    list_select_related = ["node", "workspace"]
    list_heavy_fields = ("node__props",)
    search_fields = ["form"]
    search_help_text = "The whole name, however it is written."
    ordering = ["-id"]
    sortable_by = ["name"]
    autocomplete_fields = ["node"]
    fields = ["node", "form"]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Alias], search_term: str
    ) -> tuple[QuerySet[Alias], bool]:
        if not search_term:
            return queryset, False
        # With the workspaces named, an index finds the name.
        workspaces = list(Workspace.objects.values_list("pk", flat=True))
        names = {normal_form(search_term), search_term}
        return queryset.filter(workspace__in=workspaces, form__in=names), False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["node", "name", "workspace"] if obj else NewAliasForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.get_fields(request, obj) if obj else []

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        made = add_alias(node=form.cleaned_data["node"], name=form.cleaned_data["form"])
        obj.__dict__.update(made.__dict__)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        remove_aliases(alias_ids=[obj.pk])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        remove_aliases(alias_ids=list(queryset.values_list("pk", flat=True)))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        names = [str(row) for row in objs]
        return deletion_preview(self, request, names, {"aliases": len(names)})

    @display(description="name", ordering="form")
    def name(self, row: Alias) -> SafeString:
        """As texts are compared with it; of a merged node, its former id."""
        is_id = is_retired_form(row.form)
        return isolated(f"former id {row.form[1:]}" if is_id else row.form)

    @display(description="means")
    def node_name(self, row: Alias) -> SafeString:
        return named(row.node)
