"""Events for other apps, in the transactions that load and delete passages.

`documents` knows none of these apps: they register at startup by the dotted path of a listener
class, which is imported at the first event, because most commands never cause one. An exception of
a listener rolls back the transaction.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from django.db.models import QuerySet
from django.utils.module_loading import import_string

from documents.models import Chunk, Collection, Document


class Listener(Protocol):
    """Events that an app can subscribe to."""

    def loaded(self, document_ids: Sequence[int], *, plain: Container[int] = ()) -> None:
        """The passages of these documents have just been replaced. `plain` are those of them that
        are new, and have no table in their text."""

    def leaving(self, chunks: "QuerySet[Chunk]") -> Callable[[], Any] | None:
        """These passages are about to be deleted; the returned function is called after the
        deletion."""

    def rewritten(self, chunks: "QuerySet[Chunk]") -> None:
        """A person is about to change the texts of these passages; `loaded` follows."""

    def overtaken(self, versions: Mapping[int, int]) -> None:
        """Other rows are the current versions now, by the id of the former one."""

    def ingested(self, document_ids: Sequence[int]) -> None:
        """A command without workers has loaded these documents and committed."""

    def changed(self, collection: Collection) -> None:
        """The collection's `graph` setting has changed."""

    def exported(self, document_ids: Sequence[int]) -> Mapping[str, Mapping[int, Any]]:
        """What the lines of these documents have in an export besides their own fields: JSON, by
        field and document."""

    def imported(self, document_id: int, line: Mapping[str, Any]) -> None:
        """A document has been loaded from this line. Raises InvalidInput where a field that
        `exported` makes is invalid; it is missing in files of earlier releases."""


_paths: list[str] = []


def register(path: str) -> None:
    """Subscribe the listener class with this dotted path."""
    if path not in _paths:
        _paths.append(path)


_instance: Callable[[str], Listener] = cache(lambda path: import_string(path)())


def _listeners() -> list[Listener]:
    return [_instance(path) for path in _paths]


def loaded(document_ids: Sequence[int], *, plain: Container[int] = ()) -> None:
    """Notify all, inside the transaction that loaded these documents."""
    # So that their tokens are encoded again (documents/ingestion/token_encoding.py).
    Document.objects.filter(pk__in=document_ids).exclude(tokens_model="").update(tokens_model="")
    for listener in _listeners():
        listener.loaded(document_ids, plain=plain)


def rewritten(chunks: "QuerySet[Chunk]") -> None:
    """Notify all, inside the transaction, before the texts of these passages change."""
    for listener in _listeners():
        listener.rewritten(chunks)


def overtaken(versions: Mapping[int, int]) -> None:
    """Notify all, inside the transaction in which versions were superseded."""
    for listener in _listeners():
        listener.overtaken(versions)


def ingested(document_ids: Sequence[int]) -> None:
    """Notify all, after the transaction, where no worker does the remaining work."""
    for listener in _listeners():
        listener.ingested(document_ids)


def changed(collection: Collection) -> None:
    """Notify all, inside the transaction that changed the collection's `graph` setting."""
    for listener in _listeners():
        listener.changed(collection)


def exported(document_ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    """What the lines of these documents have in an export besides their own fields, by document."""
    lines: dict[int, dict[str, Any]] = {pk: {} for pk in document_ids}
    for listener in _listeners():
        for name, values in listener.exported(document_ids).items():
            for pk in document_ids:
                lines[pk][name] = values.get(pk)
    return lines


def imported(document_id: int, line: Mapping[str, Any]) -> None:
    """Notify all, inside the transaction that loaded the document. Raises InvalidInput."""
    for listener in _listeners():
        listener.imported(document_id, line)


def remove_chunks(chunks: "QuerySet[Chunk]") -> None:
    """Delete these passages, and what other apps derive from them."""
    after = [listener.leaving(chunks) for listener in _listeners()]
    chunks._raw_delete("default")
    for finish in after:
        if finish is not None:
            finish()
