"""Scopes and rows for the tests of memory."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounts.models import Workspace
from documents.tests.factories import WorkspaceFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import InvalidVector
from memory.models import Context, Fact
from memory.scopes import UserScope, user_scope
from memory.services import archive_turn
from memory.store import content_digest

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


def remember_many(scope: UserScope, turns: Mapping[str, datetime]) -> None:
    """Archive what was said then, without an answer, at once."""
    Context.objects.bulk_create(
        Context(
            workspace_id=scope.workspace_id,
            user_id=scope.user_id,
            user_message=said,
            created_at=at,
            content_sha256=content_digest(said, ""),
        )
        for said, at in turns.items()
    )


def know_many(scope: UserScope, values: Mapping[str, str], **given: Any) -> None:
    """Facts by key, at once."""
    Fact.objects.bulk_create(
        Fact(workspace_id=scope.workspace_id, user_id=scope.user_id, key=key, value=value, **given)
        for key, value in values.items()
    )


POISON = "poison"


class RefusingEmbedder(HashingEmbedder):
    """Fails for a whole batch with one text in it that says POISON."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any(POISON in text for text in texts):
            raise InvalidVector("one of these has no direction")
        return super().embed_documents(texts)
