"""Searching a user's memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from time import perf_counter
from typing import TypeVar

from django.conf import settings
from django.db.models import Model
from django.utils import timezone

from common.errors import InvalidInput
from common.replicas import reads_from_replica
from memory.models import Context, Fact
from memory.ranking import Ranked, Ranking, rank
from memory.retrieval.finding import MODES, Found, Mode, find
from memory.retrieval.statement import CONTEXTS, FACTS, Table, read
from memory.scopes import UserScope

M = TypeVar("M", Context, Fact)

MAX_RESULTS = 100
MAX_QUERY_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A context that has to do with the question. `ranked` holds its scores."""

    context: Context
    ranked: Ranked


@dataclass(frozen=True, slots=True)
class FactHit:
    """A current fact, and how much it has to do with the question."""

    fact: Fact
    ranked: Ranked


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Hits, the best first. `below` is how many were left out for their relevance, `searched` how
    many contexts the user has; `degraded` names what did not work."""

    hits: tuple[MemoryHit, ...]
    below: int = 0
    searched: int = 0
    degraded: tuple[str, ...] = ()
    milliseconds: float = 0.0


@reads_from_replica
def search_memory(
    *,
    scope: UserScope | None,
    query: str,
    max_results: int = 5,
    threshold: float | None = None,
    recency: float | None = None,
    mode: Mode = "hybrid",
    now: datetime | None = None,
) -> MemoryResult:
    """The contexts of this user that have to do with `query`; of nobody none.

    `threshold` is the least relevance, 0..1, by default MEMORY_THRESHOLD: it means the same for
    every question. `recency` is how much it counts how fresh a context is, 0 nothing and 1 fully,
    by default MEMORY_RECENCY_WEIGHT; it changes the order only. `now` is the moment that ages are
    counted from. Where the embedding model does not work words alone are searched, and `degraded`
    says so.

    Raises InvalidInput, and InferenceError for mode `vector` without a model.
    """
    started = perf_counter()
    if scope is None:
        return MemoryResult(())
    question = checked_query(query)
    least = checked_share(threshold, settings.MEMORY_THRESHOLD, field="threshold")
    if not 1 <= max_results <= MAX_RESULTS:
        raise InvalidInput(f"max_results is from 1 to {MAX_RESULTS}.", field="max_results")
    if mode not in MODES:
        raise InvalidInput(f"There is no mode “{mode}”. Use {', '.join(MODES)}.", field="mode")
    now = now or timezone.now()
    found, ranked = _ranked(CONTEXTS, question, scope=scope, recency=recency, mode=mode, now=now)
    best = ranked.best(max_results, least=least)
    contexts = _read(Context, CONTEXTS, best, scope=scope, now=now)
    return MemoryResult(
        hits=tuple(MemoryHit(contexts[each.id], each) for each in best if each.id in contexts),
        below=int((ranked.relevance < least).sum()),
        searched=found.rows,
        degraded=found.degraded,
        milliseconds=round((perf_counter() - started) * 1000, 3),
    )


@reads_from_replica
def rank_facts(
    *, scope: UserScope | None, query: str, most: int, now: datetime | None = None
) -> list[FactHit]:
    """This user's current facts, those first that have most to do with `query`.

    None is left out for being irrelevant: whoever asks has room for `most` of them.
    """
    if scope is None:
        return []
    question, now = checked_query(query), now or timezone.now()
    _, ranked = _ranked(FACTS, question, scope=scope, recency=0.0, mode="hybrid", now=now)
    best = ranked.best(most)
    facts = _read(Fact, FACTS, best, scope=scope, now=now)
    return [FactHit(facts[each.id], each) for each in best if each.id in facts]


def checked_query(query: str) -> str:
    """The question without what PostgreSQL cannot hold. Raises InvalidInput."""
    question = query.replace("\0", " ").encode(errors="replace").decode().strip()
    if not question:
        raise InvalidInput("Type a question or some words.", field="query")
    if len(question) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(
            f"The query has {len(question):,} characters; {MAX_QUERY_CHARACTERS:,} are allowed."
            " Ask with the part that matters.",
            field="query",
        )
    return question


def checked_share(value: float | None, default: float, *, field: str) -> float:
    """`value`, or the default for None. Raises InvalidInput for what is no share."""
    share = default if value is None else value
    if not 0 <= share <= 1:
        raise InvalidInput(f"{field} is from 0 to 1.", field=field)
    return share


def _ranked(
    table: Table,
    question: str,
    *,
    scope: UserScope,
    recency: float | None,
    mode: Mode,
    now: datetime,
) -> tuple[Found, Ranking]:
    found = find(table, question, scope=scope, now=now, mode=mode)
    ranked = rank(
        question,
        found.candidates,
        background=found.background,
        now=now,
        recency_weight=checked_share(recency, settings.MEMORY_RECENCY_WEIGHT, field="recency"),
        half_life_days=settings.MEMORY_HALF_LIFE_DAYS,
        evidence=mode == "hybrid",
    )
    return found, ranked


def _read(
    model: type[M], table: Table, best: Sequence[Ranked], *, scope: UserScope, now: datetime
) -> dict[int, M]:
    """By id, and by hand: making a queryset's SQL takes longer than running it. One that was
    forgotten meanwhile is absent."""
    if not best:
        return {}
    parameters = {
        "ids": [each.id for each in best],
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "now": now,
    }
    rows = model._default_manager.raw(read(table, _columns(model)), parameters)
    return {row.pk: row for row in rows}


@cache
def _columns(model: type[Model]) -> tuple[str, ...]:
    """All but what only searches need."""
    columns = (field.attname for field in model._meta.concrete_fields)
    return tuple(column for column in columns if column not in {"embedding", "search_vector"})
