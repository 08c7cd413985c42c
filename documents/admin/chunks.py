"""Admin of chunks, of people's edits of them, and of the segments of the lexical index."""

from functools import reduce
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from common.admin import (
    LoggedById,
    ReadOnlyAdmin,
    choice_column,
    link_column,
    requires,
)
from common.errors import RagsiteError
from common.web import errors_as_messages
from documents import services
from documents.lexical_search import find_terms
from documents.models import Chunk, ChunkEdit, Collection, LexicalSegment

EXCERPT_CHARACTERS = 160
#: Maximum chunks that a search of the list returns, the best by BM25.
MAX_SEARCH_MATCHES = 10_000


class ChunkForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """The text of a chunk. The service changes it while the form is validated, so that an error of
    the service appears beside the text and nothing typed is lost."""

    text = forms.CharField(strip=False, widget=UnfoldAdminTextareaWidget(attrs={"rows": 16}))
    expected = forms.CharField(required=False, widget=forms.HiddenInput)
    user: Any = None

    class Meta:
        model = Chunk
        fields = ("text",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["expected"].initial = self.instance.content_sha256

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if "text" in given:
            try:
                services.edit_chunk(
                    chunk=Chunk.objects.get(pk=self.instance.pk),
                    text=given["text"],
                    user=self.user,
                    expected=given.get("expected") or "",
                )
            except RagsiteError as error:
                self.add_error("text", str(error))
        return given


@admin.register(Chunk)
class ChunkAdmin(LoggedById, ReadOnlyAdmin):
    """Chunks, searched by words with the lexical index of the site, in every language. The text can
    be changed; it is embedded again, with neighbours that overlap the change."""

    form = ChunkForm
    document_link = link_column("document")
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
    search_help_text = gettext_lazy(
        "Words of the text, as in a web search: a phrase in quotes, or -without."
    )
    ordering = ["-id"]
    sortable_by = ["place"]
    fields = [
        "document_link",
        "ordinal",
        "key",
        "heading_path",
        "text",
        "expected",
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

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Not for superseded versions, nor for chunks with a vector and no text."""
        may = bool(super(ReadOnlyAdmin, self).has_change_permission(request, obj))
        return may and (obj is None or (obj.is_current and bool(obj.text.strip())))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_fields(request, obj)
        may = self.has_change_permission(request, obj)
        return fields if may else [name for name in fields if name != "expected"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [name for name in self.get_fields(request, obj) if name not in ("text", "expected")]

    def get_form(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, **kwargs)
        form.user = request.user
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing to save: the form has called the service."""

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
    def excerpt(self, chunk: Any) -> str:
        beginning = " ".join(chunk.beginning.split())
        return f"{beginning}…" if len(chunk.beginning) == EXCERPT_CHARACTERS else beginning

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
    list_select_related = ["document", "user"]
    list_heavy_fields = ("before", "after", "document__metadata", "document__declared")
    search_fields = ["document__key", "document__title", "user__username"]
    ordering = ["-id"]
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
        self._each(request, queryset, services.undo_edit, "undone")

    @admin.action(
        description=gettext_lazy("Dismiss those that were not kept"), permissions=["undo"]
    )
    def dismiss(self, request: HttpRequest, queryset: QuerySet[ChunkEdit]) -> None:
        """Close conflicts: edits whose text the source no longer contains."""
        self._each(request, queryset, services.dismiss_edit, "dismissed")

    has_undo_permission = requires("documents.change_chunk")

    def _each(self, request: HttpRequest, rows: Any, act: Any, done: str) -> None:
        count = 0
        for edit in rows.order_by("-pk"):
            with errors_as_messages(request, f"{edit}: "):
                act(edit=edit, user=request.user)
                count += 1
        if count:
            self.message_user(request, f"{count:,} {'is' if count == 1 else 'are'} {done}.")


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
    list_select_related = ["collection"]
    search_fields = ["collection__name", "collection__slug"]
    ordering = ["-id"]
