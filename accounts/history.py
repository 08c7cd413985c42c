"""Who changes things, and the notes of what they changed.

Every door says who acts (`acting`); services say what changes (`note_change`) in the transaction
that changes it.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum, StrEnum
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounts.models import ApiKey, Change

#: Ids that a note about many things names; it counts them all.
NAMED_THINGS = 1_000
Value = bool | int | float | date | Enum | None


class Door(StrEnum):
    """Where people and programs come in. Whatever the site does by itself has none."""

    PAGE = "page"
    API = "api"
    ADMIN = "admin"
    COMMAND = "command"
    TOOL = "tool"


class Action(StrEnum):
    """What was done."""

    MADE = "made"
    CHANGED = "changed"
    DELETED = "deleted"
    INGESTED = "ingested"
    REINGESTED = "reingested"
    REEMBEDDED = "reembedded"
    EXPORTED = "exported"
    IMPORTED = "imported"
    MERGED = "merged"
    SUPERSEDED = "superseded"
    JUDGED = "judged"
    TAKEN_BACK = "taken_back"
    MEASURED = "measured"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    REVOKED = "revoked"


class Kind(StrEnum):
    """What a change is about."""

    WORKSPACE = "workspace"
    MEMBERSHIP = "membership"
    USER = "user"
    KEY = "key"
    COLLECTION = "collection"
    DOCUMENT = "document"
    CHUNK = "chunk"
    RUN = "run"
    SPACE = "space"
    JUDGEMENT = "judgement"
    WEIGHTS = "weights"
    NODE = "node"
    EDGE = "edge"
    ALIAS = "alias"
    FACT = "fact"
    CONTEXT = "context"
    MEMORY = "memory"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts just now: `user` is a user or, until somebody asks, what becomes one."""

    door: str = ""
    user: Any = None
    key: ApiKey | None = None

    @property
    def user_id(self) -> int | None:
        """Of the user, if there is one who is known."""
        return getattr(self.user, "pk", None)


NOBODY = Actor()
_actor: ContextVar[Actor] = ContextVar("actor", default=NOBODY)


def current_actor() -> Actor:
    """Who acts just now."""
    return _actor.get()


def set_actor(*, door: str, user: Any = None, key: ApiKey | None = None) -> None:
    """Say who acts from here on, within what `acting` of the door holds together."""
    _actor.set(Actor(door, user, key))


@contextmanager
def acting(*, door: str, user: Any = None, key: ApiKey | None = None) -> Iterator[None]:
    """Say who acts inside; afterwards it is again who was before."""
    before = _actor.get()
    _actor.set(Actor(door, user, key))
    try:
        yield
    finally:
        # Not by its token: a request may end in another context than it began in.
        _actor.set(before)


def note_change(
    *,
    action: Action,
    kind: Kind,
    workspace_id: int | None,
    thing: int | Sequence[int] | None = None,
    count: int | None = None,
    collection_id: int | None = None,
    document_id: int | None = None,
    fields: Sequence[str] = (),
    values: Mapping[str, Value | Sequence[Value]] | None = None,
    memory_of: str = "",
    user: Any = None,
) -> None:
    """Note in this transaction that the acting user (or `user`) did `action` to `thing`.

    `thing` is an id, or the ids of many; where they are not known one by one, `count` says how
    many. `collection_id` and `document_id` say what it is in, so that the change is shown there
    (those of a collection or a document itself are filled in). `fields` are names of fields, and
    `values` more about them: numbers, dates, truth values or members of an Enum, such as a
    TextChoices; a pair is the value before and after. `memory_of` is the user whose memory it is,
    with whom the note is erased. Raises TypeError for text: it could be anybody's.
    """
    ids = [thing] if isinstance(thing, int) else list(thing or ())
    number = 1 if thing is None else len(ids)
    total = number if count is None else count
    if not total:
        return
    one = ids[0] if len(ids) == 1 else None
    actor = current_actor()
    details: dict[str, Any] = {}
    if fields:
        details["fields"] = sorted(fields)
    if values:
        details["values"] = {name: _plain(name, value) for name, value in values.items()}
    if len(ids) > 1:
        details["ids"] = ids[:NAMED_THINGS]
    Change.objects.create(
        workspace_id=workspace_id,
        user_id=actor.user_id if user is None else getattr(user, "pk", None),
        key_id=actor.key.pk if actor.key else None,
        door=actor.door,
        action=action,
        kind=kind,
        thing=one,
        count=total,
        collection=one if kind == Kind.COLLECTION else collection_id,
        document=one if kind == Kind.DOCUMENT else document_id,
        subject=subject_of(memory_of) if memory_of else "",
        details=details,
    )


def _plain(name: str, value: Any) -> Any:
    """The value as JSON has it; never text that somebody wrote."""
    if isinstance(value, Enum):
        # A grade is told by its name: numbers of ours mean nothing to a reader.
        return value.name.lower() if isinstance(value.value, int) else value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(name, each) for each in value]
    raise TypeError(
        f"The history keeps no text: “{name}” is a {type(value).__name__}. Name the field in"
        " `fields`, or give a number or a member of an Enum."
    )


def subject_of(memory_user: str) -> str:
    """What a change is erased by whose memory it was about."""
    return hashlib.sha256(memory_user.encode(errors="surrogatepass")).hexdigest()


def forget_subject(*, workspace_id: int, memory_of: str) -> int:
    """Delete the notes about a user's memory; how many there were."""
    rows = Change.objects.filter(workspace_id=workspace_id, subject=subject_of(memory_of))
    return rows.delete()[0]


def prune() -> int:
    """Delete changes that are older than RAGSITE_HISTORY_DAYS; how many there were."""
    oldest = timezone.now() - timedelta(days=settings.HISTORY_DAYS)
    return Change.objects.filter(created_at__lt=oldest)._raw_delete("default")
