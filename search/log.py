"""The search log: recording (`record_search`), pruning, and the unanswered questions
in it (`open_questions`).
"""

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from common.fusion import required_top_similarity
from documents.embedders import SimilarityScale, scale_of
from documents.models import EmbeddingSpace
from search.filters import to_json
from search.judgements import question_key
from search.models import Judgement, SearchLog
from search.results import Scope, SearchResult

logger = logging.getLogger(__name__)

#: Most document ids stored per search.
MAX_LOGGED_DOCUMENTS = 10
#: Most table ids stored per computed answer.
MAX_LOGGED_TABLES = 100


def record_search(
    *,
    result: SearchResult,
    scope: Scope,
    user: Any,
    source: str,
    confidence: str | None = None,
    answered_from: Sequence[int] = (),
) -> int | None:
    """Logs a search by one INSERT; returns the row's id, None if it was not logged.

    `source` is one of `SearchLog.Source`, `confidence` that of the answer to a question, one of
    `SearchLog.Confidence`: with `none` it is refused. `answered_from` are ids of the documents
    that were used for it, best first. Failures are logged as warnings. Further pages of a search
    are not logged.
    """
    if result.offset:
        return None
    similarities = [hit.similarity for hit in result.hits if hit.similarity is not None]
    by_words = [arm.candidates for arm in result.arms if arm.name == "lexical"]
    return _record(
        scope,
        user,
        source=source,
        query=result.query,
        mode=result.mode,
        documents=[*answered_from, *(hit.document_id for hit in result.hits)],
        total=result.total,
        lexical_total=by_words[0] if by_words else None,
        similarity=max(similarities, default=None),
        degraded=list(result.degraded),
        milliseconds=result.milliseconds,
        confidence=confidence,
    )


def record_computed(
    *,
    question: str,
    scope: Scope,
    user: Any,
    source: str,
    tables: Sequence[int],
    documents: Sequence[int],
    count: int,
    milliseconds: float,
) -> int | None:
    """Logs a question that was answered by computing over `count` rows of `tables`, as
    `record_search` does. `documents` have the first of the rows."""
    return _record(
        scope,
        user,
        source=source,
        query=question,
        mode="tables",
        documents=documents,
        total=count,
        tables=list(tables)[:MAX_LOGGED_TABLES],
        milliseconds=milliseconds,
        confidence=SearchLog.Confidence.HIGH,
    )


def _record(
    scope: Scope,
    user: Any,
    *,
    query: str,
    documents: Sequence[int],
    confidence: str | None,
    degraded: Sequence[str] = (),
    **values: Any,
) -> int | None:
    if not settings.SEARCH_LOG:
        return None
    # Text without NUL and half surrogate pairs, which PostgreSQL cannot store.
    row: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "user_id": getattr(user, "pk", None),
        "query": query.replace("\0", " ").encode(errors="replace").decode(),
        "filter": Jsonb(to_json(scope.filter)) if scope.is_filtered else None,
        "collections": list(scope.collection_ids),
        "documents": list(dict.fromkeys(documents))[:MAX_LOGGED_DOCUMENTS],
        "degraded": list(degraded),
        "created_at": timezone.now(),
        "refused": confidence == SearchLog.Confidence.NONE,
        "confidence": confidence,
        **values,
    }
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
    """Marks a logged search as one that a chat could not answer."""
    if row_id is not None:
        SearchLog.objects.filter(pk=row_id).update(
            refused=True, confidence=SearchLog.Confidence.NONE
        )


def prune_search_log() -> int:
    """Deletes rows older than RAGSITE_SEARCH_LOG_DAYS; returns how many."""
    oldest = timezone.now() - timedelta(days=settings.SEARCH_LOG_DAYS)
    deleted, _ = SearchLog.objects.filter(created_at__lt=oldest).delete()
    return deleted


Reason = Literal["nothing", "refused", "far"]
REASONS: tuple[Reason, ...] = ("nothing", "refused", "far")
#: Newest searches examined, so that the page stays fast with a large log.
MAX_SEARCHES = 20_000
#: A search by the same user within this time counts as another attempt.
RETRY_WINDOW = timedelta(minutes=5)

