"""Term statistics."""

from django.contrib import admin
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from common.admin import ReadOnlyAdmin
from documents.models import LexemeFrequency, LexicalStatistics


@admin.register(LexicalStatistics)
class LexicalStatisticsAdmin(ReadOnlyAdmin):
    """Sizes that BM25 knows of each collection and language."""

    list_display = ["collection", "language", "chunk_count", "average_length", "refreshed_at"]
    list_filter = [("collection", AutocompleteSelectFilter)]
    list_select_related = ["collection"]
    search_fields = ["collection__name", "collection__slug"]
    ordering = ["collection_id", "language", "id"]


@admin.register(LexemeFrequency)
class LexemeFrequencyAdmin(ReadOnlyAdmin):
    """In how many chunks a lexeme stands."""

    list_display = ["lexeme", "language", "chunk_count", "collection"]
    list_filter = [("collection", AutocompleteSelectFilter)]
    list_select_related = ["collection"]
    search_fields = ["lexeme__startswith"]
    search_help_text = "The beginning of a lexeme, in lower case."
    ordering = ["-id"]
    sortable_by: list[str] = []
