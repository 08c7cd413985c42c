"""The pages of chat, pipelines and traces in a real Chromium."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from accounts.models import Membership
from documents.models import Collection
from documents.tests.factories import CollectionFactory
from inference.tests.stub_server import Reply, Stream, StubServer, chat_stream, delta, event
from memory import services as memory
from memory.scopes import UserScope, account_id
from rag import answer_stream
from rag.context import RagContext
from rag.models import Conversation
from rag.tests.asking import OFFICE, TRAVEL, chat_server, document
from tests.browser import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("office"),
]

MOVE = "When does the firm leave Mill Street?"
NOWHERE = "Who won the chess championship of Reykjavik in 1972?"
HOSTILE = "<img src=x onerror=alert(1)> \"'&\u202egnp.exe"
ATTACK = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> [click](javascript:alert(3)) "
    "![x](https://evil.example/leak) [out](https://evil.example/) [1](javascript:alert(4)) [1]."
)


@pytest.fixture
def office(alice: Membership) -> Collection:
    collection = CollectionFactory(workspace=alice.workspace, slug="office", name="Office")
    document(collection, "move.md", OFFICE)
    document(collection, "travel.md", TRAVEL)
    other = CollectionFactory(workspace=alice.workspace, slug="garden", name="Garden")
    document(other, "plums.md", f"# {HOSTILE}\n\nPlums ripen in August behind the shed.\n")
    return collection


@pytest.fixture
def context(alice: Membership, office: Collection) -> RagContext:
    return RagContext(user=alice.user, workspace=alice.workspace)


@pytest.fixture
def model(settings: Any) -> Iterator[StubServer]:
    """A chat model on a socket."""
    with chat_server(settings) as server:
        yield server


def asked(page: Page, question: str) -> Locator:
    """The turn of a question, as soon as it is shown."""
    ready(page)
    page.get_by_label("Your question").fill(question)
    page.keyboard.press("Enter")
    return page.locator(".turn", has_text=question).last


def ready(page: Page) -> None:
    """Wait until the page listens: before, Enter is a new line."""
    expect(page.locator("[data-composer][data-ready]")).to_be_visible()


def complete(turn: Locator) -> Locator:
    """The same turn, when the server's rendering has taken its place."""
    expect(turn).to_have_attribute("data-state", "answered")
    return turn


def expected(visit: Visit, error: str) -> None:
    """An error of the console that the test provoked is none."""
    assert any(error in each for each in visit.errors)
    visit.errors = [each for each in visit.errors if error not in each]


# --- an answer and its sources -----------------------------------------------------------------


