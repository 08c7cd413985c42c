"""Audit log: who acts (`acting`), what was changed (`record_change`), and changes in words
(`summarize`).

Every entry point sets the actor; services record changes in the transaction that makes them.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum, StrEnum
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_noop, ngettext

from accounts.models import ApiKey, Change, Workspace
from common.shards import current_shard

#: Ids that a note about many things names; it counts them all.
MAX_NAMED_IDS = 1_000
Value = bool | int | float | date | Enum | None


class Channel(StrEnum):
    """Entry points of people and programs. Empty for what the site does by itself."""

    PAGE = "page"
    API = "api"
    ADMIN = "admin"
    COMMAND = "command"
    TOOL = "tool"


class Action(StrEnum):
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
    SIGNED_IN = "signed_in"
    REFUSED = "refused"
    ENDED = "ended"
    STARTED = "started"
    QUERIED = "queried"


class Kind(StrEnum):
    """Kind of the changed object."""

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
    GROUP = "group"
    INVITATION = "invitation"
    SESSION = "session"
    FACTOR = "factor"
    IDENTITY = "identity"
    SOURCE = "source"
    MODEL = "model"
    DATABASE = "database"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts: `user` is a user or a lazy object that becomes one."""

    door: str = ""
    user: Any = None
    key: ApiKey | None = None

    @property
    def user_id(self) -> int | None:
        """The user's id, if the user is known."""
        return getattr(self.user, "pk", None)


NO_ACTOR = Actor()
_actor: ContextVar[Actor] = ContextVar("actor", default=NO_ACTOR)


def current_actor() -> Actor:
    return _actor.get()


def set_actor(*, channel: str, user: Any = None, key: ApiKey | None = None) -> None:
    """Set the actor until the enclosing `acting` block ends."""
    _actor.set(Actor(channel, user, key))


@contextmanager
def acting(*, channel: str, user: Any = None, key: ApiKey | None = None) -> Iterator[None]:
    """Set the actor within the block and restore the previous one afterwards."""
    before = _actor.get()
    _actor.set(Actor(channel, user, key))
    try:
        yield
    finally:
        # Not by its token: a request may end in another context than it began in.
        _actor.set(before)


def record_change(
    *,
    action: Action,
    kind: Kind,
    workspace_id: int | None,
    object_id: int | Sequence[int] | None = None,
    count: int | None = None,
    collection_id: int | None = None,
    document_id: int | None = None,
    fields: Sequence[str] = (),
    values: Mapping[str, Value | Sequence[Value]] | None = None,
    memory_of: str = "",
    user: Any = None,
) -> None:
    """Record in this transaction that the acting user (or `user`) did `action` to `object_id`. From
    the main database it is recorded at once in the workspace's shard, which has its history.

    `object_id` is an id or a list of ids; where they are not known, `count` says how many.
    `collection_id` and `document_id` say what the object belongs to, so that the change is listed
    there (filled in for collections and documents themselves). `fields` are names of fields, and
    `values` further details: numbers, dates, booleans or members of an Enum, such as TextChoices; a
    pair is the value before and after. `memory_of` is the user whose memory it is; erasing that
    memory deletes the record. Raises TypeError for text, which could be private.
    """
    ids = [object_id] if isinstance(object_id, int) else list(object_id or ())
    number = 1 if object_id is None else len(ids)
    total = number if count is None else count
    if not total:
        return
    one = ids[0] if len(ids) == 1 else None
    actor = current_actor()
    details: dict[str, Any] = {}
    if fields:
        details["fields"] = sorted(fields)
    if values:
        details["values"] = {name: _json_value(name, value) for name, value in values.items()}
    if len(ids) > 1:
        details["ids"] = ids[:MAX_NAMED_IDS]
    Change.objects.using(_history_alias(workspace_id)).create(
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
        subject=subject_digest(memory_of) if memory_of else "",
        details=details,
    )


def _history_alias(workspace_id: int | None) -> str:
    if not settings.DATABASE_SHARDS or current_shard() or workspace_id is None:
        return DEFAULT_DB_ALIAS
    shard = Workspace.objects.filter(pk=workspace_id).values_list("shard", flat=True).first()
    if not shard:
        return DEFAULT_DB_ALIAS
    try:
        connections[shard].ensure_connection()
    except OperationalError:  # rights can be taken away while a shard is down
        return DEFAULT_DB_ALIAS
    return shard


