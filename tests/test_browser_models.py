"""Connecting a language model in a real Chromium: found, tried, made the default, asked, answered;
its key changed; ended in the middle; removed while it is the default."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import Membership
from documents.tests.factories import CollectionFactory
from inference.tests.stub_server import Reply, Stream, StubServer, chat_stream, delta, event
from model_servers import services
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions
from model_servers.tests.servers import KEY, MODEL, openai_server
from rag.tests.asking import OFFICE, document
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("connected", "operator", "office"),
]

MOVE = "When does the firm leave Mill Street?"


@pytest.fixture
def server() -> Iterator[StubServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def office(alice: Membership) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="office", name="Office")
    document(collection, "move.md", OFFICE)


def ask(visit: Visit) -> Any:
    """The turn of a question that was just asked."""
    page = visit.page
    page.goto("/chat/")
    expect(page.locator("[data-composer][data-ready]")).to_be_visible()
    page.get_by_label("Your question").fill(MOVE)
    page.keyboard.press("Enter")
    return page.locator(".turn", has_text=MOVE).last


def test_from_a_running_site_to_the_first_answer_by_mouse(
    visit: Visit, server: StubServer, settings: Any
) -> None:
    settings.FIND_MODEL_SERVERS = [f"llama-cpp={server.url}"]
    listed = server._always

    def reply(payload: Any) -> Any:
        is_trial = payload is None or "library" in str(payload["messages"])
        return listed(payload) if is_trial else chat_stream("The firm leaves in March [1].")

    server.always(reply)
    page = visit.page
    page.goto("/chat/")
    page.get_by_role("link", name="Connect a language model").click()
    page.get_by_role("button", name="Use it").click()
    expect(page.get_by_role("status").first).to_contain_text(f"written by “{MODEL}” from now on")
    page.get_by_role("button", name="Try it").click()
    expect(page.get_by_text("A library lends books.")).to_be_visible()
    assert visit.serious_findings() == []
    page.get_by_role("link", name="Ask a question").click()
    turn = ask(visit)
    expect(turn).to_have_attribute("data-state", "answered")
    expect(turn.locator(".said")).to_contain_text("The firm leaves in March")
    expect(turn.locator(".said .cite")).to_have_count(1)


def test_a_key_is_entered_and_changed_and_the_models_are_offered(
    visit: Visit, server: StubServer
) -> None:
    listed = server._always

    def reply(payload: Any) -> Any:
        sent = server.requests[-1].headers.get("authorization")
        return listed(payload) if sent == f"Bearer {KEY}" else Reply({"error": "no"}, status=401)

    server.always(reply)
    page = visit.page
    page.goto("/models/")
    page.get_by_role("link", name="Other server").click()
    page.get_by_label("Address").fill(server.url)
    page.get_by_role("button", name="List the server’s models").click()
    expect(page.get_by_role("alert")).to_contain_text("wants a key")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="List the server’s models").click()
    page.locator("select[name=model]").select_option(MODEL)
    page.get_by_role("button", name="Test and save").click()
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    page.get_by_role("link", name="Change").click()
    page.get_by_label("Key", exact=True).fill("sk-wrong")
    page.get_by_role("button", name="Test and save").click()
    expect(page.get_by_role("alert")).to_contain_text("does not accept this key")
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Test and save").click()
    expect(page.get_by_role("heading", name=MODEL)).to_be_visible()
    assert KEY not in page.content()
    (connection,) = ModelConnection.objects.all()
    assert services.decrypted_key(connection) == KEY
    visit.errors = [each for each in visit.errors if "400" not in each]


def test_the_server_ends_in_the_middle_and_the_model_is_removed_while_it_is_the_default(
    visit: Visit, server: StubServer
) -> None:
    given = {"kind": "openai", "address": server.url, "model": MODEL}
    connection = services.connect_model(options=ConnectionOptions.from_text(given), is_default=True)
    killed = threading.Event()
    server.always(lambda payload: Stream(event(delta("The firm leaves ")), killed, after="cut"))
    turn = ask(visit)
    expect(turn).to_contain_text("The firm leaves")
    killed.set()
    expect(turn).to_have_attribute("data-state", "failed")
    expect(turn.locator(".note.bad")).to_be_visible()
    page = visit.page
    page.goto(f"/models/{connection.pk}/")
    page.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("No model is chosen: answers quote your documents.")).to_be_visible()
    turn = ask(visit)
    expect(turn).to_have_attribute("data-state", "answered")
    expect(page.get_by_text("Extractive: quotes from your documents")).to_be_visible()
