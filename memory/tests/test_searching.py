"""Search of a memory: by words and meaning, in any language, through a change of model, without a
model at all."""

from datetime import timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from inference.interfaces import InferenceError
from memory.embedding import embed_waiting
from memory.models import MAX_EMBED_ATTEMPTS, Context, Fact
from memory.services import (
    MemoryResult,
    get_all_facts,
    rank_facts,
    search_memory,
    set_fact,
    store_memory,
)
from memory.tests.factories import NOW, POISON, make_scope, remember

pytestmark = pytest.mark.django_db

BROKEN = {"BACKEND": "inference.backends.hashing.HashingEmbedder", "OPTIONS": {"no such": 1}}


def said(result: MemoryResult) -> list[str]:
    return [hit.context.user_message for hit in result.hits]


def test_the_best_comes_first_with_scores_that_say_why() -> None:
    scope = make_scope()
    remember(scope, "We booked the ferry to Bergen for June")
    remember(scope, "The bakery on the corner has closed")
    embed_waiting(scope=scope)

    result = search_memory(scope=scope, query="When does the ferry to Bergen go?", now=NOW)

    (hit,) = result.hits
    assert hit.context.user_message == "We booked the ferry to Bergen for June"
    assert 0.3 <= hit.ranked.relevance <= 1
    assert hit.ranked.recency == pytest.approx(1, abs=0.01)
    assert (result.searched, result.below, result.degraded) == (2, 1, ())


def test_what_is_not_relevant_is_shown_when_asked_for() -> None:
    scope = make_scope()
    remember(scope, "The bakery on the corner has closed")
    embed_waiting(scope=scope)

    strict = search_memory(scope=scope, query="quantum chromodynamics", now=NOW)
    loose = search_memory(scope=scope, query="quantum chromodynamics", now=NOW, threshold=0)

    assert (strict.hits, strict.below) == ((), 1)
    assert len(loose.hits) == 1


def test_a_natural_question_finds_what_holds_only_some_of_its_words() -> None:
    scope = make_scope()
    remember(scope, "My allergy to peanuts got worse")

    found = search_memory(scope=scope, query="Which peanut snack could I serve", threshold=0)
    assert said(found) == ["My allergy to peanuts got worse"]


def test_the_question_decides_before_its_age_does() -> None:
    scope = make_scope()
    remember(scope, "The boat is called Marlene", at=NOW - timedelta(days=900))
    remember(scope, "I saw a boat today", at=NOW)
    embed_waiting(scope=scope)

    query = "What is the boat called?"
    assert said(search_memory(scope=scope, query=query, now=NOW))[0] == "The boat is called Marlene"
    fresh = search_memory(scope=scope, query=query, now=NOW, recency=1, threshold=0)
    assert said(fresh)[0] == "I saw a boat today"
    assert fresh.hits[1].ranked.recency == pytest.approx(1 / 31)


def test_of_two_alike_the_newer_comes_first() -> None:
    scope = make_scope()
    remember(scope, "The code of the gate is 4711 now", at=NOW - timedelta(days=40))
    remember(scope, "The code of the gate is 0815 now", at=NOW - timedelta(days=2))

    found = said(search_memory(scope=scope, query="code of the gate", now=NOW))
    assert found[0] == "The code of the gate is 0815 now"


@pytest.mark.parametrize(
    ("turn", "question"),
    [
        (
            "Ich habe im Garten hinter dem Haus drei junge Apfelbäume und eine Kirsche gepflanzt",
            "Apfelbaum",
        ),
        ("昨日、東京大学で友達に会いました。とても楽しかったです。", "東京大学で誰に会った？"),
        ("나는 어제 부산에서 생선을 먹었다. 정말 맛있었다.", "부산에서 무엇을"),
        ("ฉันชอบกินข้าวผัดกุ้งกับเพื่อนที่ตลาดทุกวันเสาร์", "ข้าวผัดกุ้ง"),
    ],
)
def test_words_of_any_language_are_found(turn: str, question: str) -> None:
    scope = make_scope()
    remember(scope, turn)
    remember(scope, "Nothing of that kind was ever said in this sentence, which is in English")

    assert said(search_memory(scope=scope, query=question, mode="lexical", now=NOW))[:1] == [turn]


