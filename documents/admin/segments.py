"""The lexical index."""

from django.contrib import admin
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from common.admin import ReadOnlyAdmin
from documents.models import LexicalSegment


@admin.register(LexicalSegment)
class LexicalSegmentAdmin(ReadOnlyAdmin):
    """How many chunks each segment lists, and how long they are."""

    list_display = [
        "id",
        "collection",
        "language",
        "is_current",
        "chunk_count",
        "wordless_count",
        "total_length",
        "created_at",
    ]
    list_filter = [("collection", AutocompleteSelectFilter)]
    list_select_related = ["collection"]
    search_fields = ["collection__name", "collection__slug"]
    ordering = ["-id"]
