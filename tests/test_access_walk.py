"""Every door of the site, tried by everybody: `tests/access/` says who may come in."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from tests.access import inventory
from tests.access.policy import ACTORS, Who, is_let_in
from tests.access.report import DOORS, write
from tests.access.walking import UNHURRIED, Case, Walker
from tests.access.world import World, make_world
from tests.plugin import empty_tables

pytestmark = pytest.mark.django_db


#: Nobody of these is staff, and the admin asks nothing else: two others stand for them there.
ALIKE = {"stranger", "viewer", "unlisted", "editor"}
LISTED = (Who.READER, Who.CORRECTOR)
ADMIN = {door.path for door in DOORS if door.path.startswith("/admin/")}


@dataclass(slots=True)
class Walked:
    """What the walk met: statuses by door and actor, and what is wrong."""

    statuses: dict[tuple[str, str], str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


@contextmanager
def no_log() -> Iterator[None]:
    """Refusals by the thousand are no news."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _empty(media: Path) -> Path:
    folder = media / "empty"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def walked(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Walked]:
    """In no transaction of a test, because streams and models' contexts are served by other
    threads, which see what is committed."""
    media = tmp_path_factory.mktemp("media")
    folders = {"MEDIA_ROOT": media, "PAGE_CACHE_DIR": media / "pages"}
    changed = {**folders, "INGEST_ROOTS": [str(media)], **UNHURRIED}
    with django_db_blocker.unblock(), override_settings(**changed), no_log():
        try:
            yield _walk(make_world(directory=_empty(media)))
        finally:
            empty_tables()
            connection.close()


def _walk(world: World) -> Walked:
    walked = Walked()
    for model in inventory.owned_models():
        if not model._base_manager.filter(workspace=world.a).exists():
            walked.wrong.append(
                f"Nothing of {model._meta.label} is made in tests/access/filling.py"
            )
    walker = Walker(world)
    for case in cases(world):
        answer, faults = walker.walk(case)
        walked.wrong += faults
        if not case.note:
            told = "e" if answer.is_error else str(answer.status)
            told += " ✓" if is_let_in(case.door, case.actor) else ""
            walked.statuses[case.door.name, case.actor.name] = told
    return walked


def cases(world: World) -> Iterator[Case]:
    """Doors that other threads serve come last, and there the refused come first, because what
    those let in write stays. `ACCESS=/runs,/mcp` in the environment takes some of them."""
    asked = os.environ.get("ACCESS", "").split(",")
    doors = [door for door in DOORS if any(each in door.name for each in asked)]
    for door in sorted(doors, key=lambda door: door.is_threaded):
        for actor in sorted(ACTORS, key=lambda actor: is_let_in(door, actor)):
            if (door.is_form and actor.is_key) or (door.path in ADMIN and actor.name in ALIKE):
                continue
            yield Case(door, actor, world.ids)
            if not actor.is_listed and door.is_of_a_thing and door.who in LISTED:
                note = " (of an open document)"
                yield Case(door, replace(actor, is_listed=True), world.open, note=note)
            if actor.has_home and not door.is_form:
                yield Case(door, actor, world.ids, note=" (at home)", names_workspace=False)


def test_everybody_gets_through_the_doors_that_are_theirs_and_no_others(walked: Walked) -> None:
    write(Path(settings.VAR_DIR) / "access-matrix.md", walked.statuses)
    assert not walked.wrong, "\n".join([f"{len(walked.wrong)} cases are wrong:", *walked.wrong])
