"""Whose memory the API works on, and what it refuses."""

from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from django.urls import resolve
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.tests.factories import MembershipFactory
from memory.api.urls import urlpatterns
from memory.models import Context, ExtractionItem, Fact
from memory.tests.clients import CONTEXTS, FACTS, MEMORY, SEARCH, archive, colleague, put_fact, said
from memory.tests.factories import make_scope, remember
from tests.kit import client_of

pytestmark = pytest.mark.django_db
READS = [
    CONTEXTS,
    FACTS,
    f"{FACTS}city/history/",
    f"{SEARCH}?q=tea",
    f"{MEMORY}usage/",
    f"{MEMORY}export/",
    f"{MEMORY}conversations/",
]
SAID = [{"role": "user", "content": "My name is Ada. I like tea."}]
WRITES: list[tuple[str, str, Any]] = [
    ("post", CONTEXTS, {"user_message": "tea"}),
    ("post", SEARCH, {"q": "tea"}),
    ("post", f"{CONTEXTS}clear/", {"question": "tea"}),
    ("put", f"{FACTS}city/", {"value": "Basel"}),
    ("post", f"{FACTS}city/clear/", None),
    ("delete", f"{FACTS}city/", None),
    ("post", f"{MEMORY}inject/", {"messages": SAID}),
    ("post", f"{MEMORY}conversations/", {"conversation": "c", "messages": SAID}),
    ("delete", MEMORY, None),
]
EVERYTHING = [*(("get", url, None) for url in READS), *WRITES]
#: What needs something to be there, and has tests of its own.
OF_SOMETHING = {
    ("get", "memory-context-detail"),
    ("delete", "memory-context-detail"),
    ("get", "memory-fact"),
    ("post", "memory-conversation-retry"),
}


def ask(api: APIClient, method: str, url: str, body: Any = None, **parameters: str) -> Any:
    joined = f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
    return getattr(api, method)(joined, body)


def ask_everything(api: APIClient, **parameters: str) -> dict[str, Any]:
    """What each address answers, by its name. Everything is to be erased last."""
    answers = {}
    for method, url, body in EVERYTHING:
        confirmed = {"confirm": parameters.get("user_id", "")} if method == "delete" else {}
        more = confirmed if url == MEMORY else {}
        answers[f"{method} {url}"] = ask(api, method, url, body, **parameters, **more)
    return answers


def statuses(answers: dict[str, Any]) -> dict[str, int]:
    return {name: answer.status_code for name, answer in answers.items()}


def all_of_them(status: int) -> dict[str, int]:
    return {f"{method} {url}": status for method, url, _ in EVERYTHING}


def rows() -> tuple[int, ...]:
    return tuple(kind.objects.count() for kind in (Context, Fact, ExtractionItem))


@pytest.fixture
def bob(alice: Membership) -> Membership:
    """May read documents in Alice's workspace."""
    return colleague(alice, role=Role.VIEWER)


@pytest.fixture
def bea(alice: Membership) -> Membership:
    """May change documents there."""
    return colleague(alice, role=Role.EDITOR)


def test_everybody_has_a_memory_of_his_own(alice: Membership, bob: Membership) -> None:
    for member, drink in ((alice, "tea"), (bob, "coffee")):
        api = client_of(member)
        archive(api, f"I like {drink}.")
        put_fact(api, "drink", drink)

    for member, drink in ((alice, "tea"), (bob, "coffee")):
        api = client_of(member)
        assert said(api.get(CONTEXTS)) == [f"I like {drink}."]
        assert said(api.get(SEARCH, {"q": "tea or coffee"})) == [f"I like {drink}."]
        assert api.get(f"{FACTS}drink/").json()["fact"]["value"] == drink
        own = {"user_id": f"user:{member.user.pk}"}
        assert said(api.get(CONTEXTS, own)) == [f"I like {drink}."]


