"""Going through one door as somebody, and what came of it."""

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.test import Client

from documents.models import Collection, Document
from documents.tests.factories import DocumentFactory
from tests.access.policy import EDITING, Actor, Door, Who, is_known, is_let_in, refusals
from tests.access.world import ASKED, LISTED, MEMORY, OWN, SHARED, THEIRS, World

#: What changes by mere looking: never a right.
_UNCOUNTED = ("last_login", "last_used_at")
#: Nobody is slowed down for coming often.
UNHURRIED = dict.fromkeys(("API_RATE", "API_MODEL_RATE", "LOGIN_RATE", "LOGIN_ADDRESS_RATE"), "0")
#: How tools and the Model Context Protocol refuse, with status 200.
_ERRORS = ('"is_error":true', '"isError":true', '"jsonrpc":"2.0","id":1,"error":')
#: What changes rows may be the end of an earlier answer, in another thread: a request that changes
#: them does so each time.
ATTEMPTS = 3
_NOT_OF_A = {"sessions.Session", "admin.LogEntry", "contenttypes.ContentType"}


@dataclass(slots=True)
class Answer:
    """The status, and everything that was sent."""

    status: int
    told: str
    location: str
    is_error: bool


@dataclass(slots=True)
class Case:
    """Somebody at a door."""

    door: Door
    actor: Actor
    ids: dict[str, Any]
    note: str = ""
    names_workspace: bool = True

    @property
    def name(self) -> str:
        return f"{self.door.name} as {self.actor.name}{self.note}"


class Walker:
    """Goes through doors of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = Client(raise_request_exception=bool(os.environ.get("RAISE")))
        self._hash_statement = _hash_statement(world.a.pk)
        #: The rows as they were last; None where they have changed since.
        self._before: list[Any] | None = None

    def forget(self) -> None:
        """Take the rows as they are now."""
        self._before = self._hash()

    def walk_together(self, cases: list[Case]) -> Iterator[tuple[Case, Answer, list[str]]]:
        """Each case at one door, its answer, and what is wrong with it. Cases that write nothing
        share a transaction, or one look at the rows where other threads answer; those that were
        found to be wrong there are tried again one by one."""
        refused = [case for case in cases if not is_let_in(case.door, case.actor)]
        let_in = [case for case in cases if case not in refused]
        is_read = cases[0].door.method == "GET" and not cases[0].door.is_threaded
        for group, is_shared in ((refused, True), (let_in, is_read)):
            answers = self._answers(group) if is_shared and len(group) > 1 else None
            for case in group:
                if answers is None:
                    yield case, *self.walk(case)
                else:
                    yield case, answers.pop(0), []

    def _answers(self, cases: list[Case]) -> list[Answer] | None:
        """What cases of one kind are answered; None where one of them is wrong or wrote."""
        door = cases[0].door
        is_refused = not is_let_in(door, cases[0].actor)
        if is_refused and self._before is None:
            self.forget()
        with nullcontext() if door.is_threaded else transaction.atomic():
            answers = [self._ask(case) for case in cases]
            is_wrong = any(map(faults, cases, answers))
            if is_refused and not is_wrong:
                is_wrong = self._hash() != self._before if door.is_threaded else self._has_changed()
            if not door.is_threaded:
                transaction.set_rollback(True)
        return None if is_wrong else answers

    def walk(self, case: Case) -> tuple[Answer, list[str]]:
        """The answer, and what is wrong with it. Whatever is written is taken back, but for what
        other threads write."""
        if case.door.is_threaded and case.door.tool == "remove_document":
            self._restore_document(case)
        for _ in range(ATTEMPTS):
            answer, changed = self._try(case)
            if not changed:
                break
            self.forget()
        wrong = [*faults(case, answer)]
        if changed:
            wrong.append("changed rows of workspace A")
        return answer, [f"{case.name}: {each} [{answer.status}]" for each in wrong]

    def _try(self, case: Case) -> tuple[Answer, bool]:
        """The answer, and whether rows changed where nothing may change them."""
        is_refused = not is_let_in(case.door, case.actor)
        if is_refused and self._before is None:
            self.forget()
        if case.door.is_threaded:
            answer = self._ask(case)
            if not is_refused:
                self._before = None
            return answer, is_refused and self._hash() != self._before
        with transaction.atomic():
            answer = self._ask(case)
            changed = is_refused and self._has_changed()
            transaction.set_rollback(True)
        return answer, changed

    def _ask(self, case: Case) -> Answer:
        door, actor, client = case.door, case.actor, self.client
        client.cookies = SimpleCookie()
        headers = {}
        if actor.name in self.world.sessions:
            client.cookies["sessionid"] = self.world.sessions[actor.name]
        if actor.name in self.world.secrets:
            headers["Authorization"] = f"Bearer {self.world.secrets[actor.name]}"
        if not door.is_form and case.names_workspace:
            headers["X-Workspace"] = self.world.a.slug
        if door.path == "/mcp":
            headers["Accept"] = "application/json, text/event-stream"
            headers["MCP-Protocol-Version"] = "2025-06-18"
        path, body = filled(door.path, case.ids), filled(door.body, case.ids)
        if door.is_form:
            given: dict[str, Any] = {"data": body or {}} if door.method == "POST" else {}
        else:
            given = {
                "data": json.dumps({} if body is None else body),
                "content_type": "application/json",
            }
            if door.method == "GET":
                given = {}
        return _answer(getattr(client, door.method.lower())(path, headers=headers, **given))

    def _restore_document(self, case: Case) -> None:
        """Make the document to remove again, which an earlier actor may have removed for good."""
        collection = Collection.objects.get(workspace=self.world.a, slug=case.ids["collection"])
        key = case.door.body["params"]["arguments"]["id"]
        if not Document.objects.filter(collection=collection, key=key).exists():
            DocumentFactory(collection=collection, key=key)
            self._before = None

    def _has_changed(self) -> bool:
        """Whether any row of A is other than before this transaction. One without a number has
        written nothing at all."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_xact_id_if_assigned() IS NULL")
            if cursor.fetchone()[0]:
                return False
        return self._hash() != self._before

    def _hash(self) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(self._hash_statement)
            return list(cursor.fetchall())


