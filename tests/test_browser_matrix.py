"""Every page in every state, at every size, light or dark: nothing wrong with any of them.

An area is a module of `tests.matrix` with its `STATES`. Axe looks at the first of each area, and
every night at all of them; with `MATRIX_LOOKS=all` in all sizes and themes, and screenshots are
kept. One area, or one state of it: `pytest tests/test_browser_matrix.py -k login`,
`MATRIX=login/wrong`.
"""

import os
import pkgutil
from collections.abc import Iterable
from importlib import import_module
from itertools import cycle
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests import matrix
from tests.matrix.looking import AXE_LOOKS, Look, look_at
from tests.matrix.states import State, make_world

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]
MACHINERY = {"states", "looking"}
AREAS = sorted({each.name for each in pkgutil.iter_modules(matrix.__path__)} - MACHINERY)


def states_of(area: str) -> list[State]:
    """Those of the area that are asked for."""
    states: list[State] = import_module(f"tests.matrix.{area}").STATES
    only = os.environ.get("MATRIX", "")
    return [state for state in states if not only or f"{area}/{state.name}" == only]


@pytest.mark.parametrize("area", AREAS)
def test_nothing_is_wrong_with_any_state(browser: Browser, live_server: Any, area: str) -> None:
    states = states_of(area)
    names = [state.name for state in states]
    assert len(set(names)) == len(names), "two states of the same name"
    first = AREAS.index(area) % len(AXE_LOOKS)
    look_at_all(browser, live_server.url, area, [AXE_LOOKS[first], *(None for _ in states[1:])])


@pytest.mark.nightly
@pytest.mark.parametrize("area", AREAS)
def test_axe_finds_nothing_serious_in_any_state(
    browser: Browser, live_server: Any, area: str
) -> None:
    look_at_all(browser, live_server.url, area, cycle(AXE_LOOKS))


def look_at_all(browser: Browser, site: str, area: str, looks: Iterable[Look | None]) -> None:
    world = make_world()
    wrong = [
        problem
        for state, look in zip(states_of(area), looks, strict=False)
        for problem in look_at(browser, site, world, area, state, look)
    ]
    assert wrong == [], "\n".join(wrong)
