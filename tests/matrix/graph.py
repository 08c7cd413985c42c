"""The graph: empty, to begin with, found, drawn, listed, not to be drawn."""

from playwright.sync_api import Page, expect

from graph.models import Node
from graph.tests.factories import make_edge, make_extracted, make_node
from tests.browser import hold
from tests.matrix.states import State, World

TOBIAS = "ent:person:tobias"
HOSTILE = "<img src=x onerror=alert(1)> \"'&\u202egnp.exe אבג 🦆"
DRAWING = f"/graph/?id={TOBIAS}&hops=2&at={TOBIAS}"


def _harbour(world: World) -> None:
    chunk = world.leaflet.chunks.get(ordinal=1)
    tobias = make_extracted(TOBIAS, chunk, name="Tobias", labels=["Person"])
    make_extracted("ent:person:mara", chunk, name="Mara", labels=["Person"])
    lighthouse = make_node(
        "ent:place:lighthouse", workspace=world.workspace, name="Lighthouse", labels=["Place"]
    )
    lamp = make_node("lamp", workspace=world.workspace, name=HOSTILE, labels=["Thing"])
    make_edge(tobias, "KEEPS", lighthouse)
    make_edge(lighthouse, "HAS", lamp)


def _nothing(world: World) -> None:
    Node.objects.all().delete()


def _drawn(page: Page) -> None:
    expect(page.locator("[data-canvas]")).to_have_attribute("aria-busy", "false")


def _typed(page: Page) -> None:
    page.get_by_role("combobox").press_sequentially("tobi")


def _undrawable(page: Page) -> None:
    page.route("**/graph/elements/**", lambda route: route.fulfill(status=503, body="no"))
    page.reload()


def _held(page: Page) -> None:
    hold(page, "**/graph/elements/**")
    page.reload(wait_until="commit")


STATES = [
    State("empty", lambda world: "/graph/", "h1", prepare=_nothing),
    State("start", lambda world: "/graph/", ".tiles", prepare=_harbour),
    State("suggested", lambda world: "/graph/", "[role=option]", act=_typed),
    State("found", lambda world: "/graph/?find=tobias", "main"),
    State("missing", lambda world: "/graph/?id=nobody", "h1", status=404),
    State("drawn", lambda world: DRAWING, "#about h2", act=_drawn, light=False),
    State("loading", lambda world: DRAWING, "#about h2", act=_held, light=False),
    State(
        "not-drawn",
        lambda world: DRAWING,
        "[role=alert]",
        act=_undrawable,
        light=False,
        expected=("status of 503",),
    ),
]
