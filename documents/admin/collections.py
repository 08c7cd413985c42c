"""Collections in the admin."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponseBase
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.text import slugify
from django.utils.translation import gettext, gettext_lazy
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from common.admin import LargeTableAdmin, counted, link_to, link_to_list
from common.errors import InvalidInput
from common.options.forms import OptionsField
from common.translation import format_number
from common.web import errors_as_messages
from documents import services
from documents.admin.content import ContentAdmin, download_export
from documents.forms import (
    CHUNKER_CHOICES,
    GRAPH_CHOICES,
    FacetsField,
    fusion_field,
    reranker_choices,
)
from documents.languages import CONFIGURATIONS, DETECTED_ONLY
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionRun,
)
from reading.chunkers import check_options
from reading.chunkers.options import ChunkerOptions

#: Documents that one action may read again.
MAX_REPROCESSED_DOCUMENTS = 20_000
LANGUAGES = [
    ("", "Detected"),
    *((code, code) for code in sorted({*CONFIGURATIONS, *DETECTED_ONLY})),
]


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Offers only what the services accept."""

    default_language = forms.ChoiceField(
        choices=LANGUAGES, required=False, widget=UnfoldAdminSelectWidget
    )
    chunker = forms.ChoiceField(
        choices=CHUNKER_CHOICES,
        initial="auto",
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("A change holds for documents when they are next ingested."),
    )
    chunker_options = OptionsField(
        ChunkerOptions,
        max_length=200,
        widget=UnfoldAdminTextInputWidget,
        help_text=gettext_lazy(
            "Such as “max_tokens=200 overlap=20”. Empty: the chunker's own defaults."
        ),
    )
    graph = forms.ChoiceField(
        choices=GRAPH_CHOICES,
        initial=Collection.Graph.RULES,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("After a change all documents are read again."),
    )
    facets = FacetsField(
        max_length=1000,
        required=False,
        empty_value="",
        widget=UnfoldAdminTextInputWidget,
        help_text=Collection._meta.get_field("facets").help_text,
    )
    reranker = forms.ChoiceField(
        choices=reranker_choices,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=Collection._meta.get_field("reranker").help_text,
    )

    fusion = fusion_field(widget=UnfoldAdminTextInputWidget)

    class Meta:
        model = Collection
        fields = [
            "workspace",
            "name",
            "slug",
            "description",
            "default_language",
            "automatic_model",
            "chunker",
            "chunker_options",
            "graph",
            "reranker",
            "rerank_instruction",
            "fusion",
            "facets",
        ]

    def clean_slug(self) -> str:
        """Lower case, as in addresses."""
        return str(slugify(self.cleaned_data["slug"]))

    def clean(self) -> dict[str, Any]:
        """Check the options against those of the chunker, and report errors beside them."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            check_options(given.get("chunker", "auto"), given.get("chunker_options", {}))
        except InvalidInput as error:
            self.add_error("chunker_options", str(error))
        return given


@admin.register(Collection)
class CollectionAdmin(ContentAdmin, LargeTableAdmin):
    """Created, changed and deleted through the services. The embedding space is read-only here:
    `manage.py reembed` moves a collection to another one."""

    form = CollectionForm
    list_display = ["name", "slug", "workspace", "space", "chunk_count", "contents", "created_at"]
    list_filter = [("workspace", AutocompleteSelectFilter), "space", "graph"]
    list_select_related = ["workspace", "space"]
    search_fields = ["name", "slug"]
    ordering = ["name", "id"]
    autocomplete_fields = ["workspace"]
    prepopulated_fields = {"slug": ["name"]}
    actions = ["read_again", "embed_again", "export"]
    reading = ("default_language", "automatic_model", "chunker", "chunker_options", "graph")
    searching = ("reranker", "rerank_instruction", "fusion", "facets")
    fields = ["workspace", "name", "slug", "description", *reading, *searching]
    fixed_fields = [
        "workspace",
        "slug",
        "space",
        "learnt_weights",
        "contents",
        "created_at",
        "updated_at",
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        return super().get_queryset(request).prefetch_related("lexical_segments")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        editable = ["name", "description", *self.reading, *self.searching]
        return [*editable, *self.fixed_fields] if obj else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fixed_fields if obj else []

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return {} if obj else self.prepopulated_fields

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given = form.cleaned_data
        names = ("name", "description", *self.reading, *self.searching)
        shared = {name: given[name] for name in names}
        shared["language"] = shared.pop("default_language")
        if change:
            services.update_collection(collection=obj, **shared)
            return
        made = services.create_collection(
            workspace=given["workspace"],
            slug=given["slug"],
            **shared,
        )
        obj.__dict__.update(made.__dict__)

    def delete_rows(self, rows: Iterable[Collection]) -> None:
        for row in rows:
            services.delete_collection(collection=row)

    @admin.action(description=gettext_lazy("Read all documents again"), permissions=["operate"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        """Ingest all documents again, as a new chunker or language needs it."""
        for collection in queryset:
            rows = Document.objects.current().filter(collection=collection)
            documents = list(rows.defer("metadata", "declared")[: MAX_REPROCESSED_DOCUMENTS + 1])
            if len(documents) > MAX_REPROCESSED_DOCUMENTS:
                messages.error(
                    request,
                    gettext(
                        "{collection} has more than {limit} documents. Read them again in the"
                        " list of documents, narrowed by state or words."
                    ).format(
                        collection=collection,
                        limit=number_format(MAX_REPROCESSED_DOCUMENTS, force_grouping=True),
                    ),
                )
                continue
            with errors_as_messages(request, f"{collection}: "):
                again = services.reingest_documents(documents=documents)
                (run,) = again.runs
                told = format_html(
                    gettext("{}: processing has started, {}."), collection, link_to(run)
                )
                messages.success(request, told)
                if again.left_out:
                    messages.warning(
                        request,
                        gettext(
                            "{collection}: {documents} skipped. They have no stored file, or are"
                            " duplicates of others."
                        ).format(
                            collection=collection, documents=counted(Document, again.left_out)
                        ),
                    )

    @admin.action(description=gettext_lazy("Embed all passages again"), permissions=["operate"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        """Embed with the same model; another model needs a move to its space."""
        for collection in queryset:
            with errors_as_messages(request):
                passages = services.reembed_collection(collection=collection)
                words = gettext("{collection}: workers embed {passages} anew.").format(
                    collection=collection, passages=counted(Chunk, passages)
                )
                messages.success(request, words)

    @admin.action(description=gettext_lazy("Export as JSON Lines"), permissions=["read"])
    def export(
        self, request: HttpRequest, queryset: QuerySet[Collection]
    ) -> HttpResponseBase | None:
        """Download all documents of one collection as JSON Lines."""
        rows = list(queryset.select_related("workspace")[:2])
        if len(rows) > 1:
            messages.error(request, gettext("Select one collection: an export holds one."))
            return None
        passages = Document.objects.filter(collection=rows[0]).aggregate(all=Sum("chunk_count"))
        return download_export(request, rows[0], passages=passages["all"] or 0)

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        return Document.objects.filter(collection__in=rows)

    @display(description=gettext_lazy("chunks"))
    def chunk_count(self, collection: Collection) -> int:
        """From the lexical index, current versions only: counting chunks would take long."""
        return sum(
            each.chunk_count for each in collection.lexical_segments.all() if each.is_current
        )

    @display(description=gettext_lazy("contents"))
    def contents(self, collection: Collection) -> str:
        documents = link_to_list(
            Document, gettext("documents"), collection__id__exact=collection.pk
        )
        runs = link_to_list(IngestionRun, gettext("runs"), collection__id__exact=collection.pk)
        return format_html("{} · {}", documents, runs)

    @display(description=gettext_lazy("learnt weights"))
    def learnt_weights(self, collection: Collection) -> str:
        """The weights learnt from judgements, and the command that learns or resets them."""
        command = f"manage.py evaluate --workspace {collection.workspace.slug}"
        command += f" --collection {collection.slug}"
        record = collection.tuning
        if not record:
            return gettext("None. {command} --judgements --tune learns some.").format(
                command=command
            )
        if record["space"] != collection.space_id:
            return gettext(
                "Out of use: learnt with another model. {command} --judgements --tune learns anew."
            ).format(command=command)
        return gettext(
            "Words {lexical}, meaning {vector}; learnt from {questions} judged questions: nDCG@10"
            " {before} → {after} on questions that it had not seen. {command} --forget goes back"
            " to the default."
        ).format(
            lexical=format_number(record["lexical"], 2),
            vector=format_number(1 - record["lexical"], 2),
            questions=number_format(record["questions"], force_grouping=True),
            before=format_number(record["ndcg_default"], 3),
            after=format_number(record["ndcg_tuned"], 3),
            command=command,
        )
