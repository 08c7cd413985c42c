"""Words that say nothing, as the database's dictionaries know them."""

from collections.abc import Iterable

from django.db import connection

_IGNORED = """
    SELECT word FROM unnest(%(words)s::text[]) AS word
    WHERE to_tsvector(%(configuration)s::regconfig, ragsite_words(word)) = ''::tsvector
"""


def stop_words(words: Iterable[str], *, configuration: str) -> frozenset[str]:
    """Those of `words` that a search by words ignores in this text search configuration."""
    with connection.cursor() as cursor:
        cursor.execute(_IGNORED, {"words": sorted(words), "configuration": configuration})
        return frozenset(word for (word,) in cursor.fetchall())
