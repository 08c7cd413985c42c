"""Renamed files: their documents keep passages, vectors and versions. Begin with
`rename_container`."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from documents.ingestion import listeners
from documents.ingestion.preparation import recipe_for
from documents.ingestion.sources import Source, content_digest
from documents.models import Collection, Document
from documents.services.deletion import parts_of
from reading.parsers.normalise import readable_title


class LeavingDocuments:
    """Documents whose files are gone, to be found again in new files with the same bytes.

    With `match_access`, what is now in a file with another access list is another document.
    """

    def __init__(self, documents: Iterable[Document], *, match_access: bool) -> None:
        self._match_access = match_access
        self._sizes: set[int] = set()
        self._found: dict[Any, list[Document]] = defaultdict(list)
        for document in documents:
            if document.status == Document.Status.READY:
                self._sizes.add(document.size)
                identity = self._identity(document.source_sha256, document.source, document)
                self._found[identity].append(document)

    def take(self, source: Source) -> Document | None:
        """The document of the same bytes that are read in the same way; each is taken once."""
        # Only where a size agrees: a first run would read every file twice.
        if source.size not in self._sizes:
            return None
        same = self._found.get(self._identity(content_digest(source), source.name, source))
        return same.pop(0) if same else None

    def _identity(self, digest: str | None, name: str, listed: Document | Source) -> Any:
        suffix = PurePosixPath(name).suffix.lower()  # helps to choose the parser
        is_limited = self._match_access and listed.access is not None
        return digest, suffix, tuple(listed.access or ()) if is_limited else None


@transaction.atomic
def rename_document(collection: Collection, document: Document, source: Source) -> bool:
    """Give a document with all its versions the key of `source`; chunks and vectors stay. False if
    somebody changed it meanwhile."""
    rows = Document.objects.select_for_update().filter(collection=collection, key=document.key)
    held = list(rows.order_by("id"))
    is_same = any(
        row.pk == document.pk
        and row.status == Document.Status.READY
        and row.source_sha256 == document.source_sha256
        for row in held
    )
    if not is_same or Document.objects.filter(collection=collection, key=source.key).exists():
        return False
    recipe = recipe_for(collection)
    for row in held:
        if row.recipe == recipe.digest(row.declared):
            row.recipe = recipe.digest(source.declared)
        row.declared = source.declared
        row.key, before = source.key, row.source
        row.source = source.name[:1024]
        if row.title == readable_title(before):
            row.title = readable_title(source.name)[:500]
        row.updated_at = timezone.now()
    fields = ["key", "source", "title", "declared", "recipe", "updated_at"]
    Document.objects.bulk_update(held, fields)
    listeners.loaded([row.pk for row in held])
    return True


# A passage of an attachment has a copy of what its document knows of the mail.
_SET_MAIL_KEY = """
    UPDATE documents_chunk SET metadata = jsonb_set(metadata, '{mail,key}', to_jsonb(%(key)s::text))
    WHERE document_id = ANY(%(documents)s) AND metadata->'mail'->>'key' = %(before)s
"""


@transaction.atomic
def rename_container(collection: Collection, document: Document, source: Source) -> bool:
    """`rename_document` with all that was taken out of it, such as the attachments of a mail. False
    also where a part is being ingested."""
    parts = parts_of([document])
    # Of what did not become a document, such as a picture without text, there is nothing to rename.
    keys = [part.key for part in parts]
    rows = Document.objects.select_for_update().filter(collection=collection, key__in=keys)
    held = list(rows.order_by("id"))
    waiting = {Document.Status.QUEUED, Document.Status.PROCESSING}
    if any(row.status in waiting for row in held):
        return False
    if "parts" in document.declared:
        declared = {**source.declared, "parts": document.declared["parts"]}
        source = replace(source, declared=declared)
    if not rename_document(collection, document, source):
        return False
    recipe = recipe_for(collection)
    for row in held:
        name = source.name + row.source.removeprefix(document.source)
        key = source.key + row.key.removeprefix(document.key)
        declared = dict(row.declared)
        declared["part_of"] = source.key + declared["part_of"].removeprefix(document.key)
        if mail := declared.get("metadata", {}).get("mail"):
            mail = {**mail, "key": source.key + mail["key"].removeprefix(document.key)}
            with connection.cursor() as cursor:
                before = declared["metadata"]["mail"]["key"]
                values = {"documents": [row.pk], "key": mail["key"], "before": before}
                cursor.execute(_SET_MAIL_KEY, values)
            declared["metadata"] = {**declared["metadata"], "mail": mail}
            if "mail" in row.metadata:
                row.metadata = {**row.metadata, "mail": mail}
        if row.recipe == recipe.digest(row.declared):
            row.recipe = recipe.digest(declared)
        row.declared, row.key, row.source = declared, key, name[:1024]
        row.updated_at = timezone.now()
    fields = ["key", "source", "declared", "metadata", "recipe", "updated_at"]
    Document.objects.bulk_update(held, fields)
    listeners.loaded([row.pk for row in held])
    return True
