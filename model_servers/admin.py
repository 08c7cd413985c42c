"""Connected models; their keys are shown nowhere."""

from django.contrib import admin
from django.urls import reverse
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from common.admin import ReadOnlyAdmin
from common.options import option_fields
from model_servers.models import ModelConnection, ModelUsage, WorkspaceModel
from model_servers.options import ConnectionOptions


@admin.register(ModelConnection)
class ModelConnectionAdmin(ReadOnlyAdmin):
    """They are made and changed on the page Models, where they are tried."""

    list_display = [
        "name",
        "purpose",
        "kind",
        "address",
        "model",
        "workspace",
        "is_default",
        "updated_at",
    ]
    list_filter = ["purpose", "kind", "is_default"]
    search_fields = ["name", "model"]
    ordering = ["name", "id"]
    sortable_by = ["name", "updated_at"]
    fields = [
        *(name for name in option_fields(ConnectionOptions) if name != "key"),
        *("workspace", "workspaces", "is_default", "has_key", "created_at", "updated_at"),
    ]
    readonly_fields = ["has_key", "created_at", "updated_at"]

    def page_address(self, row: ModelConnection) -> str:
        return reverse("model_connection", args=[row.pk])


@admin.register(WorkspaceModel)
class WorkspaceModelAdmin(ReadOnlyAdmin):
    """What workspaces have chosen."""

    list_display = ["workspace", "connection", "updated_at"]
    search_fields = ["connection__name"]
    sortable_by = ["updated_at"]
    fields = list_display


@admin.register(ModelUsage)
class ModelUsageAdmin(ReadOnlyAdmin):
    """What models have read and written."""

    list_display = [
        *("day", "workspace", "user", "model", "purpose"),
        *("calls", "input_tokens", "output_tokens", "cost"),
    ]
    list_filter = [("workspace", AutocompleteSelectFilter), "purpose", "day"]
    search_fields = ["model"]
    list_select_related = ["workspace", "user"]
    sortable_by = ["day", "calls", "input_tokens", "output_tokens"]
