"""Exports that a browser downloads."""

from collections.abc import Sequence
from tempfile import TemporaryFile

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponseBase

from documents import services
from documents.models import Collection

#: More is for a command: nobody waits so long before a browser.
MOST_PASSAGES = 200_000


def download(
    request: HttpRequest,
    collection: Collection,
    *,
    passages: int,
    only: Sequence[int] | None = None,
) -> HttpResponseBase | None:
    """The collection's documents, or `only` some, as JSON Lines; None where the user is told why
    not. Written to the end first: the database waits for no slow reader."""
    if passages > MOST_PASSAGES:
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
