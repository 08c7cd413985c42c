"""Requests that schemathesis makes up from the description: each is answered as it says.

All operations, with their examples and with values, right and wrong, that are made up: no server
error; no status, header, media type or body that is not described; nothing wrong accepted, nothing
right refused. A longer run, also with the edges of every schema and in sequence: CONTRIBUTING.md.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.description import api_description
from tests.fuzzing.world import make_world

CONFIG = Path(__file__).parent / "fuzzing" / "schemathesis.toml"
#: Random requests to each operation, besides its examples: with each change, and at night.
REQUESTS = (2, pytest.param(4, marks=pytest.mark.nightly))
#: Tags that are asked together, in a world of their own. None: all others.
GROUPS: dict[str, tuple[str, ...] | None] = {
    "documents": ("collections", "documents", "runs", "store"),
    "graph": ("graph",),
    "memory": ("memory",),
    "sources": ("sources",),
    "answers": ("anthropic", "chat", "openai", "pipelines", "tools"),
    "others": None,
}
NAMED = {tag for tags in GROUPS.values() for tag in tags or ()}


@pytest.fixture(scope="module")
def described() -> Any:
    return deepcopy(api_description())


@pytest.fixture
def site(live_server: Any, media_root: Path, settings: Any) -> Iterator[tuple[str, str]]:
    """The address of a site with a new world, and the secret of a key that may do anything."""
    settings.API_RATE = settings.API_MODEL_RATE = "0"
    settings.LOGIN_RATE = settings.LOGIN_ADDRESS_RATE = "0"
    yield live_server.url, make_world()
    # schemathesis closes no session: a thread of the server, and its database connection, would
    # wait for the next request until the garbage is collected.
    gc.collect()


def part(described: Any, group: str) -> Any:
    """The description of a group's operations."""
    tags = GROUPS[group]

    def belongs(operation: Any) -> bool:
        tag = operation["tags"][0]
        return tag in tags if tags else tag not in NAMED

    paths = {
        path: {method: each for method, each in operations.items() if belongs(each)}
        for path, operations in described["paths"].items()
    }
    return {**described, "paths": {path: each for path, each in paths.items() if each}}


def asked(description: Any, site: tuple[str, str], requests: int) -> Iterator[Any]:
    """What happens while schemathesis asks."""
    url, secret = site
    config = SchemathesisConfig.from_path(str(CONFIG))
    schema = schemathesis.openapi.from_dict(description, config=config)
    schema.config.update(base_url=url, headers={"Authorization": f"Bearer {secret}"})
    schema.config.generation.update(max_examples=requests, deterministic=True)
    schema.config.phases.coverage.enabled = schema.config.phases.stateful.enabled = False
    yield from from_schema(schema).execute()


def told(event: Any) -> dict[str, str]:
    """What went wrong, each kind of it once, and how to ask again."""
    if isinstance(event, events.NonFatalError | events.FatalError):
        return {str(event): f"{getattr(event, 'label', '')}: {getattr(event, 'value', event)}"}
    if not isinstance(event, events.ScenarioFinished):
        return {}
    checks = [check for found in event.recorder.checks.values() for check in found]
    return {
        f"{event.label} {info.failure.title}": f"{event.label}: {info.failure.title}\n"
        f"{info.failure.message}\n{info.code_sample}"
        for check in checks
        if (info := check.failure_info) is not None
    }


@pytest.mark.parametrize("requests", REQUESTS)
@pytest.mark.parametrize("group", GROUPS)
def test_every_answer_is_as_described(
    group: str, requests: int, site: tuple[str, str], described: Any
) -> None:
    description = part(described, group)
    operations = sum(map(len, description["paths"].values()))
    statuses: Counter[int] = Counter()
    answered: set[str] = set()
    faults: dict[str, str] = {}
    for event in asked(description, site, requests):
        faults |= told(event)
        if isinstance(event, events.ScenarioFinished):
            for exchange in event.recorder.interactions.values():
                if exchange.response is not None:
                    statuses[exchange.response.status_code] += 1
                    if exchange.response.status_code < 300:
                        answered.add(event.label)
    assert not faults, "\n\n".join(faults.values())
    # the requests are none that are all refused
    assert len(answered) > 0.6 * operations
    # and those without a right key, which each operation is asked with too, are not all
    assert statuses.total() - statuses[401] >= operations
