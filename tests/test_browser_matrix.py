"""Every page in every state, at every size, light or dark: nothing wrong with any of them.

An area is a module of `tests.matrix` with its `STATES`, of which `make test` looks at the first few
and `make test-all` at all; with `MATRIX_LOOKS=all` in all sizes and themes, and screenshots are
kept. One area, or one state of it: `pytest tests/test_browser_matrix.py -k login`,
`MATRIX=login/wrong`.
"""

import os
import pkgutil
from importlib import import_module
from itertools import cycle
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests import matrix
from tests.matrix.looking import AXE_LOOKS, look_at
from tests.matrix.states import State, make_world

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("media_root"),
]
#: States of each area that are looked at with every change: one for each look.
FIRST = len(AXE_LOOKS)
MACHINERY = {"states", "looking"}
AREAS = sorted({each.name for each in pkgutil.iter_modules(matrix.__path__)} - MACHINERY)


def states_of(area: str) -> list[State]:
    """Those of the area that are asked for."""
    states: list[State] = import_module(f"tests.matrix.{area}").STATES
    only = os.environ.get("MATRIX", "")
    return [state for state in states if not only or f"{area}/{state.name}" == only]


@pytest.mark.nightly
@pytest.mark.parametrize("area", AREAS)
def test_nothing_is_wrong_with_any_state(browser: Browser, live_server: Any, area: str) -> None:
    states = states_of(area)
    names = [state.name for state in states]
    assert len(set(names)) == len(names), "two states of the same name"
    look_at_all(browser, live_server.url, area, states)


@pytest.mark.parametrize("area", AREAS)
def test_nothing_is_wrong_with_the_first_states(
    browser: Browser, live_server: Any, area: str
) -> None:
    look_at_all(browser, live_server.url, area, states_of(area)[:FIRST])


def look_at_all(browser: Browser, site: str, area: str, states: list[State]) -> None:
    world = make_world()
    wrong = [
        problem
        for state, look in zip(states, cycle(AXE_LOOKS), strict=False)
        for problem in look_at(browser, site, world, area, state, look)
    ]
    assert wrong == [], "\n".join(wrong)
