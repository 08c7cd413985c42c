"""Every door of the site, tried by those who may just come in and those who just may not:
`tests/access/` says who they are."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.conf import settings
from django.contrib import admin
from django.db import connection
from django.template.base import Template
from django.test import override_settings
from django.utils import translation

from accounts.groups import set_groups
from accounts.members import remove_member
from accounts.models import Membership
from ragsite import handbook
from tests.access import inventory
from tests.access.policy import ACTORS, Actor, Door, Who, is_let_in
from tests.access.report import DOORS, GROUPS, write
from tests.access.walking import UNHURRIED, Case, Walker
from tests.access.world import World, make_world
from tests.plugin import committed_rows

pytestmark = pytest.mark.django_db


#: Nobody of these is staff, and the admin asks nothing else: the owner stands for them there.
NOT_STAFF = {"anonymous", "stranger", "outsider", "viewer", "unlisted", "editor"}
#: Members of nothing with no more rights than the superuser, who stands for them outside the admin.
LESSER = {"stranger", "staff", "looker", "curator"}
#: Who has all rights of whom: where the first is refused, so is the second, and where the second is
#: let in, so is the first.
MORE_AND_LESS = [
    *(("superuser", "curator"), ("curator", "looker"), ("looker", "staff")),
    *(("key:all", f"key:{each}") for each in ("read", "write", "memory", "chat", "admin")),
    *(("key:all", "key:viewer"), ("key:all", "key:unlisted")),
    *(("editor", "viewer"), ("editor", "unlisted")),
]
#: An open door asks nobody who they are: a person, a key and nobody at all are enough.
AT_OPEN_DOORS = {"anonymous", "owner", "key:all", "key:revoked"}
NAMED = {actor.name: actor for actor in ACTORS}
#: Keys whose scope is that of few doors: the keys that read and write are refused at all others.
NARROW = {"key:memory", "key:chat", "key:admin"}
#: Is looked up as the revoked one is.
EXPIRED = "key:expired"
FIRST_OF_GROUPS = {doors[0].name for doors in GROUPS.values()}
LISTED = (Who.READER, Who.CORRECTOR)
#: Of the documentation: its index, the page that a door leads to, and its neighbors.
PAGES = handbook.contents()[:3]
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


@contextmanager
def warm_connections() -> Iterator[None]:
    """Threads pass connections on, as in gunicorn, and nothing is prepared that the next rollback
    would throw away."""
    connection.close()
    with patch.dict(connection.settings_dict["OPTIONS"], pool=8, prepare_threshold=None):
        try:
            yield
        finally:
            connection.close()
            connection.close_pool()  # type: ignore[attr-defined]  # not in the stubs


@pytest.fixture(scope="module")
def walked(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Walked]:
    """In no transaction of a test, because streams and models' contexts are served by other
    threads, which see what is committed."""
    media = tmp_path_factory.mktemp("media")
    folders = {"MEDIA_ROOT": media, "PAGE_CACHE_DIR": media / "pages"}
    changed = {**folders, "INGEST_ROOTS": [str(media)], **UNHURRIED}
    changed |= {"WORKSPACE_MODELS": True, "FIND_MODEL_SERVERS": []}
    with (
        committed_rows(django_db_blocker),
        override_settings(**changed),
        no_log(),
        warm_connections(),
        # Nothing asserts which templates were used, and a search need not render all of docs/.
        patch.object(Template, "_render", lambda page, context: page.nodelist.render(context)),
        patch("ragsite.handbook.contents", lambda: PAGES),
        # Answers quote: the connected model is nowhere.
        patch("inference.model_registry._find_connected", lambda kind: ()),
        # The menu is the same on all pages of the admin: tests/test_curation.py.
        patch.object(admin.site, "get_sidebar_list", lambda *asked: []),
        # Texts are written in English.
        patch.object(translation._trans, "gettext", str),
        # A walk takes longer than a session may go without being noted as seen.
        patch("accounts.sign_in.SEEN_INTERVAL_SECONDS", 86_400),
    ):
        folder = media / "empty"
        folder.mkdir()
        yield _walk(make_world(directory=folder))


def _walk(world: World) -> Walked:
    walked = Walked()
    for model in inventory.owned_models():
        if not model._base_manager.filter(workspace=world.a).exists():
            walked.wrong.append(
                f"Nothing of {model._meta.label} is made in tests/access/filling.py"
            )
    walker = Walker(world)
    for _, at_door in groupby(cases(world), attrgetter("door")):
        for case, answer, faults in walker.walk_together(list(at_door)):
            walked.wrong += faults
            if not case.note:
                told = "e" if answer.is_error else str(answer.status)
                told += " ✓" if is_let_in(case.door, case.actor) else ""
                walked.statuses[case.door.name, case.actor.name] = told
    walked.wrong += _leave(world, walker)
    return walked


def _leave(world: World, walker: Walker) -> list[str]:
    """What is wrong once the viewer has left the group that sees the document with a list, and then
    the workspace: with the same session and the same key as before, between two requests."""
    viewer = Membership.objects.get(workspace=world.a, user__username="viewer")
    people = [actor for actor in ACTORS if actor.name in ("viewer", "key:viewer")]
    wrong = []
    for note, leave in (
        (" (who has left the group)", partial(set_groups, membership=viewer, group_ids=())),
        (" (who has left the workspace)", partial(remove_member, membership=viewer)),
    ):
        leave()
        walker.forget()
        gone = "workspace" in note
        for door in DOORS:
            if door.who not in (*LISTED, Who.MEMBER) or door.path in ADMIN:
                continue
            if door.path.endswith("/open.md/"):
                continue  # A tool that was walked through before has removed that item.
            at_door = []
            for actor in people:
                if door.is_form and actor.is_key:
                    continue
                now = replace(actor, is_listed=False)
                if gone:
                    now = replace(now, role="", is_known=not actor.is_key)
                at_door.append(Case(door, now, world.ids, note=note))
            wrong += [fault for *_, found in walker.walk_together(at_door) for fault in found]
    return wrong


def cases(world: World) -> Iterator[Case]:
    """Doors that other threads serve come last, and there the refused come first, because what
    those let in write stays. `ACCESS=/runs,/mcp` in the environment takes some of them, and
    `ACCESS_AS=viewer,key:read` some of those who come."""
    asked = os.environ.get("ACCESS", "").split(",")
    named = os.environ.get("ACCESS_AS", "").split(",")
    actors = [actor for actor in ACTORS if named == [""] or actor.name in named]
    doors = [door for door in DOORS if any(each in door.name for each in asked)]
    for door in sorted(doors, key=lambda door: door.is_threaded):
        for actor in sorted(actors, key=lambda actor: is_let_in(door, actor)):
            if (door.is_form and actor.is_key) or is_represented(door, actor):
                continue
            yield Case(door, actor, world.ids)
            if not actor.is_listed and door.is_of_a_thing and door.who in LISTED:
                note = " (of an open document)"
                yield Case(door, replace(actor, is_listed=True), world.open, note=note)
            if actor.has_home and not door.is_form and (door.is_for_keys or not actor.is_key):
                yield Case(door, actor, world.ids, note=" (at home)", names_workspace=False)


def is_represented(door: Door, actor: Actor) -> bool:
    """Whether another actor who tries the door proves what this one would."""
    if door.who is Who.ANYBODY:
        return actor.name not in AT_OPEN_DOORS
    if door.is_for_keys and not actor.is_key:
        return actor.name != "owner"  # whoever has no key is nobody
    if door.path in ADMIN and actor.name in NOT_STAFF:
        return True
    if door.who is not Who.STAFF and not actor.is_key and actor.name in (*LESSER, "superuser"):
        return actor.name in LESSER
    is_in = is_let_in(door, actor)
    if actor.name == EXPIRED or (actor.name in NARROW and not is_in):
        return door.name not in FIRST_OF_GROUPS
    others = [
        less if is_in else more
        for more, less in MORE_AND_LESS
        if actor.name == (more if is_in else less)
    ]
    return any(is_let_in(door, NAMED[other]) == is_in for other in others)


def test_everybody_gets_through_the_doors_that_are_theirs_and_no_others(walked: Walked) -> None:
    write(Path(settings.VAR_DIR) / "access-matrix.md", walked.statuses)
    assert not walked.wrong, "\n".join([f"{len(walked.wrong)} cases are wrong:", *walked.wrong])
