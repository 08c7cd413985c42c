"""Looking at one state of a page: everything that is wrong with it, in words."""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, Response

from tests.browser import SCHEMES, SCREENSHOTS, SIZES, Visit
from tests.matrix.states import State, World

MAX_PAGE_BYTES = 100_000
#: The states of an area take turns, a layout for the thumb in one theme and one for the mouse in
#: the other: all are made of the same colours and parts, and axe takes longer than everything else.
AXE_LOOKS = ((390, "dark"), (1440, "light"))
#: `MATRIX_LOOKS=all` has axe look at every state in every size and both themes, and keeps a
#: screenshot of each.
ALL_LOOKS = os.environ.get("MATRIX_LOOKS") == "all"
#: Compressed twice as quickly as PNG.
JPEG: Any = {"type": "jpeg", "quality": 80}
#: Only the rules whose findings count; one without an impact of its own takes it from its parts.
RUN_AXE = """async () => {
    const serious = (rule) => rule.enabled && !rule.tags.includes("experimental")
        && (!rule.impact || ["serious", "critical"].includes(rule.impact));
    const found = await axe.run(document, {
        resultTypes: ["violations"], elementRef: false, preload: false,
        runOnly: {type: "rule", values: axe._audit.rules.filter(serious).map((each) => each.id)},
    });
    return found.violations
        .filter((each) => ["serious", "critical"].includes(each.impact))
        .flatMap((each) => each.nodes.map(
            (node) => `${each.id}: ${node.target} ${node.failureSummary}`));
}"""


def look_at(
    browser: Browser, site: str, world: World, area: str, state: State, look: tuple[int, str]
) -> list[str]:
    """What is wrong with the state: nothing, it is to be hoped. Axe looks at it in the width and
    theme of `look`."""
    visit = Visit(browser, site, viewport={"width": 1440, "height": SIZES[1440]})
    try:
        if state.prepare:
            state.prepare(world)
        found = list(_problems(visit, world, area, state, look))
    except Error as error:
        visit.page.screenshot(path=_picture(area, state, "failed"), **JPEG)
        found = [str(error).partition("\nCall log")[0]]
    finally:
        visit.leave()
        world.next()
    found += [f"asked {url}" for url in visit.outside]
    return [f"{area}/{state.name}: {problem}" for problem in found]


def _problems(
    visit: Visit, world: World, area: str, state: State, look: tuple[int, str]
) -> Iterator[str]:
    if state.login:
        visit.begin_session(world.alice)
    yield from _opened(visit, world, state)
    if state.act:
        state.act(visit.page)
    visit.page.locator(state.ready).locator("visible=true").first.wait_for()
    visit.page.wait_for_load_state()  # of the page that `act` led to
    yield from _looks(visit, area, state, look)
    yield from _said(visit, state)


def _opened(visit: Visit, world: World, state: State) -> Iterator[str]:
    """Load the page with nothing in the cache."""
    answers: list[Response] = []
    # A method of a list cannot carry the mark that Playwright puts on a listener.
    visit.page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108
    answer = visit.page.goto(state.path(world), wait_until="load")
    if answer is None or answer.status != state.status:
        yield f"answered {answer and answer.status}, not {state.status}"
    if state.light and (weight := sum(map(_weight, list(answers)))) >= MAX_PAGE_BYTES:
        yield f"weighs {weight:,} bytes"


def _weight(answer: Response) -> int:
    """Bytes of a body, uncompressed; streams of events have no end, and redirections no body."""
    streamed = answer.request.resource_type == "eventsource"
    return 0 if streamed or 300 <= answer.status < 400 else len(answer.body())


def _looks(visit: Visit, area: str, state: State, look: tuple[int, str]) -> Iterator[str]:
    """At every size, as a theme changes no layout; axe in one size and theme, or in all."""
    page = visit.page
    for width, height in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        if visit.scrolls_sideways():
            yield f"{width}: scrolls sideways"
        for scheme in SCHEMES:
            if (width, scheme) != look and not ALL_LOOKS:
                continue
            # No colour may be on its way from one theme to the other when axe looks at it.
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if ALL_LOOKS:
                picture = _picture(area, state, f"{width}-{scheme}")
                page.screenshot(path=picture, full_page=True, **JPEG)
            yield from (f"{width}-{scheme}: {finding}" for finding in serious_findings(page))


def serious_findings(page: Page) -> list[str]:
    """What axe calls serious or critical; it is loaded into the page once."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_axe())
    findings: list[str] = page.evaluate(RUN_AXE)
    return findings


@cache
def _axe() -> str:
    return str(Axe().axe_script)


def _said(visit: Visit, state: State) -> Iterator[str]:
    """Errors on the console. Chromium calls a page that is answered with an error one, too."""
    awaited: tuple[Any, ...] = state.expected
    if state.status >= 400:
        awaited += (f"status of {state.status}",)
    for part in awaited:
        if not any(part in error for error in visit.errors):
            yield f"did not say “{part}” on the console"
    for error in visit.errors:
        if not any(part in error for part in awaited):
            yield f"console: {error}"


def _picture(area: str, state: State, look: str) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS / f"{area}-{state.name}-{look}.jpg"
