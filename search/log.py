"""The search log: written after each search, never in its way, and pruned."""

import logging
from contextlib import nullcontext
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from search.filters import to_json
from search.models import SearchLog
from search.results import Scope, SearchResult

logger = logging.getLogger(__name__)

#: As many of the documents found are noted.
NOTED_DOCUMENTS = 10


def record_search(
    *, result: SearchResult, scope: Scope, user: Any, source: str, refused: bool = False
) -> int | None:
    """Note a search, by one INSERT; the id of its row, if it is noted.

    `source` is one of `SearchLog.Source`. `refused` says that a chat answered it with nothing.

    A log that cannot be written is a line in the server's log, not the searcher's trouble. Turning
    the page is no other question, and is not noted.
    """
    if not settings.SEARCH_LOG or result.offset:
        return None
    row = {**_row(result, scope, user, source), "refused": refused}
    insert = (
        f"INSERT INTO {SearchLog._meta.db_table} ({', '.join(row)})"  # noqa: S608 (names of ours)
        f" VALUES ({', '.join(['%s'] * len(row))}) RETURNING id"
    )
    # Within somebody's transaction a failure must not take that with it. Else nobody waits for the
    # disk: what a crash loses of the log is less than a second of it.
    within = connection.in_atomic_block
    try:
        with transaction.atomic() if within else nullcontext(), connection.cursor() as cursor:
            settings_before = "" if within else "SET LOCAL synchronous_commit = off; "
            cursor.execute(settings_before + insert, list(row.values()))
            if settings_before:
                cursor.nextset()
            return int(cursor.fetchone()[0])
    except DatabaseError as error:
        logger.warning("a search could not be logged: %s", error)
        return None


def record_refusal(row_id: int | None) -> None:
    """Note of a search that is in the log already that its answer was that there is none."""
    if row_id is not None:
        SearchLog.objects.filter(pk=row_id).update(refused=True)


def _row(result: SearchResult, scope: Scope, user: Any, source: str) -> dict[str, Any]:
    """The columns of its row."""
    similarities = [hit.similarity for hit in result.hits if hit.similarity is not None]
    documents = dict.fromkeys(hit.document_id for hit in result.hits)
    by_words = [arm.candidates for arm in result.arms if arm.name == "lexical"]
    return {
        "workspace_id": scope.workspace_id,
        "user_id": getattr(user, "pk", None),
        "query": _storable(result.query),
        "mode": result.mode,
        "filter": Jsonb(to_json(scope.filter)) if scope.is_filtered else None,
        "collections": list(scope.collection_ids),
        "documents": list(documents)[:NOTED_DOCUMENTS],
        "total": result.total,
        "lexical_total": by_words[0] if by_words else None,
        "similarity": max(similarities, default=None),
        "degraded": list(result.degraded),
        "milliseconds": result.milliseconds,
        "source": source,
        "created_at": timezone.now(),
    }


def _storable(text: str) -> str:
    """What PostgreSQL takes: no NUL, and no half of a surrogate pair."""
    return text.replace("\0", " ").encode(errors="replace").decode()


def prune_search_log() -> int:
    """Delete rows older than RAGSITE_SEARCH_LOG_DAYS; returns how many."""
    oldest = timezone.now() - timedelta(days=settings.SEARCH_LOG_DAYS)
    deleted, _ = SearchLog.objects.filter(created_at__lt=oldest).delete()
    return deleted
