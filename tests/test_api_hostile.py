"""Every operation of the API against requests of those who mean it harm: each is answered in words,
quickly, and never with a server error."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from tests.access.walking import UNHURRIED
from tests.access.world import World, make_world
from tests.hostile import requests
from tests.hostile.asking import Asker
from tests.hostile.operations import Operation, operations
from tests.hostile.requests import Hostile
from tests.test_access_walk import no_log

KINDS: dict[str, Callable[[Operation], Iterator[Hostile]]] = {
    "bodies": requests.bodies,
    "fields": requests.fields,
    "queries": requests.queries,
    "headers": requests.headers,
}


@pytest.fixture
def world(transactional_db: None, tmp_path: Path) -> Iterator[World]:
    """Committed, because other threads make answers."""
    (tmp_path / "empty").mkdir()
    changed = {"MEDIA_ROOT": tmp_path, "INGEST_ROOTS": [str(tmp_path)], **UNHURRIED}
    with override_settings(**changed), no_log():
        yield make_world(directory=tmp_path / "empty")


@pytest.mark.parametrize("kind", KINDS)
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
