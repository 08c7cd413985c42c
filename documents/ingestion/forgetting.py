"""What remains of a deleted document: that there was one, and not its name."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from django.db.models import Q, QuerySet

from documents.models import Document, IngestionItem, IngestionRun

DELETED = "deleted document"
ERROR = "The document was deleted. Why it failed is gone with it."


def forget_names(documents: Sequence[Document]) -> None:
    """Take the names of documents that are about to be deleted out of the runs that brought them:
    file names say what a text is about, and errors name files."""
    collections = {document.collection_id for document in documents}
    names = {document.source for document in documents} - {""}
    # A file that failed before it had a document is known by its name alone.
    nameless = Q(document=None, run__collection__in=collections, name__in=names)
    items = IngestionItem.objects.filter(Q(document__in=documents) | nameless)
    _forget_on_runs(IngestionRun.objects.filter(items__in=items).distinct(), documents)
    ids = list(items.values_list("pk", flat=True))
    named = IngestionItem.objects.filter(pk__in=ids)
    named.exclude(error="").exclude(error_code="deleted").update(error=ERROR)
    named.update(name=DELETED)


def _forget_on_runs(runs: QuerySet[IngestionRun], documents: Sequence[Document]) -> None:
    """A run is called after what was asked for, which may be a single file."""
    names = {
        name
        for document in documents
        for name in (document.key, document.title, document.source, _last(document.source))
        if name
    }
    named = [
        run.pk
        for run in runs.exclude(source="").only("pk", "source")
        if not names.isdisjoint(_parts(run.source))
    ]
    IngestionRun.objects.filter(pk__in=named).update(source=DELETED)


def _parts(source: str) -> list[str]:
    paths = source.split(", ")
    return [source, *paths, *map(_last, paths)]


def _last(name: str) -> str:
    return PurePosixPath(name).name
