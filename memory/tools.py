"""Memory as tools of a chat model, answered in text. Begin with `TOOLS`.

The scope comes from the caller and is no argument, so a model cannot reach another user's memory.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext
from pydantic import Field

from common.errors import InvalidInput
from common.text import count_heading, json_quoted, truncated
from common.tools import between, nonempty, tools_by_name
from memory import services
from memory.fact_keys import fact_key
from memory.models import Fact
from memory.options import MAX_QUERY_CHARACTERS, RecallOptions
from memory.scopes import UserScope

FactKey = Annotated[
    str, nonempty("What the fact is about, in snake_case, such as favourite_color.")
]
AsOf = Annotated[
    str | None,
    Field(
        description="A moment in the past, such as 2026-05-01T12:00:00Z. Default: now.",
        json_schema_extra={"format": "date-time"},
    ),
]

NOTHING_STORED = "It is not known who the user is: nothing was kept."


def format_time(moment: datetime) -> str:
    """A time to the minute, in the site's time zone."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def parse_as_of(text: str | None) -> datetime | None:
    """Parse a time that a model wrote, by default in the site's time zone. Raises InvalidInput."""
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput(gettext("as_of is a time, such as 2026-05-01T12:00:00Z."), field="as_of")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)


MAX_TOOL_RESULTS = 20


def archive_turn(
    *,
    scope: UserScope | None,
    user_message: Annotated[str, nonempty("What the user said, word for word.")],
    assistant_response: Annotated[str, Field(description="What was answered.")] = "",
) -> str:
    """Archive a turn of this conversation, so that it can be found in later ones."""
    archived = services.archive_turn(
        scope=scope, user_message=user_message, assistant_response=assistant_response
    )
    if archived is None:
        return NOTHING_STORED
    return "Archived." if archived.is_new else "Archived before; it is as fresh as now."


def memory_search(
    *,
    scope: UserScope | None,
    query: Annotated[str, nonempty("A question or some words.", most=MAX_QUERY_CHARACTERS)],
    k: Annotated[int, between(1, MAX_TOOL_RESULTS, "How many conversations at most.")] = 5,
    options: RecallOptions,
) -> str:
    """Search what this user said in earlier conversations, by words and by meaning. Use it when
    the user refers to something that is not in this conversation."""
    result = services.search_memory(scope=scope, query=query, k=int(k), **options.given())
    entries = [
        f"{place}. said {format_time(hit.context.created_at)}, relevance"
        f" {hit.ranked.relevance:.2f}\n"
        f"   User: {json_quoted(truncated(hit.context.user_message))}\n"
        f"   Assistant: {json_quoted(truncated(hit.context.assistant_response))}"
        for place, hit in enumerate(result.hits, 1)
    ]
    return "\n".join([count_heading(len(entries), "archived conversation(s)"), *entries])


def remember(
    *,
    scope: UserScope | None,
    question: Annotated[str, nonempty("The question.")],
    answer: Annotated[str, nonempty("Its answer.")],
) -> str:
    """Store a question with its answer, so that it can be found in later conversations."""
    stored = services.store_memory(scope=scope, question=question, answer=answer)
    return NOTHING_STORED if stored is None else "Stored."


def clear_memory(
    *,
    scope: UserScope | None,
    question: Annotated[str, nonempty("What the user said.")],
) -> str:
    """Forget every archived conversation in which the user said exactly this."""
    removed = services.clear_memory(scope=scope, question=question)
    return f"Forgot {removed} archived conversation(s)."


#: In a list facts are shortened, and their number is limited; a single fact is returned in full.
MAX_LISTED_CHARACTERS = 200
MAX_LISTED_FACTS = 200


def set_fact(
    *,
    scope: UserScope | None,
    key: FactKey,
    value: Annotated[str, nonempty("What is true.")],
) -> str:
    """Note a durable fact about this user, such as where they live or what they prefer. A new value
    takes the place of the former one, which stays in the history."""
    change = services.set_fact(scope=scope, key=key, value=value)
    if change is None:
        return NOTHING_STORED
    if not change.changed:
        return f"Fact known already: {_fact(change.fact)}"
    before = f" (before: {_short_value(change.superseded)})" if change.superseded else ""
    return f"Fact set: {_fact(change.fact)}{before}"


def get_fact(*, scope: UserScope | None, key: FactKey, as_of: AsOf = None) -> str:
    """One fact about this user, as it is now or as it was at a moment."""
    fact = services.get_fact(scope=scope, key=key, as_of=parse_as_of(as_of))
    return _not_found(key) if fact is None else f"{fact.key} = {json_quoted(fact.value)}"


def has_fact(*, scope: UserScope | None, key: FactKey) -> str:
    """Whether a fact about this user is known."""
    known = services.has_fact(scope=scope, key=key)
    return f"Fact found: {fact_key(key)}" if known else _not_found(key)


def get_all_facts(*, scope: UserScope | None, as_of: AsOf = None) -> str:
    """All facts about this user by key, as they are now or as they were at a moment."""
    facts = services.get_all_facts(scope=scope, as_of=parse_as_of(as_of))
    return "\n".join([count_heading(len(facts), "fact(s)"), *_limit_lines(map(_fact, facts))])


def clear_fact(*, scope: UserScope | None, key: FactKey) -> str:
    """Note that a fact about this user is true no longer. It stays in the history."""
    cleared = services.clear_fact(scope=scope, key=key)
    return f"Fact cleared: {fact_key(key)}" if cleared else _not_found(key)


def history(*, scope: UserScope | None, key: FactKey) -> str:
    """All values that a fact about this user ever had, the latest first."""
    facts = services.history(scope=scope, key=key)
    if not facts:
        return _not_found(key)
    lines = (
        f"{format_time(fact.valid_from)} to"
        f" {format_time(fact.valid_to) if fact.valid_to else 'now'}:"
        f" {_short_value(fact)}{' (no longer true)' if fact.state == Fact.State.ENDED else ''}"
        for fact in facts
    )
    return "\n".join(
        [count_heading(len(facts), f"value(s) of {fact_key(key)}"), *_limit_lines(lines)]
    )


def _fact(fact: Fact) -> str:
    return f"{fact.key} = {_short_value(fact)}"


def _short_value(fact: Fact) -> str:
    return json_quoted(truncated(fact.value, MAX_LISTED_CHARACTERS))


def _limit_lines(lines: Iterable[str]) -> list[str]:
    shown = list(islice(lines, MAX_LISTED_FACTS + 1))
    return shown if len(shown) <= MAX_LISTED_FACTS else [*shown[:MAX_LISTED_FACTS], "… and more."]


def _not_found(key: str) -> str:
    """Not an error: this is an answer too."""
    return f"Fact not found: {fact_key(key)}"


TOOLS = tools_by_name(
    "memory",
    (
        memory_search,
        remember,
        archive_turn,
        clear_memory,
        set_fact,
        get_fact,
        has_fact,
        get_all_facts,
        clear_fact,
        history,
    ),
    writing={remember, archive_turn, clear_memory, set_fact, clear_fact},
)
