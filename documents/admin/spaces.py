"""Embedding spaces."""

from django.contrib import admin
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_to_list
from documents.models import Collection, EmbeddingSpace


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnlyAdmin):
    """Read only: a space and its index are made together, by a migration or a command."""

    list_display = [
        "name",
        "model_name",
        "dimensions",
        "metric",
        "index_type",
        "precision",
        "state",
    ]
    list_filter = ["state"]
    search_fields = ["name", "model_name"]
    ordering = ["id"]
    fields = [
        "name",
        "embedder",
        "model_name",
        "dimensions",
        "metric",
        "query_instruction",
        "index_type",
        "index_options",
        "precision",
        "state",
        "users",
        "created_at",
        "updated_at",
    ]

    @display(description="used by")
    def users(self, space: EmbeddingSpace) -> str:
        return link_to_list(Collection, "collections", space__id__exact=space.pk)
