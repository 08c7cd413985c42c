"""Turns are kept once a user, found at once, and forgotten wholly."""

from datetime import timedelta

import pytest

from memory.embedding import embed_waiting
from memory.models import Context
from memory.services import clear_memory, search_memory, store_memory
from memory.store import MAX_TEXT_BYTES, REPLACEMENT
from memory.tests.factories import NOW, make_scope, remember

pytestmark = pytest.mark.django_db


def said_by(result: object) -> list[str]:
    return [hit.context.user_message for hit in result.hits]  # type: ignore[attr-defined]


def test_a_turn_is_found_by_its_meaning_when_it_is_embedded() -> None:
    scope = make_scope()
    remember(scope, "My sister Clara plays the cello")
    remember(scope, "The train to Basel was late again")
    assert embed_waiting(scope=scope) == 2

    result = search_memory(scope=scope, query="sister, cello", mode="vector", now=NOW, threshold=0)

    assert said_by(result)[0] == "My sister Clara plays the cello"
    assert not Context.objects.of(scope).unembedded().exists()


def test_a_turn_told_late_does_not_grow_older() -> None:
    scope = make_scope()
    remember(scope, "I like tea", at=NOW)
    remember(scope, "I like tea", at=NOW - timedelta(days=400))

    assert Context.objects.of(scope).get().created_at == NOW


def test_where_the_answer_begins_makes_another_turn() -> None:
    scope = make_scope()
    remember(scope, "ab", "c")
    remember(scope, "a", "bc")

    assert Context.objects.of(scope).count() == 2


def test_clearing_takes_all_equal_questions_and_no_other() -> None:
    scope = make_scope()
    other = make_scope("bob")
    remember(scope, "What is for dinner?", "Pasta.")
    remember(scope, "What is for dinner?", "Soup.")
    remember(scope, "What is for dinner? And who cooks?", "Soup, Clara.")
    remember(other, "What is for dinner?", "Rice.")

    assert clear_memory(scope=scope, question=" What is for dinner? ") == 2
    assert clear_memory(scope=scope, question="What is for dinner?") == 0
    assert Context.objects.of(scope).count() == 1
    assert Context.objects.of(other).count() == 1


def test_what_postgresql_cannot_hold_is_shown_as_such() -> None:
    scope = make_scope()
    store_memory(scope=scope, question="a\0b \ud83d half", answer="\U0001f600 whole")

    row = Context.objects.of(scope).get()
    assert row.user_message == f"a{REPLACEMENT}b {REPLACEMENT} half"
    assert row.assistant_response == "\U0001f600 whole"


def test_the_largest_turn_of_the_worst_letters_is_kept() -> None:
    scope = make_scope()
    letters = "".join(chr(0x4E00 + n % 20_000) for n in range(MAX_TEXT_BYTES // 3))
    remember(scope, letters, letters[::-1])

    assert Context.objects.of(scope).count() == 1
