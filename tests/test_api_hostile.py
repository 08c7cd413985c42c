"""Every operation of the API against requests of those who mean it harm: each is answered in words,
quickly, and never with a server error."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import override_settings

from tests.access.walking import UNHURRIED
from tests.access.world import World, make_world
from tests.hostile import requests
from tests.hostile.asking import Asker
from tests.hostile.operations import Operation, operations
from tests.hostile.requests import Hostile
from tests.plugin import committed_rows
from tests.test_access_walk import no_log

KINDS: dict[str, Callable[[Operation], Iterator[Hostile]]] = {
    "bodies": requests.bodies,
    "fields": requests.fields,
    "queries": requests.queries,
    "headers": requests.headers,
}


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any) -> Iterator[World]:
    """Committed, because other threads make answers."""
    media = tmp_path_factory.mktemp("media")
    (media / "empty").mkdir()
    changed = {"MEDIA_ROOT": media, "INGEST_ROOTS": [str(media)], **UNHURRIED}
    with committed_rows(django_db_blocker), override_settings(**changed), no_log():
        yield make_world(directory=media / "empty")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "fields" else pytest.mark.nightly) for kind in KINDS],
)
def test_no_request_does_harm(world: World, kind: str) -> None:
    asker = Asker(world)
    wrong = []
    try:
        for operation in operations(world.ids):
            for hostile in KINDS[kind](operation):
                wrong += asker.faults(operation, hostile)
    finally:
        asker.close()
    assert not wrong, "\n".join([f"{len(wrong)} answers are wrong:", *wrong])
