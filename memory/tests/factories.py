"""Scopes and rows for the tests of memory."""

from datetime import UTC, datetime, timedelta
from typing import Any

from accounts.models import Workspace
from documents.tests.factories import WorkspaceFactory
from memory.injection import Injected, find_block
from memory.scopes import UserScope, user_scope
from memory.services import archive_turn

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def make_scope(user_id: str = "alice", *, workspace: Workspace | None = None) -> UserScope:
    """A user of a workspace, of a new one where none is given."""
    scope = user_scope(workspace=workspace or WorkspaceFactory(), user_id=user_id)
    assert scope is not None
    return scope


def remember(scope: UserScope, said: str, answer: str = "", **given: Any) -> int:
    """Archive a turn, by default an hour before NOW; its id."""
    given.setdefault("at", NOW - timedelta(hours=1))
    archived = archive_turn(scope=scope, user_message=said, assistant_response=answer, **given)
    assert archived is not None
    return archived.id


def parse_block(block: str) -> Injected | None:
    """What a rendered block holds; None if `block` is not exactly one block."""
    found = find_block(block)
    return found.injected if found and not found.before else None
