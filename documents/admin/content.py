"""Shared by collections and documents: deletion by the services (`ContentAdmin`), and exports as
downloads."""

from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet, Sum
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext

from common.admin import LoggedById, ServiceDeletion, counted, link_to, requires
from common.web import errors_as_messages
from documents import services
from documents.models import Chunk, Collection, Document


class ContentAdmin(ServiceDeletion, LoggedById):
    """Collections and documents: processed again, deleted with their files and statistics, and
    logged by id."""

    #: For processing and embedding documents again.
    has_operate_permission = requires("documents.change_document")

    #: For exporting texts.
    has_read_permission = requires("documents.view_chunk")

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        """The documents that are deleted together with `rows`."""
        raise NotImplementedError

    def process_again(
        self, request: HttpRequest, documents: list[Document], prefix: str = ""
    ) -> None:
        """Read the stored files again; chunks that do not change keep their vectors."""
        with errors_as_messages(request, prefix):
            again = services.reingest_documents(documents=documents)
            runs = [
                link_to(run, gettext("run {run_pk}").format(run_pk=run.pk)) for run in again.runs
            ]
            links = format_html_join(", ", "{}", ((link,) for link in runs))
            told = format_html(gettext("Processing has started: {}."), links)
            messages.success(request, format_html("{}{}", prefix, told))
            if again.left_out:
                skipped = gettext(
                    "{documents} skipped. They have no stored file, are superseded, or are"
                    " duplicates of others."
                ).format(documents=counted(Document, again.left_out))
                messages.warning(request, f"{prefix}{skipped}")

    def report_embedding(self, request: HttpRequest, passages: int, prefix: str = "") -> None:
        """Say how many passages get new vectors of the same model."""
        told = gettext("Workers embed {passages} again.").format(passages=counted(Chunk, passages))
        messages.success(request, f"{prefix}{told}")

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
