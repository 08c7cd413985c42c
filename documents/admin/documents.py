"""Documents in the admin, and those that wait for their vectors."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, gettext_noop, ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    ConditionFilter,
    ReadOnlyAdmin,
    choice_column,
    counted,
    link_column,
    link_to_list,
)
from common.web import errors_as_messages
from documents import services
from documents.admin.content import ContentAdmin, download_export
from documents.models import (
    Chunk,
    Document,
    IngestionItem,
    ScannedPage,
    StagedDocument,
    StagedVectors,
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
    """Documents to inspect, process again, export and delete."""

    list_display = ["name", "collection", "status_label", "error", "chunk_count", "updated_at"]
    list_filter = ["status", ("collection", AutocompleteSelectFilter), VersionFilter, OcrFilter]
    actions = ["read_again", "embed_again", "export", "prune_versions"]
    can_delete = True
    status_label = choice_column("status", STATUS_COLOURS)
    collection_link = link_column("collection")
    list_heavy_fields = ("metadata", "declared")
    search_fields = ["key", "title"]
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

    def page_address(self, row: Document) -> str:
        if not row.is_current:
            return ""
        return reverse("document_change", args=[row.collection.slug, row.pk])

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
        self.process_again(request, list(queryset))

    @admin.action(description=gettext_lazy("Embed again"), permissions=["operate"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Embed all passages again with the same model."""
        with errors_as_messages(request):
            passages = services.reembed_documents(documents=list(queryset))
            self.report_embedding(request, passages)

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
    heavy_fields = ("payload",)
    document_link = link_column("document")
    fields = ["document_link", "workspace", "payload_size", "created_at"]
    search_fields = ["document__key", "document__title"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[StagedDocument]:
        octets = Func(F("payload"), function="octet_length", output_field=IntegerField())
        rows: QuerySet[StagedDocument] = super().get_queryset(request)
        return rows.annotate(octets=octets)

    @display(description=gettext_lazy("payload"), ordering="octets")
    def payload_size(self, staged: Any) -> str:
        return str(filesizeformat(staged.octets))


@admin.register(StagedVectors)
class StagedVectorsAdmin(ReadOnlyAdmin):
    """Vectors of long documents that are not loaded yet, a slice a row."""

    list_display = ["id", "document_link", "space", "created_at"]
    heavy_fields = ("digests", "vectors")
    document_link = link_column("document")
    fields = ["document_link", "space", "created_at"]
    search_fields = ["document__key", "document__title"]


@admin.register(ScannedPage)
class ScannedPageAdmin(ReadOnlyAdmin):
    """Pages that OCR read, and how sure it was; their text is in the passages."""

    list_display = ["id", "document_link", "page", "engine", "confidence", "created_at"]
    list_heavy_fields = ("document__metadata", "document__declared")
    heavy_fields = ("text", "lines")
    document_link = link_column("document")
    fields = ["document_link", "page", "engine", "confidence", "rotation", "created_at"]
    search_fields = ["document__key", "document__title"]
