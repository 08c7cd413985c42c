"""Users correct themselves: what holds afterwards, and what no model gets to see any more."""

from typing import Any

import pytest

from memory import tasks
from memory.models import ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services import get_all_facts, inject
from memory.services.memories import record_messages
from memory.tests.corrections import ENGLISH, GERMAN, REPORTED, Conversation
from memory.tests.factories import make_scope

pytestmark = pytest.mark.django_db

ALL = [*REPORTED, *ENGLISH, *GERMAN]


@pytest.fixture
def scope() -> UserScope:
    return make_scope()


@pytest.fixture(autouse=True)
def _at_once(settings: Any) -> None:
    settings.MEMORY_EXTRACTION_MIN_TURNS = 1
    settings.MEMORY_EXTRACTION_IDLE_SECONDS = 0


def say(scope: UserScope, *said: str) -> None:
    """Send the conversation so far, which the assistant answers by repeating it, and read it."""
    messages = [
        message
        for text in said
        for message in ({"role": "user", "content": text}, {"role": "assistant", "content": text})
    ]
    record_messages(scope=scope, conversation="chat", messages=messages)
    tasks.extract(ExtractionItem.objects.of(scope).get().pk)


def facts(scope: UserScope) -> dict[str, str]:
    return {fact.key: fact.value for fact in get_all_facts(scope=scope)}


def ended(scope: UserScope) -> set[str]:
    last = Fact.objects.of(scope).latest_per_key()
    return {fact.key for fact in last if fact.state == Fact.State.ENDED}


def injected(scope: UserScope, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    done = inject(messages=messages, scope=scope, enabled=True, threshold=0.0)
    return str(done.messages[-1]["content"]).removeprefix(question)


@pytest.mark.parametrize("one", ALL, ids=lambda one: " ".join(one.said))
def test_the_later_statement_holds(scope: UserScope, one: Conversation) -> None:
    for number in range(len(one.said)):
        say(scope, *one.said[: number + 1])
    assert (facts(scope), ended(scope)) == (one.known, one.ended)
    rows = Fact.objects.of(scope).count()
    say(scope, *one.said)
    assert Fact.objects.of(scope).count() == rows


@pytest.mark.parametrize("one", ALL, ids=lambda one: " ".join(one.said))
def test_the_same_holds_where_all_is_read_together(scope: UserScope, one: Conversation) -> None:
    say(scope, *one.said)
    assert facts(scope) == one.known


def test_forty_corrections_are_tried() -> None:
    assert (len(ENGLISH), len(GERMAN)) == (20, 20)