def test_a_short_turn_is_in_the_language_of_the_one_before() -> None:
    scope = make_scope()
    remember(
        scope, "Ich habe im Garten hinter dem Haus drei junge Apfelbäume und eine Kirsche gepflanzt"
    )
    remember(scope, "Die Häuser auch", at=NOW)

    row = Context.objects.of(scope).get(user_message="Die Häuser auch")
    assert row.language == "german"


def test_without_a_model_words_alone_are_searched_and_it_is_said(settings: Any) -> None:
    scope = make_scope()
    remember(scope, "We booked the ferry to Bergen for June")
    embed_waiting(scope=scope)
    settings.INFERENCE = {**settings.INFERENCE, "embedder": {"default": BROKEN}}

    result = search_memory(scope=scope, query="ferry to Bergen", now=NOW)

    assert len(result.hits) == 1
    assert result.degraded == ("vector",)
    with pytest.raises(InferenceError):
        search_memory(scope=scope, query="ferry to Bergen", now=NOW, mode="vector")


def test_a_text_that_the_model_refuses_holds_up_no_other_and_is_not_tried_for_ever(
    settings: Any,
) -> None:
    scope = make_scope()
    for number in range(3):
        remember(scope, f"Ferry number {number} goes to Bergen")
    remember(scope, f"{POISON} on the ferry to Bergen")
    refusing = {"BACKEND": "memory.tests.factories.RefusingEmbedder"}
    settings.INFERENCE = {**settings.INFERENCE, "embedder": {"default": refusing}}

    for _ in range(MAX_EMBED_ATTEMPTS + 2):
        embed_waiting(scope=scope)

    (waiting,) = Context.objects.of(scope).unembedded()
    assert waiting.user_message.startswith(POISON)
    assert waiting.embed_attempts == MAX_EMBED_ATTEMPTS
    assert len(search_memory(scope=scope, query="ferry to Bergen", threshold=0).hits) == 4


def test_facts_are_ranked_by_the_question_and_only_current_ones() -> None:
    scope = make_scope()
    set_fact(scope=scope, key="favourite_dish", value="ramen with egg")
    set_fact(scope=scope, key="shoe_size", value="43")
    set_fact(scope=scope, key="shoe_size", value="44")
    embed_waiting(scope=scope)

    ranked = rank_facts(scope=scope, query="Which dish with egg is my favourite?", limit=5)

    assert ranked[0][0].key == "favourite_dish"
    assert [fact.value for fact, _ in rank_facts(scope=scope, query="shoe size", limit=1)] == ["44"]
    assert len(get_all_facts(scope=scope)) == 2
    assert not Fact.objects.of(scope).current().filter(value="43").exists()


@pytest.mark.parametrize(
    "asked",
    [
        {"query": " \0 "},
        {"query": "x" * 5000},
        {"query": "x", "k": 0},
        {"query": "x", "threshold": 1.5},
        {"query": "x", "recency": float("nan")},
        {"query": "x", "mode": "fuzzy"},
    ],
    ids=["nothing", "too long", "no results", "threshold", "recency", "mode"],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        search_memory(scope=make_scope(), **asked)


def test_operators_of_a_text_search_are_words_like_others() -> None:
    scope = make_scope()
    store_memory(scope=scope, question="a & !b | (c <-> d):* 'e' \\", answer="It parses.")

    for query in ("a & !b | (", "'e' \\ :*", "<-> c", "!"):
        assert search_memory(scope=scope, query=query, threshold=0, now=NOW).searched == 1
