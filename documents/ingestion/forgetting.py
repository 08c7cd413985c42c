"""What remains of a deleted document: that there was one, and not its name."""

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from pathlib import PurePosixPath
from typing import Any

from django.db.models import Q, QuerySet

from accounts.models import IdempotencyRecord
from documents.models import Document, IngestionItem, IngestionRun

#: Documents whose names are looked for by one query.
AT_ONCE = 100
#: Fields of answers that name no document, though they may have the same words.
NO_NAMES = {"collection", "policy", "state", "url", "items_url", "events_url"}
#: A shorter name is looked for as a whole text only: it may stand in any word.
SHORT = 4
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
    for start in range(0, len(documents), AT_ONCE):
        _forget_in_answers(documents[start : start + AT_ONCE])


def _forget_on_runs(runs: QuerySet[IngestionRun], documents: Sequence[Document]) -> None:
    """A run is called after what was asked for, which may be a single file."""
    names = _names(documents)
    named = [
        run.pk
        for run in runs.exclude(source="").only("pk", "source")
        if not names.isdisjoint(_parts(run.source))
    ]
    IngestionRun.objects.filter(pk__in=named).update(source=DELETED)


def _forget_in_answers(documents: Sequence[Document]) -> None:
    """Answers that are kept for requests with an `Idempotency-Key` name runs and files."""
    names = _names(documents)
    written = [Q(body__contains=json.dumps(name, ensure_ascii=False)[1:-1]) for name in names]
    kept = IdempotencyRecord.objects.filter(
        workspace__in={document.workspace_id for document in documents}
    )
    for record in kept.filter(reduce(or_, written)):
        answer = _without(json.loads(record.body), names)
        kept.filter(pk=record.pk).update(body=json.dumps(answer, ensure_ascii=False))


def _without(value: Any, names: set[str]) -> Any:
    """A JSON value whose texts hold none of the names."""
    match value:
        case dict():
            return {
                name: each if name in NO_NAMES else _without(each, names)
                for name, each in value.items()
            }
        case list():
            return [_without(each, names) for each in value]
        case str() if any(_is_in(name, value) for name in names):
            return DELETED
    return value


def _is_in(name: str, text: str) -> bool:
    return name == text or (len(name) >= SHORT and name in text)


def _names(documents: Iterable[Document]) -> set[str]:
    """What the documents were called."""
    return {
        name
        for document in documents
        for name in (document.key, document.title, document.source, _last(document.source))
        if name
    }


def _parts(source: str) -> list[str]:
    paths = source.split(", ")
    return [source, *paths, *map(_last, paths)]


def _last(name: str) -> str:
    return PurePosixPath(name).name
