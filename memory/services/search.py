"""Services that read a user's memory: search, and injection before a chat model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Annotated, Any, TypeVar

from django.conf import settings
from django.utils import timezone

from common.replicas import reads_from_replica
from memory.injection import (
    FactEntry,
    Message,
    TurnEntry,
    estimated_tokens,
    fit_to_budget,
    inject_into,
    last_user_index,
    question_part,
    remove_blocks,
    signed_block,
    strip_from,
    text_of_content,
)
from memory.models import Context, Fact
from memory.options import MAX_RESULTS, InjectionOptions, MemoryQuery
from memory.ranking import Ranked, Ranking, rank
from memory.retrieval import CONTEXTS, FACTS, Mode, Retrieved, SearchedTable, find, read_sql
from memory.scopes import UserScope
from memory.store import signing_keys

M = TypeVar("M", Context, Fact)

DEGRADED = "Parts that did not work: `vector` when the embedder is down."


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A relevant context with its scores."""

    context: Context
    ranked: Ranked


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """Hits, the best first."""

    hits: tuple[MemoryHit, ...]
    below: Annotated[
        int, "How many were left out because their relevance is below the threshold."
    ] = 0
    searched: Annotated[int, "How many contexts the user has."] = 0
    degraded: Annotated[tuple[str, ...], DEGRADED] = ()
    milliseconds: float = 0.0


@reads_from_replica
def search_memory(
    *,
    scope: UserScope | None,
    query: str,
    now: datetime | None = None,
    **options: Any,
) -> MemoryResult:
    """The contexts of this user that are relevant to `query`; none without a scope.

    `options` are others of MemoryQuery. Ages count from `now`. If the embedder fails, only words
    are searched and `degraded` says so.

    Raises InvalidInput, and InferenceError for mode `vector` without a model.
    """
    started = perf_counter()
    if scope is None:
        return MemoryResult(())
    asked = MemoryQuery(q=query, **options)
    question, mode = asked.q, asked.mode
    least = settings.MEMORY_THRESHOLD if asked.threshold is None else asked.threshold
    now = now or timezone.now()
    found = find(CONTEXTS, question, scope=scope, now=now, mode=mode)
    ranked = _rank(question, found, recency=asked.recency, mode=mode, now=now)
    best = ranked.best(asked.k, least=least)
    hits = _load_rows(Context, CONTEXTS, best, scope=scope, now=now)
    return MemoryResult(
        hits=tuple(MemoryHit(context, scores) for context, scores in hits),
        below=int((ranked.relevance < least).sum()),
        searched=found.rows,
        degraded=found.degraded,
        milliseconds=round((perf_counter() - started) * 1000, 3),
    )


@reads_from_replica
def rank_facts(
    *, scope: UserScope | None, query: str, limit: int, now: datetime | None = None
) -> list[tuple[Fact, Ranked]]:
    """This user's current facts with their scores, those most relevant to `query` first.

    Irrelevant ones are included: the caller has room for `limit` of them.
    """
    if scope is None:
        return []
    question, now = MemoryQuery(q=query).q, now or timezone.now()
    found = find(FACTS, question, scope=scope, now=now)
    ranked = _rank(question, found, recency=0.0, mode="hybrid", now=now)
    return _load_rows(Fact, FACTS, ranked.best(limit), scope=scope, now=now)


def _rank(
    question: str, found: Retrieved, *, recency: float | None, mode: Mode, now: datetime
) -> Ranking:
    return rank(
        question,
        found.candidates,
        baseline_similarity=found.background,
        unrelated_similarity=found.unrelated,
        now=now,
        recency_weight=settings.MEMORY_RECENCY_WEIGHT if recency is None else recency,
        half_life_days=settings.MEMORY_HALF_LIFE_DAYS,
        evidence=mode == "hybrid",
    )


def _load_rows(
    model: type[M], table: SearchedTable, best: Sequence[Ranked], *, scope: UserScope, now: datetime
) -> list[tuple[M, Ranked]]:
    """The rows with their scores; hand-written, because compiling the queryset takes longer than
    running it. Rows deleted meanwhile are missing.
    """
    if not best:
        return []
    parameters = {
        "ids": [each.id for each in best],
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "now": now,
    }
    columns = [field.attname for field in model._meta.concrete_fields]
    # All but those that only searches need.
    columns = [column for column in columns if column not in {"embedding", "search_vector"}]
    rows = model._default_manager.raw(read_sql(table, columns), parameters)
    found = {row.pk: row for row in rows}
    return [(found[each.id], each) for each in best if each.id in found]


