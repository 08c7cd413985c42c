"""The admin of memory: curated by the services, logged without texts, light on large rows."""

import html
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from documents.tests.factories import MembershipFactory, UserFactory, WorkspaceFactory
from memory.models import Context, ExtractionItem, Fact
from memory.scopes import UserScope
from memory.services import get_fact, history, set_fact
from memory.tests.factories import NOW, make_scope, remember
from tests.kit import act, log_texts, logged_in, page_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\u202e' OR 1=1 --"
State = ExtractionItem.State


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


def conversation(scope: UserScope, state: str, **given: Any) -> ExtractionItem:
    return ExtractionItem.objects.create(
        workspace_id=scope.workspace_id,
        user_id=scope.user_id,
        **{"key": state, "state": state, **given},
    )


# --- facts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("user_id", "leads"), [("alice & co", True), ("user:7", False)])
def test_a_fact_shows_its_history_and_leads_to_its_page(user_id: str, leads: bool) -> None:
    member = MembershipFactory(user__is_superuser=True)
    scope = make_scope(user_id, workspace=member.workspace)
    source = Context.objects.get(pk=remember(scope, "I live in Paris"))
    set_fact(scope=scope, key="city", value="Paris", at=NOW, source=source)
    set_fact(scope=scope, key="city", value="Berlin")
    set_fact(scope=scope, key="pet", value="Rex")
    then, now = Fact.objects.filter(key="city").order_by("valid_from")
    client = logged_in(member)

    former, shown = (client.get(page_of(row, "change")).content.decode() for row in (then, now))

    assert page_of(now, "change") in former
    assert page_of(source, "change") in former
    assert "People correct their own facts on their page Memory" in shown
    address = next(part for part in shown.split('"') if "key__exact" in part)
    listed = client.get(html.unescape(address)).context["cl"].result_list
    assert {row.beginning for row in listed} == {"Paris", "Berlin"}
    page = reverse("memory_fact", args=["city"], query={"user_id": user_id})
    assert (html.escape(page) in shown) is leads
    assert client.post(page_of(now, "change"), {"value": "Rome"}).status_code == 403
    if leads:
        assert "Berlin" in client.get(page).content.decode()


def test_the_list_shows_what_is_held_true_unless_asked(client: Client) -> None:
    scope = make_scope()
    for value in ("Paris", "Berlin"):
        set_fact(scope=scope, key="city", value=value)

    def listed(**query: str) -> set[str]:
        cl = client.get(page_of(Fact), query).context["cl"]
        return {row.beginning for row in cl.result_list}

    assert listed() == {"Berlin"}
    assert listed(held="before") == {"Paris"}
    assert listed(held="all") == {"Paris", "Berlin"}


def test_clearing_ends_and_forgetting_removes_all_history_of_this_user_alone(
    client: Client,
) -> None:
    workspace = WorkspaceFactory()
    alice, bob = (make_scope(name, workspace=workspace) for name in ("alice", "bob"))
    for scope in (alice, bob):
        set_fact(scope=scope, key="city", value="Paris")
        set_fact(scope=scope, key="city", value="Berlin")
        set_fact(scope=scope, key="age", value="41")
    city = get_fact(scope=alice, key="city")
    age = get_fact(scope=alice, key="age")
    assert city is not None
    assert age is not None

    assert "1 fact ended" in act(client, "clear", age)
    assert get_fact(scope=alice, key="age") is None
    assert len(history(scope=alice, key="age")) == 1

    preview = act(client, "delete_selected", city)
    assert "Values, former ones included: 2" in preview
    assert Fact.objects.of(alice).count() == 3
    act(client, "delete_selected", city, post="yes")
    assert history(scope=alice, key="city") == []
    assert Fact.objects.of(bob).count() == 3
    assert "Berlin" not in log_texts()


# --- contexts ------------------------------------------------------------------------------------


def test_contexts_are_forgotten_with_a_preview_and_facts_learnt_from_them_stay(
    client: Client,
) -> None:
    scopes = [make_scope("alice"), make_scope("bob"), make_scope("carol")]
    rows = [Context.objects.get(pk=remember(scope, "The secret cello")) for scope in scopes]
    set_fact(scope=scopes[0], key="instrument", value="cello", source=rows[0])

    with CaptureQueriesContext(connection) as captured:
        preview = act(client, "delete_selected", *rows[:2])
    assert f"Context {rows[0].pk}" in preview
    assert not [each for each in captured if '."search_vector"' in each["sql"]]
    act(client, "delete_selected", *rows[:2], post="yes")

    assert list(Context.objects.all()) == rows[2:]
    assert Fact.objects.get().source is None
    client.post(page_of(rows[2], "delete"), {"post": "yes"})
    assert not Context.objects.exists()
    assert LogEntry.objects.count() == 3
    assert "cello" not in log_texts()