def _json_value(name: str, value: Any) -> Any:
    """The value as JSON; text is refused."""
    if isinstance(value, Enum):
        # Numeric enums are stored by name: our numbers mean nothing to a reader.
        return value.name.lower() if isinstance(value.value, int) else value.value
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_json_value(name, each) for each in value]
    raise TypeError(
        f"The history keeps no text: “{name}” is a {type(value).__name__}. Name the field in"
        " `fields`, or give a number or a member of an Enum."
    )


def subject_digest(memory_user: str) -> str:
    """Digest of the user whose memory a change is about, by which changes are deleted."""
    return hashlib.sha256(memory_user.encode(errors="surrogatepass")).hexdigest()


def delete_subject_history(*, workspace_id: int, memory_of: str) -> int:
    """Delete the changes about a user's memory; returns how many."""
    rows = Change.objects.filter(workspace_id=workspace_id, subject=subject_digest(memory_of))
    return rows.delete()[0]


def prune_changes() -> int:
    """Delete changes older than RAGSITE_HISTORY_DAYS; returns how many."""
    oldest = timezone.now() - timedelta(days=settings.HISTORY_DAYS)
    return Change.objects.filter(created_at__lt=oldest)._raw_delete("default")


#: What was done to an object.
ACTION_TEXTS: dict[str, str] = {
    Action.MADE: gettext_noop("made {object}"),
    Action.CHANGED: gettext_noop("changed {object}"),
    Action.DELETED: gettext_noop("deleted {object}"),
    Action.INGESTED: gettext_noop("ingested {object}"),
    Action.REINGESTED: gettext_noop("re-ingested {object}"),
    Action.REEMBEDDED: gettext_noop("re-embedded {object}"),
    Action.EXPORTED: gettext_noop("exported {object}"),
    Action.IMPORTED: gettext_noop("imported {object}"),
    Action.MERGED: gettext_noop("merged {object}"),
    Action.SUPERSEDED: gettext_noop("superseded {object}"),
    Action.JUDGED: gettext_noop("judged {object}"),
    Action.TAKEN_BACK: gettext_noop("took back {object}"),
    Action.MEASURED: gettext_noop("measured {object}"),
    Action.CANCELLED: gettext_noop("cancelled {object}"),
    Action.RETRIED: gettext_noop("retried {object}"),
    Action.REVOKED: gettext_noop("revoked {object}"),
    Action.SIGNED_IN: gettext_noop("signed in, {object}"),
    Action.REFUSED: gettext_noop("was refused {object}"),
    Action.ENDED: gettext_noop("ended {object}"),
    Action.STARTED: gettext_noop("started {object}"),
    Action.QUERIED: gettext_noop("ran a query on {object}"),
}
#: An object of each kind, before its id.
KIND_LABELS: dict[str, str] = {
    Kind.WORKSPACE: gettext_noop("workspace"),
    Kind.MEMBERSHIP: gettext_noop("membership"),
    Kind.USER: gettext_noop("user"),
    Kind.KEY: gettext_noop("API key"),
    Kind.COLLECTION: gettext_noop("collection"),
    Kind.DOCUMENT: gettext_noop("document"),
    Kind.CHUNK: gettext_noop("passage"),
    Kind.RUN: gettext_noop("run"),
    Kind.SPACE: gettext_noop("space"),
    Kind.JUDGEMENT: gettext_noop("judgement"),
    Kind.WEIGHTS: gettext_noop("weights"),
    Kind.NODE: gettext_noop("node"),
    Kind.EDGE: gettext_noop("edge"),
    Kind.ALIAS: gettext_noop("alias"),
    Kind.FACT: gettext_noop("fact"),
    Kind.CONTEXT: gettext_noop("context"),
    Kind.MEMORY: gettext_noop("memory"),
    Kind.PIPELINE: gettext_noop("pipeline"),
    Kind.GROUP: gettext_noop("group"),
    Kind.INVITATION: gettext_noop("invitation"),
    Kind.SESSION: gettext_noop("session"),
    Kind.FACTOR: gettext_noop("second factor"),
    Kind.IDENTITY: gettext_noop("identity"),
    Kind.SOURCE: gettext_noop("source"),
    Kind.MODEL: gettext_noop("model connection"),
    Kind.DATABASE: gettext_noop("database connection"),
}
#: One or many objects of each kind.
KIND_COUNTS: dict[str, Callable[[int], str]] = {
    Kind.WORKSPACE: lambda number: ngettext("a workspace", "{number} workspaces", number),
    Kind.MEMBERSHIP: lambda number: ngettext("a membership", "{number} memberships", number),
    Kind.USER: lambda number: ngettext("a user", "{number} users", number),
    Kind.KEY: lambda number: ngettext("an API key", "{number} API keys", number),
    Kind.COLLECTION: lambda number: ngettext("a collection", "{number} collections", number),
    Kind.DOCUMENT: lambda number: ngettext("a document", "{number} documents", number),
    Kind.CHUNK: lambda number: ngettext("a passage", "{number} passages", number),
    Kind.RUN: lambda number: ngettext("a run", "{number} runs", number),
    Kind.SPACE: lambda number: ngettext("a space", "{number} spaces", number),
    Kind.JUDGEMENT: lambda number: ngettext("a judgement", "{number} judgements", number),
    Kind.WEIGHTS: lambda number: ngettext("weights", "{number} weights", number),
    Kind.NODE: lambda number: ngettext("a node", "{number} nodes", number),
    Kind.EDGE: lambda number: ngettext("an edge", "{number} edges", number),
    Kind.ALIAS: lambda number: ngettext("an alias", "{number} aliases", number),
    Kind.FACT: lambda number: ngettext("a fact", "{number} facts", number),
    Kind.CONTEXT: lambda number: ngettext("a context", "{number} contexts", number),
    Kind.MEMORY: lambda number: ngettext("a memory", "{number} memories", number),
    Kind.PIPELINE: lambda number: ngettext("a pipeline", "{number} pipelines", number),
    Kind.GROUP: lambda number: ngettext("a group", "{number} groups", number),
    Kind.INVITATION: lambda number: ngettext("an invitation", "{number} invitations", number),
    Kind.SESSION: lambda number: ngettext("a session", "{number} sessions", number),
    Kind.FACTOR: lambda number: ngettext("a second factor", "{number} second factors", number),
    Kind.IDENTITY: lambda number: ngettext("an identity", "{number} identities", number),
    Kind.SOURCE: lambda number: ngettext("a source", "{number} sources", number),
    Kind.MODEL: lambda number: ngettext("a model connection", "{number} model connections", number),
    Kind.DATABASE: lambda number: ngettext(
        "a database connection", "{number} database connections", number
    ),
}
#: Label of the actor where no user is known, by channel.
CHANNEL_ACTORS = {"": gettext_noop("The site"), "command": gettext_noop("A command")}


