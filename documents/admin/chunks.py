"""Chunks: what is searched, found by the words in them."""

from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, link_to
from documents.models import Chunk, LexicalStatistics

EXCERPT_CHARACTERS = 160


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    """Searched by words with the same index as the site's search, in every language there is."""

    list_display = ["place", "excerpt", "document_link", "collection", "token_count", "has_vector"]
    list_filter = [("collection", AutocompleteSelectFilter), "space"]
    list_select_related = ["document", "collection"]
    heavy_fields = ("embedding", "search_vector")
    list_heavy_fields = (
        "text",
        "context",
        "summary",
        "metadata",
        "document__metadata",
        "document__declared",
    )
    search_fields = ["search_vector"]
    search_help_text = "Words of the text, as in a web search: a phrase in quotes, or -without."
    ordering = ["-id"]
    sortable_by = ["place"]
    fields = [
        "document_link",
        "ordinal",
        "key",
        "heading_path",
        "text",
        "context",
        "summary",
        "start",
        "end",
        "page",
        "parent",
        "token_count",
        "language",
        "metadata",
        "access",
        "space",
        "has_vector",
        "content_sha256",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        embedded = ExpressionWrapper(Q(embedding__isnull=False), output_field=BooleanField())
        rows: QuerySet[Chunk] = super().get_queryset(request)
        return rows.annotate(embedded=embedded, beginning=Left("text", EXCERPT_CHARACTERS))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Chunk], search_term: str
    ) -> tuple[QuerySet[Chunk], bool]:
        if not search_term:
            return queryset, False
        languages = {
            "simple",
            *LexicalStatistics.objects.order_by().values_list("language", flat=True).distinct(),
        }
        # Each language with its own reading of the words: an exclusion read by the rules of
        # another language would exclude nothing.
        matches = [
            Q(
                language=language,
                search_vector=SearchQuery(search_term, config=language, search_type="websearch"),
            )
            for language in sorted(languages)
        ]
        return queryset.filter(reduce(or_, matches)), False

    @display(description="chunk", ordering="id")
    def place(self, chunk: Chunk) -> str:
        return f"{chunk.document_id}#{chunk.ordinal}"

    @display(description="text")
    def excerpt(self, chunk: Any) -> str:
        beginning = " ".join(chunk.beginning.split())
        return f"{beginning}…" if len(chunk.beginning) == EXCERPT_CHARACTERS else beginning

    @display(description="document", ordering="document")
    def document_link(self, chunk: Chunk) -> str:
        return link_to(chunk.document)

    @display(description="vector", boolean=True)
    def has_vector(self, chunk: Any) -> bool:
        return bool(chunk.embedded)
