"""Memory: facts, conversations, what is read, what it takes up; empty, found, degraded, whose."""

from datetime import timedelta

from django.utils import timezone
from playwright.sync_api import Page

from memory import services
from memory.models import Context, ExtractionItem, Pruning
from memory.tests.factories import make_scope, remember
from tests.matrix.states import State, World

LONG = "w" * 200
HOSTILE = f"a/b\"'><img src=x onerror=alert(1)> \u202egnp.exe אבג {LONG}"[:255]


def _memory(world: World) -> None:
    """Something on each page."""
    scope, now = world.memory, timezone.now()
    for number in range(12):
        said = f"Turn {number} about the allotment and its plums"
        remember(scope, said, f"Answer {number}. {LONG}", at=now - timedelta(hours=7 * number))
    source = Context.objects.latest("pk")
    for age, city in [(900, "Lisbon"), (400, "Munich"), (30, "Berlin")]:
        at = now - timedelta(days=age)
        services.set_fact(scope=scope, key="home_city", value=city, at=at, source=source)
    for number in range(4):
        services.set_fact(scope=scope, key=f"note_{number}", value=f"{number} {LONG}")
    services.set_fact(scope=scope, key="car", value="a red one")
    services.clear_fact(scope=scope, key="car")
    whose = {"workspace": world.workspace, "user_id": scope.user_id}
    waiting = [{"content": f"I live in {LONG}", "at": now.isoformat()}]
    for state in ("dead", "running", "waiting"):
        ExtractionItem.objects.create(
            **whose, key=f"{state} {LONG}", state=state, messages=waiting, error=f"No. {LONG}"
        )
    Pruning.objects.create(**whose, reason="user", rows=12, bytes=2048, until=now)
    hostile = make_scope(HOSTILE, workspace=world.workspace)
    services.set_fact(scope=hostile, key="a", value=HOSTILE)


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
