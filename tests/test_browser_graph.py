"""The explorer of the graph in a real Chromium: drawn, expanded, filtered, by mouse and by keys."""

import gzip
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from django.db import connection
from playwright.sync_api import Browser, Locator, Page, Response, expect

from accounts.models import Membership
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Edge, Node
from graph.querysets import Origin
from graph.tests.factories import make_edge, make_extracted, make_node
from tests.browser import SCHEMES, SIZES, Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.nightly,
    pytest.mark.django_db(transaction=True),
]

MAX_PAGE_BYTES = 100_000
#: Cytoscape does not fit into the bar of other pages. It has one of its own, and comes only where
#: something is drawn: not to the start, and to a telephone only when it asks for the drawing.
MAX_LIBRARY_BYTES = 140_000
LIBRARY = "cytoscape.min.js"
TOBIAS = "ent:person:tobias"
HOSTILE = "<img src=x onerror=alert(1)> \"'&\u202egnp.exe אבג 🦆"


@pytest.fixture
def harbour(alice: Membership) -> str:
    """The address of the drawing around Tobias, who knows some people and keeps a lighthouse."""
    workspace = alice.workspace
    collection = CollectionFactory(workspace=workspace, slug="harbour", name="Harbour")
    log = DocumentFactory(collection=collection, title="The log", key="log/1.txt")
    chunk = ChunkFactory(document=log, text="Tobias and Mara met at the pier.")
    tobias = make_extracted(TOBIAS, chunk, name="Tobias", labels=["Person"])
    make_extracted("ent:person:mara", chunk, name="Mara", labels=["Person"])
    lighthouse = make_node(
        "ent:place:lighthouse", workspace=workspace, name="Lighthouse", labels=["Place"]
    )
    lamp = make_node("lamp \"'/?#&<b>", workspace=workspace, name=HOSTILE, labels=["Thing"])
    make_edge(tobias, "KEEPS", lighthouse)
    make_edge(lighthouse, "HAS", lamp)
    return f"/graph/?id={TOBIAS}"


