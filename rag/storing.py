"""Writing conversations down: quotations cannot outlive documents, and no first word waits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from rag.models import Message

# Of all row locks the weakest that a deletion waits for: answers do not wait for each other.
_HOLD = "SELECT id FROM documents_document WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE"


def held_documents(ids: Sequence[int]) -> list[int]:
    """Which of these documents there are. They stay until the transaction is over, and whatever of
    theirs is written in it, a later deletion empties by the trigger of migration 0001."""
    if not ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [list(ids)])
        return [row[0] for row in cursor.fetchall()]


@contextmanager
def hurried() -> Iterator[None]:
    """A transaction that does not wait for the disk: the first word would wait for it, too.

    A database server that dies in that moment loses the beginning of an answer that it could not
    end either. The end is written as usual, and takes the beginning to the disk with it.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit TO off")
        yield


def emptied() -> dict[str, Any]:
    """Fields of a message without what it held, as the trigger of migration 0001 leaves them."""
    return {
        "state": Message.State.REMOVED,
        "content": "",
        "passages": [],
        "citations": [],
        "verdict": {},
        "memory": None,
        "error": "",
        "documents": [],
    }
