"""Users correct themselves: what holds afterwards, and what no model gets to see any more."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from accounts.models import Workspace
from memory import tasks
from memory.models import Context, ExtractionItem, Fact, Origin
from memory.scopes import UserScope
from memory.services import clear_fact, get_all_facts, history, inject, search_memory, set_fact
from memory.services.memories import record_messages
from memory.tests.corrections import ENGLISH, GERMAN, REPORTED, Conversation
from memory.tests.factories import make_scope, remember

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

MARCH = datetime(2026, 3, 1, 9, tzinfo=UTC)
ALL = [*REPORTED, *ENGLISH, *GERMAN]


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
    assert (facts(scope), ended(scope)) == (one.known, set(one.ended))
    rows = Fact.objects.of(scope).count()
    say(scope, *one.said)
    assert Fact.objects.of(scope).count() == rows


@pytest.mark.parametrize("one", ALL, ids=lambda one: " ".join(one.said))
def test_the_same_holds_where_all_is_read_together(scope: UserScope, one: Conversation) -> None:
    say(scope, *one.said)
    assert facts(scope) == one.known


def test_forty_corrections_are_tried() -> None:
    assert (len(ENGLISH), len(GERMAN)) == (20, 20)


def test_turns_that_state_or_repeat_what_has_ended_are_put_before_no_model(
    scope: UserScope,
) -> None:
    stranger = make_scope("bob", workspace=Workspace.objects.get(pk=scope.workspace_id))
    for whose in (scope, stranger):
        remember(whose, "I have a dog called Rex.", "How lovely!", conversation="chat")
    remember(scope, "My sister Clara plays the cello.", "And your dog is called Rex.")
    say(scope, "I have a dog called Rex.")
    now = timezone.now()
    remember(scope, "What is my dog called?", "It is called Rex.", at=now)
    remember(scope, "Who was Tyrannosaurus rex?", "A dinosaur, like no dog.", at=now)
    assert "Rex" in injected(scope, "What is my dog called?")
    say(scope, "I have a dog called Rex.", "Rex died last week.")
    assert injected(scope, "What is my dog called?").count("Rex") == 1
    found = search_memory(scope=scope, query="my dog Rex", threshold=0.0, k=10)
    assert {hit.context.user_message for hit in found.hits} == {
        "Who was Tyrannosaurus rex?",
        "My sister Clara plays the cello.",
    }
    assert search_memory(scope=stranger, query="my dog Rex", threshold=0.0).hits
    outdated = Context.objects.exclude(outdated_at=None)
    assert {context.user_message.rstrip(".") for context in outdated} == {
        "I have a dog called Rex",
        "What is my dog called?",
    }


def test_a_turn_of_another_language_is_outdated_with_what_was_learnt_from_it(
    scope: UserScope,
) -> None:
    turn = Context.objects.get(pk=remember(scope, "J'habite à Nantes."))
    set_fact(scope=scope, key="home", value="Nantes", source=turn, origin=Origin.MODEL)
    set_fact(scope=scope, key="home", value="Brest")
    turn.refresh_from_db()
    assert turn.outdated_at is not None


def test_what_a_person_ends_is_put_before_no_model_either(scope: UserScope) -> None:
    remember(scope, "I live in Kiel.")
    set_fact(scope=scope, key="location", value="Kiel")
    remember(scope, "I live in Kiel, by the sea.", at=timezone.now() + timedelta(days=1))
    assert clear_fact(scope=scope, key="location")
    found = search_memory(scope=scope, query="Where do I live?", threshold=0.0)
    # what was said after the end is not about the time before
    assert [hit.context.user_message for hit in found.hits] == ["I live in Kiel, by the sea."]


def test_a_denial_that_is_read_late_leaves_what_was_confirmed_since(scope: UserScope) -> None:
    for day in (1, 20):
        set_fact(scope=scope, key="location", value="Kiel", at=MARCH + timedelta(days=day))
    messages = [
        {"role": "user", "content": "I no longer live in Kiel", "at": MARCH + timedelta(days=9)}
    ]
    record_messages(scope=scope, conversation="chat", messages=messages)
    tasks.extract(ExtractionItem.objects.get().pk)
    assert facts(scope) == {"location": "Kiel"}
    now, before = history(scope=scope, key="location")
    assert (before.valid_to, now.valid_from) == (
        MARCH + timedelta(days=9),
        MARCH + timedelta(days=20),
    )


@pytest.mark.parametrize(
    "said",
    [
        ("I live in Kiel.", "What is the weather?", "Forget that."),
        ("I live in Kiel. How is the weather there?", "Forget that."),
        ("I live in Kiel.", "Forget that? Never!"),
        ("I live in Kiel.", "I was wrong about the train."),
    ],
)
def test_only_what_was_just_stated_is_taken_back(scope: UserScope, said: tuple[str, ...]) -> None:
    for number in range(len(said)):
        say(scope, *said[: number + 1])
    assert facts(scope) == {"location": "Kiel"}


def test_what_is_said_again_after_its_end_holds_again(scope: UserScope) -> None:
    said = ("I live in Kiel.", "I no longer live in Kiel.", "I live in Kiel.")
    say(scope, *said)
    assert facts(scope) == {"location": "Kiel"}
    states = [fact.state for fact in history(scope=scope, key="location")]
    assert states == [Fact.State.CURRENT, Fact.State.ENDED]
