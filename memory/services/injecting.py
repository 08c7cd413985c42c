"""What is remembered of a user, put before a chat model with the question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from django.conf import settings
from django.utils import timezone

from common.errors import InvalidInput
from memory.injection import (
    Message,
    Pair,
    Turn,
    asking_part,
    estimated_tokens,
    fit,
    inject_into,
    last_user_index,
    sealed_block,
    strip_from,
    text_of_content,
    without_blocks,
)
from memory.models import Context, Fact
from memory.own_words import sealing_keys
from memory.scopes import UserScope
from memory.services.searching import MAX_RESULTS, checked_share, rank_facts, search_memory

MAX_FACTS = 20
MAX_CONTEXT = 20


@dataclass(frozen=True, slots=True)
class Injection:
    """Messages for the model, and what was put into them: facts as (key, value), context as
    turns, the most relevant first, and how many tokens that is. `degraded` names what of the search
    did not work."""

    messages: tuple[Message, ...]
    facts: tuple[Pair, ...] = ()
    context: tuple[Turn, ...] = ()
    tokens: int = 0
    degraded: tuple[str, ...] = ()


def inject(
    *,
    messages: Sequence[Message],
    scope: UserScope | None,
    enabled: bool | None = None,
    max_context: int = 3,
    max_facts: int = 10,
    threshold: float | None = None,
    max_tokens: int | None = None,
    count: Callable[[str], int] = estimated_tokens,
    now: datetime | None = None,
) -> Injection:
    """`messages` with what is remembered that has to do with the last user message.

    `messages` are mappings with `role` and `content`, as OpenAI's API has them; only the last user
    message changes, and `strip_injected` gives it back. `enabled` is MEMORY_INJECTION where a
    request does not say; `max_tokens`, of all that is put there, is MEMORY_INJECTION_TOKENS, and
    `count` counts them. What was said in these messages is not put there again. Of nobody nothing
    is.

    Context is the best `max_context` turns as far as their relevance reaches `threshold`, which is
    MEMORY_THRESHOLD: where one of them does not, none that ranks behind them takes its place. Each
    has the day on which it was said, in the site's time zone.

    Raises InvalidInput. Where the embedding model does not work words alone are searched.
    """
    _check(max_context, max_facts, max_tokens)
    least = checked_share(threshold, settings.MEMORY_THRESHOLD, field="threshold")
    wanted = settings.MEMORY_INJECTION if enabled is None else enabled
    own = strip_injected(messages=messages)
    at = last_user_index(own)
    if scope is None or not wanted or at is None:
        return Injection(tuple(messages))
    said = text_of_content(own[at]["content"])
    question = asking_part(without_blocks(said.replace("\0", " ")))
    if not question:
        return Injection(tuple(messages))
    moment = now or timezone.now()
    context, degraded = _context(question, own, scope, max_context, least, moment)
    keys = sealing_keys()
    injected = fit(
        facts=_facts(question, scope, max_facts, moment),
        context=context,
        max_tokens=settings.MEMORY_INJECTION_TOKENS if max_tokens is None else max_tokens,
        count=count,
        max_facts=max_facts,
        max_context=max_context,
        written=partial(sealed_block, before=said, keys=keys),
    )
    block = sealed_block(injected, before=said, keys=keys)
    return Injection(
        messages=tuple(inject_into(messages, injected, keys=keys)),
        facts=injected.facts,
        context=injected.context,
        tokens=count(block) if block else 0,
        degraded=degraded,
    )


def strip_injected(*, messages: Sequence[Message]) -> list[Message]:
    """`messages` as their users wrote them, to the byte: without what `inject` put there."""
    return strip_from(messages, keys=sealing_keys())


def _context(
    question: str,
    messages: Sequence[Message],
    scope: UserScope,
    most: int,
    least: float,
    now: datetime,
) -> tuple[list[Turn], tuple[str, ...]]:
    """The best turns that are not among `messages`, without those of them that are not relevant
    enough, and what of the search did not work."""
    if not most:
        return [], ()
    here = {text_of_content(each.get("content")).strip() for each in messages} - {""}
    found = search_memory(
        scope=scope,
        query=question,
        max_results=min(most + len(here), MAX_RESULTS),
        threshold=0.0,
        now=now,
    )
    best = [hit for hit in found.hits if hit.context.user_message.strip() not in here][:most]
    # Only now: a threshold of the search would fill up with what ranks behind. See decision 0026.
    relevant = [hit.context for hit in best if hit.ranked.relevance >= least]
    return [_turn(context) for context in relevant], found.degraded


def _turn(context: Context) -> Turn:
    zone = timezone.get_default_timezone()
    return Turn(
        timezone.localdate(context.created_at, zone),
        context.user_message,
        context.assistant_response,
    )


def _facts(question: str, scope: UserScope, most: int, now: datetime) -> list[Pair]:
    """Current facts, those first that have to do with the question, then the newest: what somebody
    is called matters to any answer."""
    if not most:
        return []
    ranked = [hit.fact for hit in rank_facts(scope=scope, query=question, most=most, now=now)]
    others = Fact.objects.of(scope).current().exclude(pk__in=[fact.pk for fact in ranked])
    newest = others.order_by("-valid_from", "-id")[: most - len(ranked)]
    return [
        *((fact.key, fact.value) for fact in ranked),
        *newest.values_list("key", "value"),
    ]


def _check(max_context: int, max_facts: int, max_tokens: int | None) -> None:
    limits = (("max_context", max_context, MAX_CONTEXT), ("max_facts", max_facts, MAX_FACTS))
    for field, value, most in limits:
        if not 0 <= value <= most:
            raise InvalidInput(f"{field} is from 0 to {most}.", field=field)
    if max_tokens is not None and max_tokens < 0:
        raise InvalidInput("max_tokens is at least 0; 0 puts nothing there.", field="max_tokens")
