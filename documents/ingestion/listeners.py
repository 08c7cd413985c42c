"""What other apps do in the transactions that bring passages and take them away.

`documents` knows none of them: they register here when the site starts, by the dotted path of a
class. It is imported at the first event, because most commands never see one. A listener that
raises undoes the whole transaction.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from django.db.models import QuerySet
from django.utils.module_loading import import_string

from documents.models import Chunk, Collection


class Listener(Protocol):
    """What an app wants to be told of."""

    def loaded(self, document_ids: Sequence[int]) -> None:
        """The passages of these documents have just become what they are now."""

    def leaving(self, chunks: "QuerySet[Chunk]") -> Callable[[], Any] | None:
        """These passages are about to be removed; what is returned is called when they are."""

    def rewritten(self, chunks: "QuerySet[Chunk]") -> None:
        """The texts of these passages are about to be changed by a person; `loaded` comes after."""

    def overtaken(self, versions: Mapping[int, int]) -> None:
        """Other rows are the current versions now: by the document that was, the one that is."""

    def ingested(self, document_ids: Sequence[int]) -> None:
        """A command that does everything itself has loaded these, and the transaction is over."""

    def changed(self, collection: Collection) -> None:
        """The collection is to be read for the graph in another way."""


_paths: list[str] = []


def register(path: str) -> None:
    """Tell the listener whose class has this dotted path from now on."""
    if path not in _paths:
        _paths.append(path)


@cache
def _listener(path: str) -> Listener:
    listener: Listener = import_string(path)()
    return listener


def _listeners() -> list[Listener]:
    return [_listener(path) for path in _paths]


def loaded(document_ids: Sequence[int]) -> None:
    """Tell all, inside the transaction that loaded these documents."""
    for listener in _listeners():
        listener.loaded(document_ids)


def rewritten(chunks: "QuerySet[Chunk]") -> None:
    """Tell all, inside the transaction, before the texts of these passages change."""
    for listener in _listeners():
        listener.rewritten(chunks)


def overtaken(versions: Mapping[int, int]) -> None:
    """Tell all, inside the transaction in which versions took each other's place."""
    for listener in _listeners():
        listener.overtaken(versions)


def ingested(document_ids: Sequence[int]) -> None:
    """Tell all, after the transaction, where no worker is to do what is left."""
    for listener in _listeners():
        listener.ingested(document_ids)


def changed(collection: Collection) -> None:
    """Tell all, inside the transaction that changed how the collection is read for the graph."""
    for listener in _listeners():
        listener.changed(collection)


def remove_chunks(chunks: "QuerySet[Chunk]") -> None:
    """Remove these passages, and with them what others know only by them."""
    after = [listener.leaving(chunks) for listener in _listeners()]
    chunks._raw_delete("default")
    for finish in after:
        if finish is not None:
            finish()