def filled(value: Any, ids: dict[str, Any]) -> Any:
    """With the things of the world in place of the braces."""
    if isinstance(value, str):
        for name, given in ids.items():
            value = value.replace(f"{{{name}}}", str(given))
        return value
    if isinstance(value, dict):
        return {key: filled(each, ids) for key, each in value.items()}
    return [filled(each, ids) for each in value] if isinstance(value, list) else value


def _answer(response: Any) -> Answer:
    if getattr(response, "streaming", False):
        body = b"".join(response.streaming_content)
    else:
        body = response.content
    text = body.decode(errors="replace")
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    is_error = response.status_code == 200 and any(mark in text for mark in _ERRORS)
    return Answer(
        response.status_code, f"{headers}\n{text}", response.headers.get("Location", ""), is_error
    )


def faults(case: Case, answer: Answer) -> list[str]:
    """What is wrong with an answer: its status, and words that this actor may not read."""
    wrong = [f"told the word “{word}”" for word in unseen(case) if word in answer.told]
    if answer.status >= 500 and answer.status not in case.door.fine:
        wrong.append("failed")
    elif not case.names_workspace:
        return wrong
    elif is_let_in(case.door, case.actor):
        if not _is_let_in(case, answer):
            wrong.append("refused, though it should be let in")
    elif not _is_refused(case, answer):
        wrong.append("let in, though it should be refused")
    return wrong


def _is_let_in(case: Case, answer: Answer) -> bool:
    if answer.status in case.door.fine:
        return True
    if "/image/" in case.door.path and "Content-Type: image/webp" not in answer.told:
        return False  # browsers get a picture that says so where there is no page
    goes_to_login = "/login/" in answer.location and case.door.who is not Who.ANYBODY
    return answer.status < 400 and not answer.is_error and not goes_to_login


def _is_refused(case: Case, answer: Answer) -> bool:
    door, actor = case.door, case.actor
    if door.tool and answer.is_error:
        return is_known(door, actor) and bool(actor.role)
    if door.does_nothing and is_known(door, actor) and door.who is not Who.STAFF:
        return answer.status < 500
    if door.who is Who.STAFF and not door.path.startswith("/api/"):
        return _is_refused_by_admin(case, answer)
    if door.is_form and not actor.is_known:
        return answer.status == 302 and "/login/" in answer.location
    return answer.status in refusals(door, actor)


def _is_refused_by_admin(case: Case, answer: Answer) -> bool:
    if not case.door.is_form:
        return answer.status == 401
    if not case.actor.is_staff:
        return answer.status == 302 and "/login/" in answer.location
    if case.door.does_nothing and case.actor.permissions:
        return answer.status in (200, 302, 403)  # and changes nothing, as for each refused case
    return answer.status in (403, 404)


def unseen(case: Case) -> set[str]:
    """The words that this actor may not read here."""
    actor, door = case.actor, case.door
    if door.who is Who.STAFF and actor.permissions:
        return set()
    if not actor.role or not actor.is_known:
        own = {THEIRS} if actor.has_home else set()
        return {SHARED, LISTED, OWN, MEMORY, ASKED, THEIRS} - own
    words = {THEIRS}
    if not actor.is_listed:
        words.add(LISTED)
    if actor.role not in EDITING:
        words.add(ASKED)
    if not actor.is_owner_of_things:
        words |= {OWN, MEMORY}
    if actor.is_limited:
        return {SHARED, LISTED, OWN, MEMORY, ASKED, THEIRS}
    scopes = actor.scopes or frozenset()
    if actor.is_key and "memory" not in scopes:
        words.add(MEMORY)
    if actor.is_key and not scopes & {"read", "write"}:
        words.add(LISTED)
    return words


def _hash_statement(workspace: int) -> str:
    """One number a table: of the rows of the workspace, or of all where rows have none."""
    parts = []
    for model in apps.get_models(include_auto_created=True):
        if model._meta.label in _NOT_OF_A:
            continue
        columns = {field.column for field in model._meta.concrete_fields}
        where = f"WHERE workspace_id = {workspace}" if "workspace_id" in columns else ""
        if model._meta.label == "auth.Group":  # but for those that stand for a workspace's group
            where = "WHERE id NOT IN (SELECT group_id FROM accounts_workspacegroup)"
        shown = "to_jsonb(t)" + "".join(f" - '{name}'" for name in _UNCOUNTED if name in columns)
        parts.append(
            f"SELECT '{model._meta.label}', count(*), sum(hashtextextended(({shown})::text, 0))"
            f' FROM "{model._meta.db_table}" t {where}'
        )
    return " UNION ALL ".join(parts) + " ORDER BY 1"