def test_a_question_is_answered_with_sources_that_open_beside_it(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("navigation").get_by_role("link", name="Chat").click()
    expect(page.get_by_role("heading", name="Ask your documents")).to_be_visible()
    expect(page.get_by_text("Extractive: quotes from your documents.")).to_be_visible()
    turn = complete(asked(page, MOVE))

    assert page.url == f"{visit.site}/chat/{Conversation.objects.get().pk}/"
    expect(turn.locator(".said")).to_contain_text("14 March")
    expect(page.locator("[data-spoken]")).to_contain_text("14 March")
    expect(page.get_by_label("Your question")).to_be_focused()
    cite = turn.locator(".cite").first
    card = turn.locator(f".source[data-source='{cite.inner_text()}']")
    cite.hover()
    expect(card).to_have_class("source cited lit")
    cite.click()
    expect(card.locator("mark").first).to_be_visible()
    expect(card.locator("mark").first).to_contain_text("14 March")
    expect(card.locator("summary")).to_be_focused()

    card.get_by_role("link", name="Open in the document").click()
    page.wait_for_url("**#passage")
    expect(page.locator(".passage", has_text="14 March").first).to_be_in_viewport()


def test_a_follow_up_stays_in_the_conversation_which_is_there_again_later(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    complete(asked(page, MOVE))
    address = page.url
    complete(asked(page, "When are receipts paid back?"))
    expect(page.locator(".turn")).to_have_count(2)
    assert page.url == address
    live = page.locator(".said").all_inner_texts()

    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    assert page.locator(".said").all_inner_texts() == live

    page.get_by_role("link", name="Rename").click()
    page.get_by_label("Title").fill(HOSTILE)
    page.get_by_role("button", name="Rename").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("onerror")
    page.get_by_role("link", name="Delete this conversation").click()
    expect(page.get_by_role("main")).to_contain_text("permanently deletes 2 questions")
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("status").first).to_contain_text("is deleted")
    expect(page.get_by_text("Your conversations")).to_have_count(0)


def test_the_last_answer_is_made_again_in_its_place(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    first = complete(asked(page, MOVE))
    number = first.get_attribute("data-turn")
    first.get_by_role("button", name="Answer again").click()
    expect(page.locator(f".turn[data-turn='{number}']")).to_have_count(0)
    complete(page.locator(".turn"))
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)


def test_an_answer_is_copied_with_its_sources(visit: Visit) -> None:
    page = visit.page
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto("/chat/")
    turn = complete(asked(page, MOVE))
    turn.get_by_role("button", name="Copy with sources").click()
    expect(turn.get_by_role("button", name="Copied")).to_be_visible()
    text = page.evaluate("navigator.clipboard.readText()")
    assert "14 March" in text
    assert "[1]" in text
    assert f"{visit.site}/documents/office/" in text.splitlines()[-1]


def test_what_is_not_in_the_documents_is_refused_with_what_to_do(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    ready(page)
    page.get_by_text("All collections").click()
    page.get_by_label("Garden").check()
    turn = asked(page, NOWHERE)
    expect(turn).to_have_attribute("data-state", "refused")
    expect(turn).to_contain_text("Not in your documents.")
    assert Conversation.objects.get().collections == ["garden"]
    turn.get_by_role("link", name="Ask in all collections").click()
    # The question comes along, and is asked at once.
    expect(page.locator(".turn")).to_have_attribute("data-state", "refused")
    assert Conversation.objects.latest("pk").collections == []


# --- with a model --------------------------------------------------------------------------------


def test_tokens_come_one_by_one_without_a_jump(visit: Visit, model: StubServer) -> None:
    page = visit.page
    goes_on = threading.Event()
    model.first(
        Stream(
            event(delta("On **14 March** [1], ")),
            goes_on,
            *map(event, [delta("at seven.\n\n- One\n- Two"), delta(finish="stop"), "[DONE]"]),
        )
    )
    page.goto("/chat/")
    turn = asked(page, MOVE)
    expect(turn.locator(".said")).to_contain_text("14 March")
    expect(turn).to_have_attribute("data-state", "streaming")
    expect(turn.locator(".said strong")).to_have_text("14 March")
    expect(turn.locator(".cite")).to_have_text("1")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    before = turn.locator(".said").bounding_box()
    goes_on.set()
    complete(turn)
    after = turn.locator(".said").bounding_box()
    assert before is not None
    assert after is not None
    assert (before["x"], before["y"]) == (after["x"], after["y"])
    expect(turn.locator(".said li")).to_have_count(2)


@pytest.mark.parametrize("is_marked", [True, False], ids=["fields", "unopened"])
def test_what_a_model_thinks_stays_folded_and_can_be_opened(
    visit: Visit, model: StubServer, is_marked: bool
) -> None:
    """Of an unopened beginning the page takes back what it showed as the answer."""
    page = visit.page
    goes_on = threading.Event()
    thought = "".join(f"The move is [1] in March. Note {number}. " for number in range(30))
    before = [delta(reasoning_content=thought)] if is_marked else [delta(thought)]
    marks = [] if is_marked else [delta("\n</think>\n\n")]
    after = [*marks, delta("On **14 March** [1]."), delta(finish="stop"), "[DONE]"]
    model.first(Stream(*map(event, before), goes_on, *map(event, after)))
    page.goto("/chat/")
    turn = asked(page, MOVE)
    folded = turn.locator("[data-thought]")
    if is_marked:
        expect(folded.locator("summary")).to_have_text("Thinking …")
        expect(turn.locator(".said")).to_be_empty()
        folded.locator("summary").click()
        expect(folded).to_contain_text("The move is [1]")
    else:
        expect(turn.locator(".said")).to_contain_text("The move is")
    goes_on.set()
    complete(turn)
    expect(turn.locator(".said")).to_have_text("On 14 March 1.")
    expect(folded.locator("summary")).to_contain_text("Thought for")
    expect(turn.locator(".cite")).to_have_count(1)
    if not is_marked:
        expect(folded).not_to_have_attribute("open", "")
        folded.locator("summary").click()
    expect(folded.locator("[data-text]")).to_be_visible()
    expect(folded.locator("[data-text]")).to_contain_text("The move is [1] in March.")
    assert visit.serious_findings() == []
    page.reload()
    expect(page.locator("[data-thought] [data-text]")).to_be_hidden()


def test_an_answer_is_stopped_and_asked_for_again(
    visit: Visit, model: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_stream, "HEARTBEAT_SECONDS", 0.5)
    page = visit.page
    endless = Stream(event(delta("On 14 March")), after="pings")
    model.first(endless, chat_stream("On 14 March [1]."))
    page.goto("/chat/")
    turn = asked(page, MOVE)
    expect(turn.locator(".said")).to_have_text("On 14 March")
    page.keyboard.press("Escape")
    expect(turn).to_have_attribute("data-state", "stopped")
    expect(turn).to_contain_text("Stopped. This is as far as the answer came.")
    # The tests' own server tells only by writing that a client has gone: within two heartbeats.
    assert endless.gone.wait(30)
    assert visit.serious_findings() == []
    turn.get_by_role("button", name="Try again").click()
    complete(page.locator(".turn"))
    page.reload()
    expect(page.locator(".turn")).to_have_count(1)


def test_a_model_that_is_down_is_said_in_words_and_the_question_is_kept(
    visit: Visit, model: StubServer
) -> None:
    page = visit.page
    model.first(Reply({"error": {"message": "overloaded"}}, status=503), chat_stream("Yes [1]."))
    page.goto("/chat/")
    turn = asked(page, MOVE)
    expect(turn).to_have_attribute("data-state", "failed")
    expect(turn.get_by_role("alert")).to_contain_text("The language model does not respond")
    turn.get_by_role("button", name="Try again").click()
    complete(page.locator(".turn"))


@pytest.mark.nightly
def test_a_broken_connection_keeps_what_came_and_offers_another_try(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    page.route("**/api/v1/chat/", lambda route: route.abort())
    turn = asked(page, MOVE)
    expect(turn.get_by_role("alert")).to_contain_text("does not respond")
    expect(page.get_by_label("Your question")).to_have_value(MOVE)
    page.unroute("**/api/v1/chat/")
    turn.get_by_role("button", name="Try again").click()
    complete(page.locator(".turn"))
    expected(visit, "ERR_FAILED")


def test_sentences_without_support_are_marked(visit: Visit, model: StubServer) -> None:
    page = visit.page
    model.first(
        chat_stream(
            "The firm leaves Mill Street on 14 March [1]. ",
            "Elephants painted the ceiling of the submarine purple yesterday.",
        )
    )
    page.goto("/chat/")
    turn = complete(asked(page, MOVE))
    expect(turn.locator(".said mark.doubt")).to_contain_text("Elephants")
    expect(turn).to_contain_text("The marked sentence is in none of the sources")


@pytest.mark.parametrize("scripts", [True, False])
def test_hostile_words_of_model_and_documents_are_words(
    browser: Browser,
    live_server: Any,
    office: Collection,
    model: StubServer,
    *,
    scripts: bool,
) -> None:
    visit = Visit(browser, live_server.url, java_script_enabled=scripts)
    visit.log_in("alice")
    page = visit.page
    page.on("dialog", lambda dialog: visit.errors.append(dialog.message))
    model.first(chat_stream(*(ATTACK[at : at + 7] for at in range(0, len(ATTACK), 7))))
    page.goto("/chat/")
    page.get_by_label("Your question").fill("When do plums ripen?")
    page.get_by_role("button", name="Ask").click()
    turn = complete(page.locator(".turn"))
    assert turn.locator("img, script").count() == 0
    addresses = turn.locator("a").evaluate_all("links => links.map((link) => link.href)")
    assert all(address.startswith(visit.site) for address in addresses), addresses
    expect(turn.locator(".source", has_text="onerror")).not_to_have_count(0)
    visit.close()


def test_the_model_and_what_is_remembered_are_chosen_and_shown(
    visit: Visit, model: StubServer, alice: Membership
) -> None:
    scope = UserScope(alice.workspace.pk, account_id(alice.user))
    memory.set_fact(scope=scope, key="home_city", value="Berlin, near Mill Street")
    page = visit.page
    model.first(chat_stream("On 14 March [1]."))
    page.goto("/chat/")
    page.get_by_label("Memory").check()
    turn = complete(asked(page, MOVE))
    chip = turn.get_by_role("link", name="Forget: Home city")
    expect(chip).to_contain_text("Berlin")
    chip.click()
    expect(page.get_by_role("button", name="Forget it")).to_be_visible()

    page.goto("/chat/")
    page.get_by_label("Model").select_option("extractive")
    turn = complete(asked(page, MOVE))
    expect(turn).to_contain_text("Extractive")


# --- keys, and other ways to ask -----------------------------------------------------------------


def test_the_keyboard_asks_breaks_lines_and_finds_the_search(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    ready(page)
    box = page.get_by_label("Your question")
    box.focus()
    page.keyboard.type("When are receipts")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("paid back?")
    expect(box).to_have_value("When are receipts\npaid back?")
    page.keyboard.press("Enter")
    turn = complete(page.locator(".turn"))
    turn.locator(".cite").first.focus()
    expect(turn.locator(".source.lit")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(turn.locator(".source details[open]")).to_have_count(1)
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()


def test_a_search_is_asked_as_a_question(visit: Visit) -> None:
    page = visit.page
    page.goto("/?q=When+does+the+firm+leave&collection=office")
    page.get_by_role("link", name="Ask this as a question").click()
    expect(complete(page.locator(".turn")).locator(".said")).to_contain_text("14 March")
    assert Conversation.objects.get().collections == ["office"]

    # From elsewhere a question waits to be sent.
    page.goto("/chat/?q=When+does+the+firm+leave")
    expect(page.get_by_label("Your question")).to_have_value("When does the firm leave")
    expect(page.locator(".turn")).to_have_count(0)


# --- pipelines -----------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_pipeline_is_tried_and_its_steps_are_looked_at(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("link", name="Pipelines").click()
    page.get_by_role("link", name="Answer from documents").click()
    ready(page)
    page.get_by_label("Question", exact=True).fill(MOVE)
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("14 March")
    expect(page.locator("[data-node='generator']")).to_have_attribute("data-state", "ended")
    page.get_by_role("link", name="Steps").click()
    expect(page.get_by_role("heading", name="Steps")).to_be_visible()
    step = page.locator(".span", has_text="similarity_search").first
    step.locator("summary").click()
    expect(step.locator("pre").first).to_contain_text("Mill Street")
    page.go_back()
    page.reload()
    expect(page.get_by_role("link", name=MOVE)).to_be_visible()


def test_a_pipeline_answers_in_the_chat(visit: Visit) -> None:
    page = visit.page
    page.goto("/chat/")
    page.get_by_label("Pipeline").select_option("rag")
    turn = complete(asked(page, MOVE))
    expect(turn.locator(".said")).to_contain_text("14 March")
    turn.get_by_role("link", name="Trace").click()
    expect(page.get_by_role("link", name="To the conversation")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize("scripts", [True, False])
def test_a_template_is_copied_changed_and_checked(
    browser: Browser, live_server: Any, office: Collection, *, scripts: bool
) -> None:
    visit = Visit(browser, live_server.url, java_script_enabled=scripts)
    visit.log_in("alice")
    page = visit.page
    page.goto("/pipelines/rag/")
    page.get_by_role("link", name="Copy to change").click()
    box = page.get_by_label("Definition")
    good = box.input_value()
    box.fill(good.replace('"similarity_search"', '"no_such_tool"'))
    page.get_by_role("button", name="Check and save").click()
    expect(page.get_by_role("alert")).to_contain_text("nodes.0.tools.0")
    assert "no_such_tool" in box.input_value()
    box.fill(good[:-1])
    page.get_by_role("button", name="Check and save").click()
    expect(page.get_by_role("main")).to_contain_text("This is not JSON: line")
    box.fill(good)
    page.get_by_role("button", name="Check and save").click()
    expect(page.get_by_role("status").first).to_contain_text("is saved")
    if not scripts:
        page.get_by_label("Question", exact=True).fill(MOVE)
        page.get_by_role("button", name="Run").click()
        expect(page.get_by_role("heading", name="Steps")).to_be_visible()
        page.goto("/pipelines/rag-copy/")
    page.get_by_role("link", name="Delete the pipeline").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", name="Pipelines")).to_be_visible()
    expected(visit, "400 (Bad Request)")
    visit.close()
