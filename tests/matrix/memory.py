"""Memory: facts, conversations, what is read, what it takes up; empty, found, degraded, whose."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from memory.models import Context
from memory.tests.factories import HOSTILE, fill_pages
from tests.matrix.states import State, World


def _memory(world: World) -> None:
    fill_pages(world.memory, world.workspace, turns=12, notes=4)


def _turn(world: World) -> str:
    return f"/memory/contexts/{Context.objects.of(world.memory).latest('pk').pk}/"


def _as_of(world: World) -> str:
    return f"/memory/?as_of={(timezone.localdate() - timedelta(days=31)).isoformat()}"


def _open_all(page: Page) -> None:
    page.evaluate("for (const each of document.querySelectorAll('main details')) each.open = true")


def _hostile(page: Page) -> None:
    page.goto("/memory/?user_id=" + page.evaluate("encodeURIComponent", HOSTILE))


STATES = [
    State("empty", lambda world: "/memory/", "text=The memory is empty"),
    State("contexts-empty", lambda world: "/memory/contexts/", ".blank"),
    State("facts", lambda world: "/memory/", ".fact", prepare=_memory, act=_open_all),
    State("facts-ended", lambda world: "/memory/?shown=ended", ".fact"),
    State("facts-as-of", _as_of, ".fact"),
    State("fact", lambda world: "/memory/facts/home_city/", "h2"),
    State("fact-forget", lambda world: "/memory/facts/home_city/forget/", "text=Forget it"),
    State("contexts", lambda world: "/memory/contexts/", ".turn"),
    State("found", lambda world: "/memory/contexts/?find=allotment+plums&all=1", ".turn"),
    State(
        "found-by-words-only",
        lambda world: "/memory/contexts/?find=plums+of+the+allotment",
        "text=Words only.",
        prepare=World.without_embedder,
    ),
    State("context", _turn, "article"),
    State("context-forget", lambda world: f"{_turn(world)}forget/", "text=Forget this turn"),
    State("reading", lambda world: "/memory/reading/", "main li"),
    State("storage", lambda world: "/memory/storage/", "text=Export everything"),
    State("erase", lambda world: "/memory/storage/erase/", "main form"),
    State("of-a-hostile-name", lambda world: "/memory/", ".whose", act=_hostile),
]