def test_lists_read_the_beginning_of_long_texts_only(client: Client) -> None:
    scope = make_scope()
    long = "cello " * 10_000
    remember(scope, long, long)
    set_fact(scope=scope, key="poem", value=long)
    conversation(scope, State.DEAD, messages=[{"content": long}], error=long)

    for model in (Context, Fact, ExtractionItem):
        with CaptureQueriesContext(connection) as captured:
            page = client.get(page_of(model)).content
        assert b"cello" in page
        assert len(page) < 110_000
        read = [each["sql"] for each in captured if f'"{model._meta.db_table}"' in each["sql"]]
        assert read
        whole = ("user_message", "assistant_response", "value", "messages", "error", "embedding")
        for column in whole:
            named = f'"{model._meta.db_table}"."{column}"'
            shortened = [sql.replace(f"LEFT({named}, ", "") for sql in read]
            assert not any(f"{named}," in sql for sql in shortened), column


def test_a_row_shows_its_whole_text_and_never_a_vector(client: Client) -> None:
    row = Context.objects.get(pk=remember(make_scope(), "cello " * 1000 + "the end", "Indeed."))

    with CaptureQueriesContext(connection) as captured:
        page = client.get(page_of(row, "change")).content.decode()

    assert "the end" in page
    assert "Indeed." in page
    assert not [each for each in captured if '."embedding",' in each["sql"]]


def test_those_that_wait_for_a_vector_are_found(client: Client) -> None:
    waits = remember(make_scope(), "I wait")
    done = remember(make_scope(), "I am done")
    Context.objects.filter(pk=done).update(space=1, embedding=[0.5] * 384)

    rows = client.get(page_of(Context), {"vector": "no"}).context["cl"].result_list
    assert [row.pk for row in rows] == [waits]


# --- whose ---------------------------------------------------------------------------------------


def test_a_user_is_found_by_the_whole_id_to_the_letter(client: Client) -> None:
    ids = {name: remember(make_scope(name), "x") for name in ("alice", "Alice", "alice2", HOSTILE)}

    for name, pk in ids.items():
        rows = client.get(page_of(Context), {"q": name}).context["cl"].result_list
        assert [row.pk for row in rows] == [pk]
    assert client.get(page_of(Context), {"q": "%"}).context["cl"].result_count == 0


def test_from_a_row_to_all_of_its_user(client: Client) -> None:
    workspace = WorkspaceFactory()
    alice, bob = (make_scope(name, workspace=workspace) for name in ("alice & co", "bob"))
    for scope in (alice, bob, make_scope("alice & co")):
        set_fact(scope=scope, key="city", value="Paris")
        set_fact(scope=scope, key="city", value="Berlin")

    page = client.get(page_of(Fact.objects.of(alice)[0], "change")).content.decode()
    link = next(part for part in page.split('href="') if "user_id__exact" in part).split('"')[0]
    listed = client.get(html.unescape(link)).context["cl"]
    assert {row.user_id for row in listed.result_list} == {"alice & co"}
    assert listed.result_count == 2


# --- the queue and prunings ----------------------------------------------------------------------


def test_what_was_given_up_stands_first_with_its_error(client: Client) -> None:
    scope = make_scope()
    for state in (State.IDLE, State.RUNNING, State.WAITING):
        conversation(scope, state, due_at=NOW - timedelta(days=9))
    conversation(scope, State.DEAD, error="The reply is no JSON.", attempts=5)

    answer = client.get(page_of(ExtractionItem))
    states = [row.state for row in answer.context["cl"].result_list]

    assert states == [State.DEAD, State.RUNNING, State.WAITING]
    assert "The reply is no JSON." in answer.content.decode()
    for state, number in ((State.IDLE, 1), (State.DEAD, 1), ("all", 4)):
        listed = client.get(page_of(ExtractionItem), {"state": state}).context["cl"]
        assert listed.result_count == number


def test_what_was_given_up_is_tried_again_and_nothing_else(client: Client) -> None:
    scope = make_scope()
    dead = conversation(scope, State.DEAD, attempts=5, messages=[{"content": "x", "at": ""}])
    running = conversation(scope, State.RUNNING, attempts=2)

    assert "1 of 2 are in the queue again" in act(client, "try_again", dead, running)

    dead.refresh_from_db()
    running.refresh_from_db()
    assert (dead.state, dead.attempts) == (State.WAITING, 0)
    assert (running.state, running.attempts) == (State.RUNNING, 2)