def star(membership: Membership, count: int) -> str:
    """The address of a drawing of `count` nodes in groups around a hub."""
    workspace = membership.workspace
    labels = ("Person", "Place", "Date", "Code")
    nodes = Node.objects.bulk_create(
        Node(
            workspace=workspace,
            key=f"n:{number}",
            name=f"Node {number}",
            labels=[labels[number % 4]],
            origin=Origin.GIVEN,
        )
        for number in range(count)
    )
    hubs = max(count // 25, 1)
    ends = [(0, hub) for hub in range(1, hubs)]
    ends += [(number % hubs, number) for number in range(hubs, count)]
    ends += [(number, (number * 7) % count) for number in range(hubs, count, 3)]
    Edge.objects.bulk_create(
        Edge(workspace=workspace, source=nodes[a], target=nodes[b], rel="LINKS")
        for a, b in dict.fromkeys(ends)
        if a != b
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE graph_node, graph_edge")  # as autovacuum does after a while
    return f"/graph/?id=n:0&hops=2&size={2000 if count > 500 else 200}"


def drawn(page: Page, nodes: int) -> Locator:
    """The drawing, once it shows so many nodes."""
    canvas = page.locator("[data-canvas]")
    expect(canvas).to_have_attribute("data-nodes", str(nodes))
    expect(canvas).to_have_attribute("aria-busy", "false")
    expect(page.locator("[data-explorer]")).not_to_have_attribute("aria-busy", "true")
    return page.locator("[data-drawn]")


def test_a_node_is_found_by_its_name_and_drawn(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto("/graph/")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.type("tobi")
    expect(page.get_by_role("option", name="Tobias")).to_be_visible()
    assert visit.serious_findings() == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    page.wait_for_url("**/graph/?id=ent%3Aperson%3Atobias")
    drawn(page, 3)
    names = page.locator("[data-names] bdi")
    expect(names.filter(has_text="Lighthouse")).to_be_visible()
    expect(page.locator("#about h2")).to_have_text("Tobias")
    assert visit.serious_findings() == []


def test_the_keyboard_walks_expands_hides_and_leaves(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto(harbour)
    canvas = drawn(page, 3)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#about h2")).to_have_text("Tobias")
    seen = set()
    for key in ("ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
        seen.add(page.evaluate("new URLSearchParams(location.search).get('at')"))
    assert len(seen) >= 2

    page.goto(f"{harbour}&at=ent:place:lighthouse")
    drawn(page, 3).focus()
    page.keyboard.press("p")
    expect(page.locator("[data-spoken]")).to_have_text("Pinned where it is.")
    page.keyboard.press("p")
    expect(page.locator("[data-spoken]")).to_have_text("No longer pinned.")
    page.keyboard.press("Enter")
    drawn(page, 4)
    expect(page.locator("[data-row]")).to_have_count(4)
    expect(page.locator("[data-spoken]")).to_contain_text("4 things")
    page.keyboard.press("h")
    drawn(page, 3)
    expect(page.locator("[data-row='ent:place:lighthouse']")).to_have_count(0)
    page.keyboard.press("+")
    page.keyboard.press("0")
    page.keyboard.press("Escape")
    assert "at=" not in page.url
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()


def test_the_mouse_looks_expands_and_drags(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto(harbour)
    canvas = drawn(page, 3)
    label = page.locator("[data-names] bdi", has_text="Lighthouse")
    expect(label).to_be_visible()
    place = page.evaluate(
        """async () => {
            const box = document.querySelector("[data-drawn]").getBoundingClientRect();
            const cy = document.querySelector("[data-drawn]")._cyreg.cy;
            await new Promise((resolve) => setTimeout(resolve, 300));
            const at = cy.getElementById("ent:place:lighthouse").renderedPosition();
            return [box.x + at.x, box.y + at.y];
        }"""
    )
    page.mouse.click(*place)
    expect(page.locator("#about h2")).to_have_text("Lighthouse")
    assert "at=ent%3Aplace%3Alighthouse" in page.url
    page.mouse.dblclick(*place)
    drawn(page, 4)
    assert "open=ent%3Aplace%3Alighthouse" in page.url
    expect(canvas).to_be_visible()


def test_the_address_holds_the_drawing_and_the_way_back(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto(harbour)
    drawn(page, 3)
    page.get_by_role("link", name="keeps").click()
    drawn(page, 2)
    page.locator("#tools").get_by_role("link", name="Two steps").click()
    expect(page.locator("#tools [aria-current]").last).to_have_text("Two steps")
    address = page.url
    assert "rel=KEEPS" in address
    assert "hops=2" in address

    page.go_back()
    page.go_back()
    drawn(page, 3)
    assert page.url.endswith(harbour)

    other = visit.context.new_page()
    other.goto(address)
    drawn(other, 2)
    expect(other.get_by_role("link", name="keeps")).to_have_attribute("aria-current", "true")


def test_names_are_text_and_nothing_else(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto(f"{harbour}&open=ent:place:lighthouse&at=lamp \"'/?%23%26<b>")
    drawn(page, 4)
    expect(page.locator("#about h2")).to_have_text(HOSTILE)
    expect(page.locator("[data-names] bdi", has_text="onerror")).to_be_visible()
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("count", [20, 2000])
def test_a_drawing_is_readable_at_every_size(visit: Visit, alice: Membership, count: int) -> None:
    page = visit.page
    page.goto(star(alice, count))
    drawn(page, count)
    names = page.locator("[data-names] bdi")
    expect(names.first).to_be_visible()
    boxes = [box for name in names.all() if (box := name.bounding_box())]
    assert len(boxes) >= min(count // 2, 25)
    assert [pair for pair in _pairs(boxes) if _overlap(*pair)] == []


def test_the_same_drawing_comes_out_each_time(visit: Visit, alice: Membership) -> None:
    address = star(alice, 60)
    places = []
    for _ in range(2):
        visit.page.goto(address)
        drawn(visit.page, 60)
        places.append(
            visit.page.evaluate(
                "document.querySelector('[data-drawn]')._cyreg.cy.nodes()"
                ".map((node) => [node.id(), node.position('x'), node.position('y')])"
            )
        )
    assert places[0] == places[1]


def test_what_is_drawn_stays_where_it_is_when_more_comes(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.goto(harbour)
    drawn(page, 3)
    where = (
        "document.querySelector('[data-drawn]')._cyreg.cy.getElementById('ent:person:tobias')"
        ".position()"
    )
    before = page.evaluate(where)
    page.locator("[data-row='ent:place:lighthouse']").get_by_role("link", name="Expand").click()
    drawn(page, 4)
    after = page.evaluate(where)
    assert abs(after["x"] - before["x"]) + abs(after["y"] - before["y"]) < 40


def test_without_a_drawing_the_list_says_it(
    browser: Browser, live_server: Any, alice: Membership, harbour: str
) -> None:
    visit = Visit(browser, live_server.url, java_script_enabled=False)
    visit.log_in("alice")
    page = visit.page
    page.goto(harbour)
    expect(page.locator("[data-canvas]")).to_be_hidden()
    page.locator("[data-row='ent:place:lighthouse']").get_by_role("link", name="Expand").click()
    expect(page.locator("[data-row]")).to_have_count(4)
    page.get_by_role("link", name="keeps").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    visit.close()


def test_where_nothing_can_be_drawn_it_says_so_and_tries_again(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.route("**/graph/elements/**", lambda route: route.fulfill(status=503, body="no"))
    page.goto(harbour)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The site answered 503. The list below has the same content.")
    page.unroute("**/graph/elements/**")
    alert.get_by_role("button", name="Try again").click()
    drawn(page, 3)
    expect(alert).to_be_hidden()
    visit.errors = [error for error in visit.errors if "503" not in error]


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_editors_work_by_keyboard_at_every_size(
    visit: Visit, harbour: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    page = visit.page
    page.set_viewport_size({"width": width, "height": SIZES[width]})
    page.emulate_media(color_scheme=scheme)
    edge = f"source={TOBIAS}&rel=KEEPS&target=ent:place:lighthouse"
    for address in (
        "/graph/nodes/new/",
        f"/graph/node/?id={TOBIAS}",
        f"/graph/node/delete/?id={TOBIAS}",
        f"/graph/merge/?id={TOBIAS}&id=ent:person:mara",
        f"/graph/edge/?{edge}",
        f"/graph/edge/delete/?{edge}",
        f"/graph/edges/new/?source={TOBIAS}",
    ):
        page.goto(address)
        assert visit.serious_findings() == []
        assert not visit.scrolls_sideways()

    page.get_by_label("Relation").fill("MEETS")
    target = page.get_by_role("combobox", name="To")
    target.press_sequentially("lamp")
    expect(page.get_by_role("option")).to_have_count(1)
    target.press("ArrowDown")
    target.press("Enter")
    expect(target).to_have_value("lamp \"'/?#&<b>")
    expect(page.get_by_role("option")).to_have_count(0)  # in a closed list
    target.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The edge is added.")
    expect(page.get_by_role("row", name="MEETS")).to_be_visible()


def test_on_a_telephone_the_drawing_is_shown_when_asked_for(visit: Visit, harbour: str) -> None:
    page = visit.page
    page.set_viewport_size({"width": 390, "height": SIZES[390]})
    page.goto(f"{harbour}&hops=2&at={TOBIAS}")
    expect(page.locator("[data-canvas]")).to_be_hidden()
    page.get_by_role("button", name="Drawing").click()
    drawn(page, 5)
    assert visit.serious_findings() == []
    assert not visit.scrolls_sideways()


def test_a_page_is_light_and_the_library_comes_only_to_a_drawing(
    visit: Visit, alice: Membership
) -> None:
    address = star(alice, 200)
    assert visit.weight("/graph/") < MAX_PAGE_BYTES

    page = visit.page
    sizes: dict[str, int] = {}
    page.on("response", lambda answer: sizes.update({answer.url: _on_the_wire(answer)}))
    page.goto(address)
    drawn(page, 200)
    library = {url: size for url, size in sizes.items() if url.endswith(LIBRARY)}
    data = {url: size for url, size in sizes.items() if "/graph/elements/" in url}
    assert len(library) == 1
    assert sum(library.values()) < MAX_LIBRARY_BYTES
    assert sum(sizes.values()) - sum(library.values()) - sum(data.values()) < MAX_PAGE_BYTES

    page.set_viewport_size({"width": 390, "height": SIZES[390]})
    sizes.clear()
    page.goto(address)
    expect(page.locator("[data-row]").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert not any(url.endswith(LIBRARY) for url in sizes)


def _on_the_wire(answer: Response) -> int:
    """Static files are stored compressed, and sent so; pages are sent as they are."""
    body = answer.body()
    return len(gzip.compress(body) if "/static/" in answer.url else body)


def _pairs(boxes: list[Any]) -> Iterator[tuple[Any, Any]]:
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            yield box, other


def _overlap(a: Any, b: Any) -> bool:
    """By more than the rounding of their edges."""
    return bool(
        min(a["x"] + a["width"], b["x"] + b["width"]) - max(a["x"], b["x"]) > 2
        and min(a["y"] + a["height"], b["y"] + b["height"]) - max(a["y"], b["y"]) > 2
    )
