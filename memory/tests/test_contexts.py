"""Turns are kept once a user, found at once, and forgotten wholly."""

from datetime import timedelta

import pytest

from common.errors import InvalidInput
from documents.tests.factories import WorkspaceFactory
from memory.embedding import embed_waiting
from memory.models import Context
from memory.scopes import user_scope
from memory.services import archive_turn, clear_memory, search_memory, store_memory
from memory.store import MAX_TEXT_BYTES, REPLACEMENT
from memory.tests.factories import NOW, make_scope, remember

pytestmark = pytest.mark.django_db


def said_by(result: object) -> list[str]:
    return [hit.context.user_message for hit in result.hits]  # type: ignore[attr-defined]


def test_a_turn_is_found_by_its_words_before_it_is_embedded() -> None:
    scope = make_scope()
    remember(scope, "My sister Clara plays the cello", "How lovely!")
    remember(scope, "The train to Basel was late again", "I am sorry to hear that.")

    result = search_memory(scope=scope, query="Who plays the cello?", now=NOW)

    assert said_by(result)[0] == "My sister Clara plays the cello"
    assert Context.objects.of(scope).unembedded().count() == 2


def test_a_turn_is_found_by_its_meaning_when_it_is_embedded() -> None:
    scope = make_scope()
    remember(scope, "My sister Clara plays the cello")
    remember(scope, "The train to Basel was late again")
    assert embed_waiting(scope=scope) == 2

    result = search_memory(scope=scope, query="sister, cello", mode="vector", now=NOW, threshold=0)

    assert said_by(result)[0] == "My sister Clara plays the cello"
    assert not Context.objects.of(scope).unembedded().exists()


def test_the_same_turn_again_is_kept_once_and_is_as_fresh_as_then() -> None:
    scope = make_scope()
    first = remember(scope, "I like tea", "Noted.", at=NOW - timedelta(days=9))
    again = archive_turn(
        scope=scope, user_message="I like tea", assistant_response="Noted.", at=NOW
    )

    assert again is not None
    assert (again.id, again.is_new) == (first, False)
    assert Context.objects.of(scope).get().created_at == NOW


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


def test_two_users_may_say_the_same() -> None:
    workspace = WorkspaceFactory()
    alice, bob = (make_scope(name, workspace=workspace) for name in ("alice", "bob"))
    remember(alice, "I like tea")
    remember(bob, "I like tea")

    assert Context.objects.of(alice).count() == Context.objects.of(bob).count() == 1


@pytest.mark.parametrize("user_id", ["", "   ", "unknown", " Unknown ", None])
def test_of_nobody_nothing_is_kept_or_found(user_id: str | None) -> None:
    scope = user_scope(workspace=WorkspaceFactory(), user_id=user_id)

    assert scope is None
    assert archive_turn(scope=scope, user_message="I like tea") is None
    assert search_memory(scope=scope, query="tea").hits == ()
    assert not Context.objects.exists()


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


def test_a_turn_without_text_or_with_too_much_is_refused() -> None:
    scope = make_scope()
    with pytest.raises(InvalidInput, match="no text"):
        archive_turn(scope=scope, user_message=" \n", assistant_response="\t")
    with pytest.raises(InvalidInput, match="as a document"):
        archive_turn(scope=scope, user_message="ä" * MAX_TEXT_BYTES)


def test_the_largest_turn_of_the_worst_letters_is_kept() -> None:
    scope = make_scope()
    letters = "".join(chr(0x4E00 + n % 20_000) for n in range(MAX_TEXT_BYTES // 3))
    remember(scope, letters, letters[::-1])

    assert Context.objects.of(scope).count() == 1