def actor_label(change: Change) -> str:
    """Who did it: a user's name, or “A command”."""
    if change.user is not None:
        return str(change.user)
    return gettext(CHANNEL_ACTORS.get(change.door, gettext_noop("Somebody")))


def summarize(change: Change) -> str:
    """The change in words: “changed document 12”, “deleted 14 documents”."""
    text = ACTION_TEXTS.get(change.action)
    if text is None:
        return f"{change.action} {object_label(change)}"
    return gettext(text).format(object=object_label(change))


def object_label(change: Change) -> str:
    """“document 12”, “14 documents”, “a document”."""
    if change.thing is not None:
        return f"{gettext(KIND_LABELS.get(change.kind, change.kind))} {change.thing}"
    counted = KIND_COUNTS.get(change.kind)
    if counted is None:
        return f"{change.count} {change.kind}"
    return counted(change.count).format(number=number_format(change.count, force_grouping=True))


def describe_details(change: Change) -> str:
    """Fields and values: “name, graph: rules → llm”."""
    values: dict[str, Any] = change.details.get("values", {})
    bare = [name for name in change.details.get("fields", []) if name not in values]
    told = [f"{_field_label(name)}: {_value_label(value)}" for name, value in values.items()]
    return ", ".join([*map(_field_label, bare), *told])


def _field_label(field: str) -> str:
    return field.replace("_", " ")


def _value_label(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        is_pair = len(value) == 2
        return (" → " if is_pair else ", ").join(map(_value_label, value)) or gettext("none")
    if value is None or value == "":
        return gettext("none")
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    return number_format(value, force_grouping=True) if isinstance(value, int) else str(value)
