"""Chunks: what is searched, found by the words in them."""

from functools import reduce
from operator import or_
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.postgres.search import SearchQuery
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget

from common.admin import LoggedByNumber, ReadOnlyAdmin, link_to
from common.errors import RagsiteError
from documents import services
from documents.lexical_search import find_terms
from documents.models import Chunk, Collection

EXCERPT_CHARACTERS = 160
#: A search of the list looks at so many chunks, the best by BM25.
MOST_SEARCHED = 10_000


class ChunkForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """What a passage says. It is changed by the service when the form is checked, so that what the
    service refuses is said beside the text, and nothing typed is lost."""

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
class ChunkAdmin(LoggedByNumber, ReadOnlyAdmin):
    """Searched by words with the same index as the site's search, in every language there is. Its
    text can be changed: it is embedded anew, with the neighbours that share what changes."""

    form = ChunkForm

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
        """Superseded versions stay as they were, and a vector without text has nothing to edit."""
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
        """Done already, by the form."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        embedded = ExpressionWrapper(Q(embedding__isnull=False), output_field=BooleanField())
        rows: QuerySet[Chunk] = super().get_queryset(request)
        return rows.annotate(embedded=embedded, beginning=Left("text", EXCERPT_CHARACTERS))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Chunk], search_term: str
    ) -> tuple[QuerySet[Chunk], bool]:
        if not search_term:
            return queryset, False
        collections = list(Collection.objects.values_list("pk", flat=True))
        terms = find_terms(collections=collections, text=search_term, superseded=True)
        best, _ = terms.score().best(MOST_SEARCHED)
        languages = {"simple", *terms.statistics}
        # Each language with its own reading of the words: an exclusion read by the rules of
        # another language would exclude nothing.
        matches = [
            Q(
                language=language,
                search_vector=SearchQuery(search_term, config=language, search_type="websearch"),
            )
            for language in sorted(languages)
        ]
        return queryset.filter(
            reduce(or_, matches), index_id__in=best[:MOST_SEARCHED].tolist()
        ), False

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
