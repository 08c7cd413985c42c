"""The API of contexts: archived, searched, listed, forgotten."""

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from memory.embedding import embed_waiting
from memory.models import Context
from memory.tests.clients import CONTEXTS, SEARCH, archive, said
from memory.tests.factories import NOW, make_scope, remember, remember_many

pytestmark = pytest.mark.django_db


def test_a_turn_is_kept_under_the_account_that_brings_it(api: APIClient, alice: Membership) -> None:
    answer = archive(api, "I like tea.", "Noted.", conversation="monday")

    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["user_id"], shown["is_new"]) == (f"user:{alice.user.pk}", True)
    row = Context.objects.get()
    assert (row.workspace_id, row.user_id) == (alice.workspace_id, f"user:{alice.user.pk}")
    assert shown["context"] == {
        "id": row.pk,
        "conversation": "monday",
        "user_message": "I like tea.",
        "assistant_response": "Noted.",
        "origin": "turn",
        "created_at": row.created_at.isoformat().replace("+00:00", "Z"),
        "outdated_at": None,
        "embedded": False,
    }


def test_the_same_turn_sent_again_is_the_same_context(api: APIClient) -> None:
    first = archive(api, "I like tea.", at="2026-01-01T09:00:00Z")
    again = archive(api, "I like tea.", at="2026-01-02T09:00:00Z")

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["is_new"] is False
    assert again.json()["context"]["id"] == first.json()["context"]["id"]
    assert again.json()["context"]["created_at"] == "2026-01-02T09:00:00Z"


def test_texts_come_back_to_the_letter(api: APIClient) -> None:
    text = "  two spaces\n\tand a tab, ]}{[facts: a=b] 👩‍🔬 e\u0301 \u202e "
    shown = archive(api, text, text).json()["context"]
    assert shown["user_message"] == shown["assistant_response"] == text
    assert api.get(f"{CONTEXTS}{shown['id']}/").json()["context"] == shown


def test_a_question_finds_what_was_said_with_every_score(api: APIClient) -> None:
    archive(api, "My sister Clara plays the cello.", "How lovely!")
    archive(api, "The train to Basel was late again.")

    answer = api.get(SEARCH, {"q": "Who plays the cello?", "mode": "lexical"})

    assert answer.status_code == 200
    shown = answer.json()
    best = shown["hits"][0]
    assert best["context"]["user_message"] == "My sister Clara plays the cello."
    assert set(best["scores"]) == {"score", "relevance", "recency", "parts"}
    assert all(0 < best["scores"][name] <= 1 for name in ("score", "relevance", "recency"))
    assert best["scores"]["parts"]
    assert (shown["query"], shown["mode"]) == ("Who plays the cello?", "lexical")
    assert (shown["searched"], shown["degraded"]) == (2, [])


def test_a_body_asks_what_a_query_string_asks(api: APIClient) -> None:
    archive(api, "My sister Clara plays the cello.")
    archive(api, "The train to Basel was late again.")
    question = {"q": "cello", "k": 1, "threshold": 0, "recency": 1}

    by_address, by_body = api.get(SEARCH, question).json(), api.post(SEARCH, question).json()

    assert [hit["context"] for hit in by_address["hits"]] == [
        hit["context"] for hit in by_body["hits"]
    ]
    assert len(by_body["hits"]) == 1
    # By the names that the parameters had.
    former = {"query": "cello", "max_results": 1}
    for answer in (api.get(SEARCH, former).json(), api.post(SEARCH, former).json()):
        assert [hit["context"]["id"] for hit in answer["hits"]] == [
            by_body["hits"][0]["context"]["id"]
        ]


def test_contexts_are_listed_newest_first_and_by_conversation(api: APIClient) -> None:
    archive(api, "second", at="2026-01-02T00:00:00Z", conversation="a")
    archive(api, "first", at="2026-01-01T00:00:00Z", conversation="b")
    archive(api, "third", at="2026-01-03T00:00:00Z", conversation="a")

    assert said(api.get(CONTEXTS)) == ["third", "second", "first"]
    assert embed_waiting() == 3
    assert api.get(CONTEXTS).json()["results"][0]["embedded"] is True
    assert said(api.get(CONTEXTS, {"conversation": "a"})) == ["third", "second"]
    assert said(api.get(CONTEXTS, {"conversation": "c"})) == []


def pages(api: APIClient, url: str | None, *, step: str) -> list[list[str]]:
    found = []
    while url:
        answer = api.get(url)
        assert answer.status_code == 200
        found.append(said(answer))
        url = answer.json()[step]
    return found


def test_pages_have_no_gap_and_no_repetition_even_where_moments_are_equal(
    api: APIClient, alice: Membership
) -> None:
    scope = make_scope(f"user:{alice.user.pk}", workspace=alice.workspace)
    moments = [NOW] * 7 + [NOW - timedelta(days=1)] * 2 + [NOW - timedelta(days=2)] * 4
    remember_many(scope, {f"{number}": at for number, at in enumerate(moments)})
    whole = said(api.get(CONTEXTS))

    for size in (1, 2, 3, 5):
        found = pages(api, f"{CONTEXTS}?page_size={size}", step="next")
        assert [row for page in found for row in page] == whole, size
    assert len(whole) == len(moments)


def test_links_to_other_pages_stay_in_the_same_memory(api: APIClient, alice: Membership) -> None:
    ada = make_scope("ada & co", workspace=alice.workspace)
    for number in range(4):
        remember(ada, f"{number}", at=NOW + timedelta(days=number))
    archive(api, "mine")

    url = f"{CONTEXTS}?user_id=ada+%26+co&page_size=2"
    assert pages(api, url, step="next") == [["3", "2"], ["1", "0"]]
    last = api.get(api.get(url).json()["next"]).json()
    assert last["user_id"] == "ada & co"
    assert pages(api, last["previous"], step="previous") == [["3", "2"]]


def test_a_context_is_forgotten_once(api: APIClient) -> None:
    url = f"{CONTEXTS}{archive(api, 'I like tea.').json()['context']['id']}/"
    archive(api, "I like coffee.")

    assert api.delete(url).status_code == 204
    assert [api.get(url).status_code, api.delete(url).status_code] == [404, 404]
    assert said(api.get(CONTEXTS)) == ["I like coffee."]


def test_all_contexts_of_a_question_are_forgotten_together(api: APIClient) -> None:
    archive(api, "What is for dinner?", "Pasta.")
    archive(api, "What is for dinner?", "Soup.")
    archive(api, "What is for lunch?", "Bread.")

    answer = api.post(f"{CONTEXTS}clear/", {"question": "What is for dinner?"})

    assert answer.status_code == 200
    assert answer.json()["removed"] == 2
    assert said(api.get(CONTEXTS)) == ["What is for lunch?"]


def test_no_answer_is_kept_on_the_way(api: APIClient) -> None:
    kept = archive(api, "I like tea.")
    url = f"{CONTEXTS}{kept.json()['context']['id']}/"
    answers: list[Any] = [
        kept,
        api.get(url),
        api.get(CONTEXTS),
        api.get(SEARCH, {"q": "tea"}),
        api.get(f"{CONTEXTS}0/"),
        api.get(CONTEXTS, {"no": "such"}),
        APIClient().get(url),
        api.delete(url),
    ]
    assert [answer.headers["Cache-Control"] for answer in answers] == ["no-store"] * len(answers)