#: Needed nearness where some query words were found.
MIN_NEARNESS_WITH_WORDS = required_top_similarity(baseline_similarity=0.1, coverage=0.5)
#: Needed nearness where none was found: that of a typical paraphrase.
MIN_NEARNESS_WITHOUT_WORDS = 1.0


#: A space, and the similarities in it below which a best hit counts as unrelated: with query words
#: found anywhere, and without.
SimilarityThreshold = tuple[int, float, float]


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question in its latest wording, and how its searches went.

    `asked` counts searches, `people` known users, `reasons` how often nothing was found, a chat
    gave no answer, or the best hit was unrelated. `again` are the next searches of the same
    users; `judged` counts judged documents.
    """

    question: str
    workspace_id: int
    log_id: int
    asked: int
    people: int
    reasons: dict[Reason, int]
    similarity: float | None
    last_at: datetime
    again: tuple[str, ...] = field(default=())
    judged: int = 0


def similarity_threshold(space_id: int, scale: SimilarityScale) -> SimilarityThreshold:
    """The thresholds on the similarity scale of the space's model."""
    room = scale.related - scale.unrelated
    return (
        space_id,
        scale.unrelated + MIN_NEARNESS_WITH_WORDS * room,
        scale.unrelated + MIN_NEARNESS_WITHOUT_WORDS * room,
    )


def open_questions(
    *,
    workspace_id: int | None = None,
    days: float = 30,
    reason: Reason | None = None,
    words: str = "",
    limit: int = 50,
    offset: int = 0,
    known: Sequence[SimilarityThreshold] | None = None,
) -> list[OpenQuestion]:
    """Questions of the last `days` whose latest search went badly, most frequent first.

    `workspace_id` None means all workspaces: for site curators only. `reason` selects one
    cause, `words` a part of the question. Questions that differ in case and spaces are one.
    `known` are thresholds by space, by default those of the models. Thresholds:
    docs/decisions/0040.
    """
    if known is None:
        spaces = EmbeddingSpace.objects.filter(collections__isnull=False).distinct()
        known = [
            similarity_threshold(space.pk, scale) for space in spaces if (scale := scale_of(space))
        ]
    parameters = {
        "workspace": workspace_id,
        "since": timezone.now() - timedelta(days=days),
        "looked_at": MAX_SEARCHES,
        "spaces": [space for space, _, _ in known],
        "with_words": [similarity for _, similarity, _ in known],
        "without_words": [similarity for _, _, similarity in known],
        "reason": reason,
        "words": "%" + words.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%",
        "limit": limit,
        "offset": offset,
    }
    rows = _fetch_rows("open_questions", parameters)
    again = next_searches(rows)
    keys = {(row["workspace_id"], question_key(row["question"])) for row in rows}
    judged = Judgement.objects.filter(question_sha256__in=[sha256 for _, sha256 in keys])
    counts = Counter(judged.values_list("workspace_id", "question_sha256"))
    return [
        OpenQuestion(
            question=row["question"],
            workspace_id=row["workspace_id"],
            log_id=row["log_ids"][0],
            asked=row["asked"],
            people=row["people"],
            reasons={name: row[name] for name in REASONS if row[name]},
            similarity=row["similarity"],
            last_at=row["last_at"],
            again=again.get(row["log_ids"][0], ()),
            judged=counts[row["workspace_id"], question_key(row["question"])],
        )
        for row in rows
    ]


def next_searches(rows: Sequence[dict[str, Any]]) -> dict[int, tuple[str, ...]]:
    """By first log id of each open question: what its users searched for next."""
    if not rows:
        return {}
    parameters = {
        "firsts": [row["log_ids"][0] for row in rows for _ in row["log_ids"]],
        "ids": [pk for row in rows for pk in row["log_ids"]],
        "soon": RETRY_WINDOW,
    }
    found = _fetch_rows("searched_again", parameters)
    return {row["first"]: tuple(row["questions"]) for row in found}


def _fetch_rows(name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    sql = (Path(__file__).parent / "sql" / f"{name}.sql").read_text()
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
