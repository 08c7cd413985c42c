"""Collections, documents, and those that wait for their vectors. Deletion goes by the services
(`ContentAdmin`), exports are downloads."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from tempfile import TemporaryFile
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, Q, QuerySet, Sum
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.text import slugify
from django.utils.translation import gettext, gettext_lazy, gettext_noop, ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from common.admin import (
    ConditionFilter,
    LargeTableAdmin,
    LoggedById,
    ReadOnlyAdmin,
    ServiceDeletion,
    choice_column,
    counted,
    link_column,
    link_to,
    link_to_list,
    requires,
)
from common.translation import format_number
from common.web import errors_as_messages
from documents import services
from documents.chunkers import check_options
from documents.chunkers.base import ChunkerError
from documents.forms import (
    CHUNKER_CHOICES,
    GRAPH_CHOICES,
    ChunkerOptionsField,
    FacetsField,
    fusion_field,
    reranker_choices,
)
from documents.languages import CONFIGURATIONS, DETECTED_ONLY
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    ScannedPage,
    StagedDocument,
)


class ContentAdmin(ServiceDeletion, LoggedById):
    """Collections and documents: deleted with their files and statistics, and logged by id."""

    #: For processing and embedding documents again.
    has_operate_permission = requires("documents.change_document")

    #: For exporting texts.
    has_read_permission = requires("documents.view_chunk")

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        """The documents that are deleted together with `rows`."""
        raise NotImplementedError

    def deletion_name(self, row: Any) -> str:
        return f"{self.opts.verbose_name}: {row}"

    def deletion_counts(self, rows: list[Any]) -> dict[str, int]:
        documents = self.documents_below(rows)
        return {
            **super().deletion_counts(rows),
            "documents": documents.count(),
            "chunks": documents.aggregate(number=Sum("chunk_count"))["number"] or 0,
        }


#: Larger exports need the command: they take too long for a browser.
MAX_EXPORTED_CHUNKS = 200_000


def download_export(
    request: HttpRequest,
    collection: Collection,
    *,
    passages: int,
    only: Sequence[int] | None = None,
) -> HttpResponseBase | None:
    """The collection's documents, or `only` some, as JSON Lines; None after an error message.
    Written to a temporary file first, so that a slow client holds no database connection."""
    if passages > MAX_EXPORTED_CHUNKS:
        messages.error(
            request,
            gettext(
                "{passages} passages are too many for a browser. Use: manage.py export"
                " --workspace {workspace_slug} --collection {collection_slug}"
            ).format(
                passages=number_format(passages, force_grouping=True),
                workspace_slug=collection.workspace.slug,
                collection_slug=collection.slug,
            ),
        )
        return None
    file = TemporaryFile()  # noqa: SIM115 (the response closes it)
    services.export_collection(collection=collection, file=file, only=only)
    file.seek(0)
    name = collection.slug if only is None else f"{collection.slug}-{len(only)}-documents"
    return FileResponse(
        file,
        as_attachment=True,
        filename=f"{name}.jsonl",
        content_type="application/jsonl",
        headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"},
    )


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
    chunker_options = ChunkerOptionsField(
        max_length=200,
        required=False,
        empty_value="",
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
        except ChunkerError as error:
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
                    gettext("{}: the workers are at it, {}."), collection, link_to(run)
                )
                messages.success(request, told)
                if again.left_out:
                    messages.warning(
                        request,
                        gettext(
                            "{collection}: {documents} left out, without a file stored here or"
                            " leaning on others."
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


STATUS_COLOURS = {
    Document.Status.QUEUED: "info",
    Document.Status.PROCESSING: "info",
    Document.Status.READY: "success",
    Document.Status.FAILED: "danger",
}


class VersionFilter(ConditionFilter):
    title = gettext_lazy("version")
    parameter_name = "versions"
    conditions = {
        "": (gettext_noop("Current"), Q(is_current=True)),
        "superseded": (gettext_noop("Superseded or waiting"), Q(is_current=False)),
        "all": (gettext_noop("All"), Q()),
    }


class OcrFilter(ConditionFilter):
    title = gettext_lazy("OCR")
    parameter_name = "ocr"
    conditions = {
        "hard": (gettext_noop("Hard to read"), Q(metadata__ocr__hard_to_read=True)),
        "read": (gettext_noop("Read by OCR"), Q(metadata__has_key="ocr")),
    }


@admin.register(Document)
class DocumentAdmin(ContentAdmin, ReadOnlyAdmin):
    """Documents to inspect and delete; they are changed by ingesting them again."""

    list_display = ["name", "collection", "status_label", "error", "chunk_count", "updated_at"]
    list_filter = ["status", ("collection", AutocompleteSelectFilter), VersionFilter, OcrFilter]
    actions = ["read_again", "embed_again", "export", "prune_versions"]
    can_delete = True
    status_label = choice_column("status", STATUS_COLOURS)
    collection_link = link_column("collection")
    list_select_related = ["collection"]
    list_heavy_fields = ("metadata", "declared")
    search_fields = ["key", "title"]
    ordering = ["-id"]
    fieldsets = [
        (
            None,
            {"fields": ["title", "key", "collection_link", "workspace", "contents"]},
        ),
        (
            gettext_lazy("Ingestion"),
            {
                "fields": [
                    "status",
                    "error_code",
                    "error",
                    "attempts",
                    "claimed_until",
                    "indexed_at",
                ]
            },
        ),
        (
            gettext_lazy("Source"),
            {
                "fields": [
                    "source",
                    "url",
                    "media_type",
                    "language",
                    "stored_size",
                    "source_sha256",
                    "version",
                    "is_current",
                    "duplicate_of",
                    "metadata",
                    "declared",
                    "access",
                ]
            },
        ),
        (
            gettext_lazy("Text"),
            {
                "fields": [
                    "chunk_count",
                    "token_count",
                    "content_sha256",
                    "recipe",
                    "created_at",
                    "updated_at",
                ]
            },
        ),
    ]

    def delete_rows(self, rows: Iterable[Document]) -> None:
        for row in rows:
            services.delete_document(document=row)

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        """All versions of the documents."""
        same = [Q(collection=row.collection_id, key=row.key) for row in rows]
        return Document.objects.filter(reduce(or_, same, Q(pk__in=[])))

    @admin.action(
        description=gettext_lazy("Read again from the stored files"), permissions=["operate"]
    )
    def read_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Process the stored files again; chunks that do not change keep their vectors."""
        with errors_as_messages(request):
            again = services.reingest_documents(documents=list(queryset))
            links = format_html_join(
                ", ",
                "{}",
                [
                    (link_to(run, gettext("run {run_pk}").format(run_pk=run.pk)),)
                    for run in again.runs
                ],
            )
            messages.success(request, format_html(gettext("The workers are at it: {}."), links))
            if again.left_out:
                messages.warning(
                    request,
                    gettext(
                        "{left_out} are left out: their files are not stored here, or they are"
                        " superseded or lean on another document."
                    ).format(left_out=number_format(again.left_out, force_grouping=True)),
                )

    @admin.action(description=gettext_lazy("Embed again"), permissions=["operate"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Embed all passages again with the same model."""
        with errors_as_messages(request):
            passages = services.reembed_documents(documents=list(queryset))
            messages.success(
                request,
                gettext("A worker embeds {passages} anew.").format(
                    passages=counted(Chunk, passages)
                ),
            )

    @admin.action(description=gettext_lazy("Export as JSON Lines"), permissions=["read"])
    def export(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponseBase | None:
        """Text and metadata of one collection's documents, to be imported elsewhere."""
        rows = list(queryset.select_related("collection__workspace"))
        if len({row.collection_id for row in rows}) > 1:
            messages.error(
                request, gettext("Select documents of one collection: an export holds one.")
            )
            return None
        return download_export(
            request,
            rows[0].collection,
            passages=sum(row.chunk_count for row in rows),
            only=[row.pk for row in rows],
        )

    @admin.action(description=gettext_lazy("Remove superseded versions"), permissions=["delete"])
    def prune_versions(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Delete all but the current version of each document."""
        removed = sum(services.prune_versions(document=row, keep=1) for row in queryset)
        self.message_user(
            request,
            ngettext(
                "Removed {number} superseded version.",
                "Removed {number} superseded versions.",
                removed,
            ).format(number=number_format(removed, force_grouping=True)),
        )

    @display(description=gettext_lazy("document"), ordering="key")
    def name(self, document: Document) -> str:
        return str(document)

    @display(description=gettext_lazy("size"))
    def stored_size(self, document: Document) -> str:
        return str(filesizeformat(document.size))

    @display(description=gettext_lazy("contents"))
    def contents(self, document: Document) -> str:
        chunks = link_to_list(
            Chunk, counted(Chunk, document.chunk_count), document__id__exact=document.pk
        )
        runs = link_to_list(IngestionItem, gettext("runs"), document__id__exact=document.pk)
        return format_html("{} · {}", chunks, runs)


@admin.register(StagedDocument)
class StagedDocumentAdmin(ReadOnlyAdmin):
    """Documents between the `ingest` and the `embed` queue; normally empty."""

    list_display = ["document_link", "workspace", "payload_size", "created_at"]
    list_select_related = ["document", "workspace"]
    heavy_fields = ("payload",)
    document_link = link_column("document")
    fields = ["document_link", "workspace", "payload_size", "created_at"]
    search_fields = ["document__key", "document__title"]
    ordering = ["-id"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[StagedDocument]:
        octets = Func(F("payload"), function="octet_length", output_field=IntegerField())
        rows: QuerySet[StagedDocument] = super().get_queryset(request)
        return rows.annotate(octets=octets)

    @display(description=gettext_lazy("payload"), ordering="octets")
    def payload_size(self, staged: Any) -> str:
        return str(filesizeformat(staged.octets))


@admin.register(ScannedPage)
class ScannedPageAdmin(ReadOnlyAdmin):
    """Pages that OCR read, and how sure it was; their text is in the passages."""

    list_display = ["id", "document_link", "page", "engine", "confidence", "created_at"]
    list_select_related = ["document"]
    list_heavy_fields = ("document__metadata", "document__declared")
    heavy_fields = ("text", "lines")
    document_link = link_column("document")
    fields = ["document_link", "page", "engine", "confidence", "rotation", "created_at"]
    search_fields = ["document__key", "document__title"]
    ordering = ["-id"]
