"""A lock between loading into a collection and changing the space that it is loaded into.

An advisory one, because loads only share it, and a row lock would also meet everything else that
updates the collection.
"""

from collections.abc import Iterable

from django.db import connection

#: Tells these locks from other users of advisory locks; any number would do.
_CLASS = 0x5261_6753
_INT4 = 2**31


def share_collections(collection_ids: Iterable[int]) -> None:
    """Wait until nobody changes these collections' spaces; held to the end of the transaction."""
    _lock("pg_advisory_xact_lock_shared", collection_ids)


def hold_collection(collection_id: int) -> None:
    """Wait until nobody loads into the collection; held to the end of the transaction."""
    _lock("pg_advisory_xact_lock", [collection_id])


def hold_starts() -> None:
    """Wait until nobody else starts to change spaces; held to the end of the transaction."""
    hold_collection(0)  # no collection has this id


def _lock(function: str, collection_ids: Iterable[int]) -> None:
    with connection.cursor() as cursor:
        for collection_id in sorted(set(collection_ids)):  # always in one order: no deadlock
            cursor.execute(f"SELECT {function}(%s, %s)", [_CLASS, collection_id % _INT4])
