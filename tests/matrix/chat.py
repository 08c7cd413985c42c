"""Chat: to begin with, answered, streaming, refused, failed, remembered, degraded, withheld."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from playwright.sync_api import Page, expect

from documents.models import Document
from inference.tests.stub_server import Reply, Stream, chat_stream, delta, event
from memory import services as memory
from memory.tests.factories import remember
from rag.answering import answerability
from rag.models import Conversation
from rag.services.chat import chat
from rag.services.questions import Question
from rag.tests.asking import chat_server
from tests.browser import hold
from tests.matrix.states import State, World

MOVE = "When does the firm leave Mill Street?"
NOWHERE = "Who won the chess championship of Reykjavik in 1972?"
LONG = f"<b>\"'& {'w' * 120}"


def _model(*replies: Any) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        world.enter(chat_server(world.settings)).first(*replies)

    return prepare


def _kept(world: World, question: str = MOVE, **how: Any) -> None:
    for _ in chat(Question(question), context=world.asking, **how):
        pass


def _former(world: World) -> None:
    for question in (MOVE, NOWHERE):
        _kept(world, question)
    _kept(world, "When are receipts paid back?")
    Conversation.objects.filter(pk=Conversation.objects.latest("pk").pk).update(title=LONG)


def _remembering(world: World) -> None:
    memory.set_fact(scope=world.memory, key="home_city", value="Berlin")
    remember(world.memory, "I leave Mill Street with the firm", "Good to know.")
    _model(chat_stream("The firm leaves on 14 March [1]."))(world)


def _by_words(world: World) -> None:
    world.without_embedder()


def _never_sure(world: World) -> None:
    world.enter(patch.object(answerability, "HIGH_CONFIDENCE", 1.1))


def _withheld(world: World) -> None:
    Document.objects.filter(key="move.md").update(access=["user:0"])


def _ask(question: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        expect(page.locator("[data-composer][data-ready]")).to_be_visible()
        page.get_by_label("Your question").fill(question)
        page.keyboard.press("Enter")

    return act


def _ask_with_memory(page: Page) -> None:
    page.get_by_label("Memory").check()
    _ask(MOVE)(page)


def _open_a_source(page: Page) -> None:
    page.locator(".cite").first.click()


def _choose_collections(page: Page) -> None:
    page.get_by_text("All collections").click()


def _held(page: Page) -> None:
    hold(page, "**/api/v1/chat/")
    _ask(MOVE)(page)


def _unreachable(page: Page) -> None:
    page.route("**/api/v1/chat/", lambda route: route.abort())
    _ask(MOVE)(page)


def _conversation(number: int) -> Callable[[World], str]:
    """The address of the conversation of that place, by age."""
    return lambda world: f"/chat/{Conversation.objects.order_by('pk')[number].pk}/"


ANSWERED = ".turn[data-state=answered]"

STATES = [
    State("collections", lambda world: "/chat/", ".picker .sheet", act=_choose_collections),
    State("asking", lambda world: "/chat/", ".turn[data-state=asking]", act=_held),
    State(
        "streaming",
        lambda world: "/chat/",
        ".turn[data-state=streaming] .cite",
        prepare=_model(Stream(event(delta("On **14 March** [1], ")), after="pings")),
        act=_ask(MOVE),
    ),
    State("answered", lambda world: "/chat/", ANSWERED, act=_ask(MOVE)),
    State("unsure", lambda world: "/chat/", ".unsure", prepare=_never_sure, act=_ask(MOVE)),
    State("refused", lambda world: "/chat/", ".turn[data-state=refused]", act=_ask(NOWHERE)),
    State(
        "remembered",
        lambda world: "/chat/",
        f"{ANSWERED} .chip",
        prepare=_remembering,
        act=_ask_with_memory,
    ),
    State(
        "unsupported",
        lambda world: "/chat/",
        "mark.doubt",
        prepare=_model(
            chat_stream("It leaves on 14 March [1]. ", "Elephants painted the submarine purple.")
        ),
        act=_ask(MOVE),
    ),
    State(
        "model-down",
        lambda world: "/chat/",
        ".turn[data-state=failed] [role=alert]",
        prepare=_model(Reply({"error": {"message": "overloaded"}}, status=503)),
        act=_ask(MOVE),
    ),
    State(
        "by-words-only",
        lambda world: "/chat/",
        f"{ANSWERED} .note.warn",
        prepare=_by_words,
        act=_ask("In which month do movers come to Mill Street?"),
    ),
    State(
        "unreachable",
        lambda world: "/chat/",
        ".turn[data-state=failed] [role=alert]",
        act=_unreachable,
        expected=("ERR_FAILED",),
    ),
    State("former", lambda world: "/chat/", ".former", prepare=_former),
    State("conversation", _conversation(0), ".source details[open]", act=_open_a_source),
    State("rename", lambda world: f"{_conversation(0)(world)}rename/", "text=Title"),
    State("delete", lambda world: f"{_conversation(0)(world)}delete/", "text=Delete it"),
    State("models", lambda world: "/models/", "h1"),
    State(
        "withheld",
        _conversation(0),
        ".turn[data-state=withheld]",
        prepare=_withheld,
    ),
]
