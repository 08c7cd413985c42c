"""Documents, and those that wait for their vectors."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any

from django.contrib import admin, messages
from django.db.models import F, Func, IntegerField, Q, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html, format_html_join
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import (
    ConditionFilter,
    ReadOnlyAdmin,
    choice_column,
    link_column,
    link_to,
    link_to_list,
)
from common.text import pluralized
from common.web import errors_as_messages
from documents import services
from documents.admin.service_admin import ContentAdmin, download_export
from documents.models import Chunk, Document, IngestionItem, StagedDocument

STATUS_COLOURS = {
    Document.Status.QUEUED: "info",
    Document.Status.PROCESSING: "info",
    Document.Status.READY: "success",
    Document.Status.FAILED: "danger",
}


class VersionFilter(ConditionFilter):
    title = "version"
    parameter_name = "versions"
    conditions = {
        "": ("Current", Q(is_current=True)),
        "superseded": ("Superseded or waiting", Q(is_current=False)),
        "all": ("All", Q()),
    }


@admin.register(Document)
class DocumentAdmin(ContentAdmin, ReadOnlyAdmin):
    """Documents to inspect and delete; they are changed by ingesting them again."""

    list_display = ["name", "collection", "status_label", "error", "chunk_count", "updated_at"]
    list_filter = ["status", ("collection", AutocompleteSelectFilter), VersionFilter]
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
            "Ingestion",
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
            "Source",
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
            "Text",
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

    @admin.action(description="Read again from the stored files", permissions=["operate"])
    def read_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Process the stored files again; chunks that do not change keep their vectors."""
        with errors_as_messages(request):
            again = services.reingest_documents(documents=list(queryset))
            links = format_html_join(
                ", ", "{}", [(link_to(run, f"run {run.pk}"),) for run in again.runs]
            )
            messages.success(request, format_html("The workers are at it: {}.", links))
            if again.left_out:
                messages.warning(
                    request,
                    f"{again.left_out:,} are left out: their files are not stored here, or they"
                    " are superseded or lean on another document.",
                )

    @admin.action(description="Embed again", permissions=["operate"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Embed all passages again with the same model."""
        with errors_as_messages(request):
            passages = services.reembed_documents(documents=list(queryset))
            messages.success(request, f"A worker embeds {pluralized(passages, 'passage')} anew.")

    @admin.action(description="Export as JSON Lines", permissions=["read"])
    def export(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponseBase | None:
        """Text and metadata of one collection's documents, to be imported elsewhere."""
        rows = list(queryset.select_related("collection__workspace"))
        if len({row.collection_id for row in rows}) > 1:
            messages.error(request, "Select documents of one collection: an export holds one.")
            return None
        return download_export(
            request,
            rows[0].collection,
            passages=sum(row.chunk_count for row in rows),
            only=[row.pk for row in rows],
        )

    @admin.action(description="Remove superseded versions", permissions=["delete"])
    def prune_versions(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Delete all but the current version of each document."""
        removed = sum(services.prune_versions(document=row, keep=1) for row in queryset)
        self.message_user(request, f"Removed {pluralized(removed, 'superseded version')}.")

    @display(description="document", ordering="key")
    def name(self, document: Document) -> str:
        return str(document)

    @display(description="size")
    def stored_size(self, document: Document) -> str:
        return str(filesizeformat(document.size))

    @display(description="contents")
    def contents(self, document: Document) -> str:
        chunks = link_to_list(
            Chunk, pluralized(document.chunk_count, "chunk"), document__id__exact=document.pk
        )
        runs = link_to_list(IngestionItem, "runs", document__id__exact=document.pk)
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

    @display(description="payload", ordering="octets")
    def payload_size(self, staged: Any) -> str:
        return str(filesizeformat(staged.octets))
