"""Scopes and rows for the tests of memory."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from accounts.models import Workspace
from documents.tests.factories import WorkspaceFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import InvalidVector
from memory import services
from memory.models import Context, ExtractionItem, Fact, Pruning
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


#: A word that is longer than any line, and a user whose id is markup.
LONG = "w" * 200
HOSTILE = f"a/b\"'><img src=x onerror=alert(1)> \u202egnp.exe אבג {LONG}"[:255]


def fill_pages(scope: UserScope, workspace: Workspace, *, turns: int, notes: int) -> None:
    """Something on each page of the memory."""
    now = timezone.now()
    for number in range(turns):
        said = f"Turn {number} about the allotment and its plums"
        remember(scope, said, f"Answer {number}. {LONG}", at=now - timedelta(hours=7 * number))
    source = Context.objects.latest("pk")
    for age, city in [(900, "Lisbon"), (400, "Munich"), (30, "Berlin")]:
        at = now - timedelta(days=age)
        services.set_fact(scope=scope, key="home_city", value=city, at=at, source=source)
    for number in range(notes):
        services.set_fact(scope=scope, key=f"note_{number}", value=f"{number} {LONG}")
    services.set_fact(scope=scope, key="car", value="a red one")
    services.clear_fact(scope=scope, key="car")
    whose: dict[str, Any] = {"workspace": workspace, "user_id": scope.user_id}
    waiting = [{"content": f"I live in {LONG}", "at": now.isoformat()}]
    for state in ("dead", "running", "waiting"):
        ExtractionItem.objects.create(
            **whose, key=f"{state} {LONG}", state=state, messages=waiting, error=f"No. {LONG}"
        )
    Pruning.objects.create(**whose, reason="user", rows=12, bytes=2048, until=now)
    services.set_fact(scope=make_scope(HOSTILE, workspace=workspace), key="a", value=HOSTILE)
