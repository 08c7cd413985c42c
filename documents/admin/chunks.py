"""Admin of chunks, of people's edits of them, and of the segments of the lexical index."""

from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    EXCERPT_CHARACTERS,
    ReadOnlyAdmin,
    choice_column,
    excerpt,
    link_column,
    requires,
)
from common.web import errors_as_messages
from documents import services
from documents.lexical_search import find_terms
from documents.models import Chunk, ChunkEdit, Collection, LexicalSegment

#: Maximum chunks that a search of the list returns, the best by BM25.
MAX_SEARCH_MATCHES = 10_000


@admin.register(Chunk)
class ChunkAdmin(ReadOnlyAdmin):
    """Chunks, searched by words with the lexical index of the site, in every language."""

    document_link = link_column("document")
    list_display = [
        "place",
        "beginning_text",
        "document_link",
        "collection",
        "token_count",
        "has_vector",
    ]
    list_filter = [("collection", AutocompleteSelectFilter), "space"]
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
    search_help_text = gettext_lazy(
        "Words of the text, as in a web search: a phrase in quotes, or -without."
    )
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

    def page_address(self, row: Chunk) -> str:
        """Superseded versions, and chunks with a vector and no text, cannot be edited."""
        if not row.is_current or not row.text.strip():
            return ""
        return reverse("passage_edit", args=[row.collection.slug, row.document_id, row.pk])

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        embedded = ExpressionWrapper(Q(embedding__isnull=False), output_field=BooleanField())
        rows: QuerySet[Chunk] = super().get_queryset(request)
        return rows.annotate(embedded=embedded, beginning=Left("text", EXCERPT_CHARACTERS))

    def search_rows(self, rows: QuerySet[Chunk], term: str) -> QuerySet[Chunk]:
        collections = list(Collection.objects.values_list("pk", flat=True))
        terms = find_terms(collections=collections, text=term, superseded=True)
        best, _ = terms.score().best(MAX_SEARCH_MATCHES)
        languages = {"simple", *terms.statistics}
        # Each language with its own reading of the words: an exclusion read by the rules of
        # another language would exclude nothing.
        matches = [
            Q(
                language=language,
                search_vector=SearchQuery(term, config=language, search_type="websearch"),
            )
            for language in sorted(languages)
        ]
        return rows.filter(reduce(or_, matches), index_id__in=best[:MAX_SEARCH_MATCHES].tolist())

    @display(description=gettext_lazy("chunk"), ordering="id")
    def place(self, chunk: Chunk) -> str:
        return f"{chunk.document_id}#{chunk.ordinal}"

    @display(description=gettext_lazy("text"))
    def beginning_text(self, chunk: Any) -> SafeString:
        return excerpt(chunk.beginning)

    @display(description=gettext_lazy("vector"), boolean=True)
    def has_vector(self, chunk: Any) -> bool:
        return bool(chunk.embedded)


STATE_COLOURS = {
    ChunkEdit.State.APPLIED: "success",
    ChunkEdit.State.CONFLICT: "warning",
    ChunkEdit.State.UNDONE: "info",
    ChunkEdit.State.CLOSED: "info",
}


@admin.register(ChunkEdit)
class ChunkEditAdmin(ReadOnlyAdmin):
    """Edits to inspect, undo and dismiss; they are made on the page of a document or chunk."""

    list_display = ["id", "document_link", "state_label", "user", "created_at"]
    list_filter = ["state"]
    list_heavy_fields = ("before", "after", "document__metadata", "document__declared")
    search_fields = ["document__key", "document__title", "user__username"]
    actions = ["undo", "dismiss"]
    document_link = link_column("document")
    state_label = choice_column("state", STATE_COLOURS)
    fields = [
        "document_link",
        "state",
        "before",
        "after",
        "chunk",
        "start",
        "user",
        "created_at",
        "settled_by",
        "settled_at",
    ]

    @admin.action(description=gettext_lazy("Undo"), permissions=["undo"])
    def undo(self, request: HttpRequest, queryset: QuerySet[ChunkEdit]) -> None:
        """Undo the selected edits, newest first."""
        self._each(request, queryset, services.undo_edit, gettext("Undone: {number}."))

    @admin.action(
        description=gettext_lazy("Dismiss those that were not kept"), permissions=["undo"]
    )
    def dismiss(self, request: HttpRequest, queryset: QuerySet[ChunkEdit]) -> None:
        """Close conflicts: edits whose text the source no longer contains."""
        self._each(request, queryset, services.dismiss_edit, gettext("Dismissed: {number}."))

    has_undo_permission = requires("documents.change_chunk")

    def _each(self, request: HttpRequest, rows: Any, act: Any, done: str) -> None:
        count = 0
        for edit in rows.order_by("-pk"):
            with errors_as_messages(request, f"{edit}: "):
                act(edit=edit, user=request.user)
                count += 1
        if count:
            number = number_format(count, force_grouping=True)
            self.message_user(request, done.format(number=number))


@admin.register(LexicalSegment)
class LexicalSegmentAdmin(ReadOnlyAdmin):
    """Segments of the lexical index with their chunk counts and lengths."""

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
    search_fields = ["collection__name", "collection__slug"]
