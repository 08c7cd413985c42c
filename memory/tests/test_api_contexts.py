"""The API of contexts: archived, learned from, searched, listed, injected, forgotten."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import MembershipFactory
from memory.embedding import embed_waiting
from memory.models import Context, ExtractionItem
from memory.tests.clients import CONTEXTS, MEMORY, SEARCH, archive, put_fact, said
from memory.tests.factories import NOW, make_scope, remember, remember_many
from tests.kit import client_of

pytestmark = pytest.mark.django_db
CONVERSATIONS = f"{MEMORY}conversations/"
SYSTEM = {"role": "system", "content": "Be kind."}
QUESTION = {"role": "user", "content": "Which instrument does my sister Clara play?"}


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


def send(api: APIClient, *said: str, conversation: str = "monday", **given: Any) -> Any:
    messages = [{"role": "system", "content": "Be kind."}]
    for text in said:
        messages += [
            {"role": "user", "content": text, **given},
            {"role": "assistant", "content": "I live in Rome."},
        ]
    return api.post(CONVERSATIONS, {"conversation": conversation, "messages": messages})


def give_up(error: str) -> ExtractionItem:
    """What a worker does after its last attempt."""
    ExtractionItem.objects.update(state=ExtractionItem.State.DEAD, attempts=5, error=error)
    return ExtractionItem.objects.get()


def test_what_the_user_said_waits_to_be_read(api: APIClient, alice: Membership) -> None:
    answer = send(api, "I moved to Berlin.", "Call me Ada.")

    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["user_id"], shown["new"]) == (f"user:{alice.user.pk}", 2)
    conversation = shown["conversation"]
    assert (conversation["conversation"], conversation["state"]) == ("monday", "waiting")
    assert (conversation["waiting"], conversation["attempts"], conversation["error"]) == (2, 0, "")
    row = ExtractionItem.objects.get()
    assert row.user_id == f"user:{alice.user.pk}"
    assert [message["content"] for message in row.messages] == [
        "I moved to Berlin.",
        "Call me Ada.",
    ]


def test_a_message_may_say_when_it_was_said(api: APIClient) -> None:
    send(api, "I moved to Berlin.", at="2026-01-01T10:00:00+02:00")
    assert ExtractionItem.objects.get().messages[0]["at"] == "2026-01-01T08:00:00+00:00"


def test_conversations_are_listed_newest_first_and_by_state(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.", conversation="monday")
    give_up("The model's reply was no JSON.")
    send(api, "I like tea.", "I like cake.", conversation="tuesday")

    def names(**parameters: str) -> list[str]:
        rows = api.get(CONVERSATIONS, parameters).json()["results"]
        return [row["conversation"] for row in rows]

    assert names() == ["tuesday", "monday"]
    assert names(state="dead") == ["monday"]
    assert names(state="waiting") == ["tuesday"]
    dead = api.get(CONVERSATIONS, {"state": "dead"}).json()["results"][0]
    assert (dead["attempts"], dead["error"]) == (5, "The model's reply was no JSON.")
    assert "messages" not in dead


def test_one_that_was_given_up_is_tried_again(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.")
    url = f"{CONVERSATIONS}{give_up('No JSON.').pk}/retry/"

    answer = api.post(url)

    assert answer.status_code == 200
    conversation = answer.json()["conversation"]
    assert (conversation["state"], conversation["attempts"]) == ("waiting", 0)
    again = api.post(url)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


@override_settings(MEMORY_EXTRACTION_QUEUE_LIMIT=2)
def test_a_full_queue_says_when_to_come_again(api: APIClient) -> None:
    send(api, "I moved to Berlin.", "Call me Ada.")

    refused = send(api, "I like tea.", conversation="tuesday")

    assert (refused.status_code, refused.json()["code"]) == (429, "extraction_queue_full")
    assert int(refused.headers["Retry-After"]) > 0
    assert ExtractionItem.objects.count() == 1


@pytest.fixture
def client() -> APIClient:
    client = client_of(MembershipFactory())
    said = "My sister Clara plays an instrument, the cello."
    archive(client, said, "How lovely!", at="2023-05-08T10:00:00Z")
    put_fact(client, "sister", "Clara")
    return client


def inject(client: APIClient, *messages: Any, **given: Any) -> Any:
    answer = client.post(f"{MEMORY}inject/", {"messages": messages, **given})
    assert answer.status_code == 200
    return answer.json()


def test_the_last_question_gets_what_is_remembered_behind_it(client: APIClient) -> None:
    shown = inject(client, SYSTEM, QUESTION)

    system, question = shown["messages"]
    assert system == SYSTEM
    assert question["content"].startswith(QUESTION["content"] + "\n\n[memory ")
    assert "cello" in question["content"]
    assert shown["facts"] == [{"key": "sister", "value": "Clara"}]
    assert shown["context"] == [
        {
            "said_on": "2023-05-08",
            "user_message": "My sister Clara plays an instrument, the cello.",
            "assistant_response": "How lovely!",
        }
    ]
    assert shown["tokens"] > 0
    assert shown["degraded"] == []


def test_whatever_else_a_message_holds_comes_back_as_it_was(client: APIClient) -> None:
    strange = [
        {"role": "tool", "content": None, "tool_call_id": "x", "more": {"a": [1, 2.5, None]}},
        {"role": "assistant", "tool_calls": [{"id": "x"}]},
        {"role": "user", "content": []},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]},
        {"role": "", "content": "  \n"},
    ]
    assert inject(client, *strange, QUESTION)["messages"][:-1] == strange