def test_every_address_is_asked_here() -> None:
    there = {
        (method, str(pattern.name))
        for pattern in urlpatterns
        for method in ("get", "post", "put", "patch", "delete")
        if method in getattr(pattern.callback, "actions", dir(pattern.callback.cls))
    }
    asked = {(method, resolve(url.split("?")[0]).url_name) for method, url, _ in EVERYTHING}
    assert asked | OF_SOMETHING == there


def test_viewers_name_nobody_else(alice: Membership, bob: Membership) -> None:
    remember(make_scope("ada", workspace=alice.workspace), "tea")

    answers = ask_everything(client_of(bob), user_id="ada")

    assert statuses(answers) == all_of_them(403)
    assert {answer.json()["code"] for answer in answers.values()} == {"permission_denied"}
    assert rows() == (1, 0, 0)


def test_editors_work_on_the_memory_of_users_they_name(alice: Membership, bea: Membership) -> None:
    api = client_of(bea)
    archive(api, "tea", address="?user_id=ada")
    put_fact(api, "drink", "tea", address="?user_id=ada")

    assert said(api.get(CONTEXTS)) == said(api.get(CONTEXTS, {"user_id": "Ada"})) == []
    shown = api.get(CONTEXTS, {"user_id": "ada"}).json()
    assert shown["user_id"] == "ada"
    context = f"{CONTEXTS}{shown['results'][0]['id']}/"
    assert api.get(context).status_code == 404
    assert api.get(context, {"user_id": "ada"}).json()["context"]["user_message"] == "tea"
    assert said(client_of(alice).get(CONTEXTS, {"user_id": "ada"})) == ["tea"]
    assert ask(api, "delete", MEMORY, user_id="ada", confirm="ada").json()["facts"] == 1
    assert not Context.objects.exists()


def test_a_memory_is_of_one_workspace(alice: Membership) -> None:
    elsewhere = MembershipFactory(user=alice.user)
    api = client_of(alice)
    archive(api, "tea")
    archive(api, "coffee", address=f"?workspace={elsewhere.workspace.slug}")

    assert said(api.get(CONTEXTS)) == ["tea"]
    assert said(api.get(CONTEXTS, {"workspace": elsewhere.workspace.slug})) == ["coffee"]


def test_of_nobody_nothing_is_kept_and_no_answer_is_an_error(
    alice: Membership, bob: Membership
) -> None:
    for member in (alice, bob):
        api = client_of(member)
        archive(api, "tea")
        put_fact(api, "city", "Basel")

    for member, nobody in product((alice, bob), ("", "  ", "unknown", " Unknown ")):
        answers = ask_everything(client_of(member), user_id=nobody)
        assert statuses(answers) == all_of_them(200)
        exported = answers.pop(f"get {MEMORY}export/")
        assert b"".join(exported.streaming_content) == b""
        assert [answer.json()["user_id"] for answer in answers.values()] == [None] * len(answers)

    assert rows() == (2, 2, 0)


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert body["detail"]
    assert not Context.objects.exists()
    assert not Fact.objects.exists()


@pytest.mark.parametrize(
    ("url", "query", "field"),
    [
        (CONTEXTS, "user_id=a%00b", "user_id"),
        (CONTEXTS, "user_id=Jos%E9", "user_id"),
        (CONTEXTS, "user_id=ada&user_id=bob", "user_id"),
        (CONTEXTS, "user_id=&user_id=ada", "user_id"),
        (CONTEXTS, "conversation=a%00b", "conversation"),
        (FACTS, "cursor=cD1hJTAwYg==", "cursor"),
        (SEARCH, "q=tea&threshold=nan", "threshold"),
        (SEARCH, "q=tea&recency=inf", "recency"),
        (SEARCH, "q=a%00b", "q"),
    ],
)
def test_addresses_that_cannot_be(api: APIClient, url: str, query: str, field: str) -> None:
    assert_refused(api.get(f"{url}?{query}"), field)
