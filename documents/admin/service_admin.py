"""Bases of the admins: deletion by the services, and exports as downloads. Begin with
`ServiceDeletion`."""

from collections.abc import Iterable, Sequence
from tempfile import TemporaryFile
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import DELETION
from django.db.models import QuerySet, Sum
from django.http import FileResponse, HttpRequest, HttpResponseBase
from unfold.admin import ModelAdmin
from unfold.decorators import display

from common.admin import deletion_preview, link_to, log_by_id
from documents import services
from documents.models import Collection, Document


class ServiceDeletion(ModelAdmin):
    """Deletes row by row with `delete_by_service`, which also removes files and statistics.

    Django's own way would load every row below, even a million chunks, only to list their names.
    """

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether the user may have documents processed and embedded again."""
        return bool(request.user.has_perm("documents.change_document"))

    def has_read_permission(self, request: HttpRequest) -> bool:
        """Whether the user may export texts."""
        return bool(request.user.has_perm("documents.view_chunk"))

    def delete_by_service(self, row: Any) -> None:
        """Delete one row through its service."""
        raise NotImplementedError

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        """The documents that are deleted together with `rows`."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_by_service(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_by_service(row)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Log the id only: a name in the log would outlive what was deleted."""
        return log_by_id(self, request, queryset, DELETION)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(objs)
        documents = self.documents_below(rows)
        counts = {
            str(self.opts.verbose_name_plural): len(rows),
            "documents": documents.count(),
            "chunks": documents.aggregate(number=Sum("chunk_count"))["number"] or 0,
        }
        names = [f"{self.opts.verbose_name}: {row}" for row in rows]
        return deletion_preview(self, request, names, counts)


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
            f"{passages:,} passages are too many for a browser. Use: manage.py export --workspace"
            f" {collection.workspace.slug} --collection {collection.slug}",
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


class DocumentLink:
    """Adds the column `document_link` to rows that belong to a document."""

    @display(description="document", ordering="document")
    def document_link(self, row: Any) -> str:
        return link_to(row.document)