@dataclass(frozen=True, slots=True)
class InjectionResult:
    """Messages for the model, and what was added: facts as (key, value), context as turns, most
    relevant first.
    """

    messages: tuple[Message, ...]
    facts: tuple[FactEntry, ...] = ()
    context: tuple[TurnEntry, ...] = ()
    tokens: Annotated[int, "Of all that was added, roughly."] = 0
    degraded: Annotated[tuple[str, ...], DEGRADED] = ()


def inject(
    *,
    messages: Sequence[Message],
    scope: UserScope | None,
    enabled: bool | None = None,
    count: Callable[[str], int] = estimated_tokens,
    now: datetime | None = None,
    **options: Any,
) -> InjectionResult:
    """`messages` with memory relevant to the last user message.

    `messages` are mappings with `role` and `content`, as in OpenAI's API; only the last user
    message changes, and `strip_injected` restores it. `enabled` defaults to MEMORY_INJECTION;
    `max_tokens` of all that is added to MEMORY_INJECTION_TOKENS, counted by `count`. Turns that are
    among these messages are not added. Without a scope nothing is added.

    Context is the best `max_context` turns whose relevance reaches `threshold` (MEMORY_THRESHOLD);
    where one of them does not, no lower-ranked turn replaces it. Each has its day in the site's
    time zone.

    Raises InvalidInput. If the embedder fails, only words are searched.
    """
    limits = InjectionOptions(**options)
    least = settings.MEMORY_THRESHOLD if limits.threshold is None else limits.threshold
    max_tokens = limits.max_tokens
    wanted = settings.MEMORY_INJECTION if enabled is None else enabled
    own = strip_injected(messages=messages)
    at = last_user_index(own)
    if scope is None or not wanted or at is None:
        return InjectionResult(tuple(messages))
    said = text_of_content(own[at]["content"])
    question = question_part(remove_blocks(said.replace("\0", " ")))
    if not question:
        return InjectionResult(tuple(messages))
    moment = now or timezone.now()
    context, degraded = _relevant_turns(question, own, scope, limits.max_context, least, moment)
    keys = signing_keys()
    injected = fit_to_budget(
        facts=_relevant_facts(question, scope, limits.max_facts, moment),
        context=context,
        max_tokens=settings.MEMORY_INJECTION_TOKENS if max_tokens is None else max_tokens,
        count=count,
        max_facts=limits.max_facts,
        max_context=limits.max_context,
        written=partial(signed_block, before=said, keys=keys),
    )
    block = signed_block(injected, before=said, keys=keys)
    return InjectionResult(
        messages=tuple(inject_into(messages, injected, keys=keys)),
        facts=injected.facts,
        context=injected.context,
        tokens=count(block) if block else 0,
        degraded=degraded,
    )


def strip_injected(*, messages: Sequence[Message]) -> list[Message]:
    """`messages` as their users wrote them, byte for byte: without what `inject` added."""
    return strip_from(messages, keys=signing_keys())


def _relevant_turns(
    question: str,
    messages: Sequence[Message],
    scope: UserScope,
    limit: int,
    min_relevance: float,
    now: datetime,
) -> tuple[list[TurnEntry], tuple[str, ...]]:
    """The best turns that are not among `messages` and are relevant enough, and what of the search
    failed.
    """
    if not limit:
        return [], ()
    here = {text_of_content(each.get("content")).strip() for each in messages} - {""}
    found = search_memory(
        scope=scope,
        query=question,
        k=min(limit + len(here), MAX_RESULTS),
        threshold=0.0,
        now=now,
    )
    best = [hit for hit in found.hits if hit.context.user_message.strip() not in here][:limit]
    # Only now: a threshold of the search would fill up with what ranks behind. See decision 0026.
    relevant = [hit.context for hit in best if hit.ranked.relevance >= min_relevance]
    zone = timezone.get_default_timezone()
    turns = [
        TurnEntry(
            timezone.localdate(context.created_at, zone),
            context.user_message,
            context.assistant_response,
        )
        for context in relevant
    ]
    return turns, found.degraded


def _relevant_facts(question: str, scope: UserScope, limit: int, now: datetime) -> list[FactEntry]:
    """Current facts: relevant ones first, then the newest, since a name matters to any answer."""
    if not limit:
        return []
    ranked = [fact for fact, _ in rank_facts(scope=scope, query=question, limit=limit, now=now)]
    others = Fact.objects.of(scope).current().exclude(pk__in=[fact.pk for fact in ranked])
    newest = others.order_by("-valid_from", "-id")[: limit - len(ranked)]
    return [
        *((fact.key, fact.value) for fact in ranked),
        *newest.values_list("key", "value"),
    ]
