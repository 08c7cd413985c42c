"""Services that write a user's memory: contexts, facts, conversations; usage, export and
erasure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Count, QuerySet, Sum
from django.utils import timezone

from accounts.audit import (
    NO_ACTOR,
    Action,
    Kind,
    current_actor,
    delete_subject_history,
    record_change,
)
from common import features
from common.json_lines import encode_line
from common.rls import bypass_rls
from memory import quotas, scopes, store
from memory.extraction.outdated import mark_outdated
from memory.extraction.queue import QUEUE, EnqueueResult, enqueue_messages, user_messages
from memory.fact_keys import fact_key
from memory.models import Context, ExtractionItem, Fact, FactQuerySet, Origin, Pruning
from memory.scopes import UserScope
from memory.store import ArchiveResult, FactChange, end_fact, lock_facts, put_context, put_fact
from memory.tasks import enqueue_embedding, enqueue_extraction


def archive_turn(
    *,
    scope: UserScope | None,
    user_message: str,
    assistant_response: str = "",
    conversation: str = "",
    at: datetime | None = None,
    origin: str = Origin.TURN,
) -> ArchiveResult | None:
    """Store a turn. It is found by words at once, by meaning once a worker has embedded it.

    The same turn again only gets a later time. `at` is when it was said, by default now. Returns
    None without a scope. Raises InvalidInput for a turn without text, or with too much of it.
    """
    if scope is None:
        return None
    features.require("memory")
    archived = put_context(
        scope=scope,
        user_message=user_message,
        assistant_response=assistant_response,
        conversation=conversation,
        at=at,
        origin=origin,
    )
    if archived.needs_embedding:
        transaction.on_commit(lambda: enqueue_embedding(contexts=[archived.id]))
    return archived


def store_memory(*, scope: UserScope | None, question: str, answer: str) -> ArchiveResult | None:
    """Store a question with its answer, whoever wrote it. As `archive_turn`."""
    return archive_turn(
        scope=scope, user_message=question, assistant_response=answer, origin=Origin.GIVEN
    )


def clear_memory(*, scope: UserScope | None, question: str) -> int:
    """Delete every context whose user message is `question`, whatever the answer; returns
    how many.
    """
    return _forget_ids(scope, contexts_of_question(scope=scope, question=question))


def contexts_of_question(*, scope: UserScope | None, question: str) -> list[int]:
    """Ids of contexts whose user message is `question`, ignoring surrounding blanks."""
    wanted = store.storable_text(question, field="question").strip()
    rows = Context.objects.of(scope).filter(user_message__contains=wanted)
    return [pk for pk, said in rows.values_list("pk", "user_message") if said.strip() == wanted]


def forget_contexts(*, scope: UserScope | None, ids: Iterable[int]) -> int:
    """Delete these contexts, as far as they belong to the user; returns how many."""
    mine = Context.objects.of(scope).filter(pk__in=list(ids)).values_list("pk", flat=True)
    return _forget_ids(scope, mine)


@transaction.atomic
def _forget_ids(scope: UserScope | None, ids: Iterable[int]) -> int:
    _, rows = Context.objects.filter(pk__in=list(ids)).delete()
    forgotten: int = rows.get(Context._meta.label, 0)
    if scope is not None:
        record_change(
            action=Action.DELETED,
            kind=Kind.CONTEXT,
            workspace_id=scope.workspace_id,
            count=forgotten,
            memory_of=scope.user_id,
        )
    return forgotten


def set_fact(
    *,
    scope: UserScope | None,
    key: str,
    value: str,
    at: datetime | None = None,
    source: Context | None = None,
    origin: str = Origin.GIVEN,
    corrects: bool = False,
) -> FactChange | None:
    """`key` is `value` since `at`, by default now and never later.

    The former value ends there and stays in the history. A value with an `at` before the current
    one's is inserted into the history, and the current one stays. One that `corrects` ends the
    value at `at` even if that was confirmed later. The same value again only confirms it. Returns
    None without a scope. Raises InvalidInput and TooManyFacts.
    """
    if scope is None:
        return None
    features.require("memory")
    with transaction.atomic():
        change = put_fact(
            scope=scope,
            key=key,
            value=value,
            at=at,
            source=source,
            origin=origin,
            corrects=corrects,
        )
        if change.superseded is not None:
            mark_outdated(change.superseded)
        if change.changed:
            _record_fact_change(
                Action.SUPERSEDED if change.superseded else Action.MADE, scope, change.fact.pk
            )
    if change.changed:
        transaction.on_commit(lambda: enqueue_embedding(facts=[change.fact.pk]))
    return change


def get_fact(*, scope: UserScope | None, key: str, as_of: datetime | None = None) -> Fact | None:
    """The value of `key` now, or at `as_of`."""
    return _known_facts(scope, as_of).filter(key=fact_key(key)).latest_first().first()


def has_fact(*, scope: UserScope | None, key: str) -> bool:
    """Whether `key` has a current value."""
    return get_fact(scope=scope, key=key) is not None


def get_all_facts(*, scope: UserScope | None, as_of: datetime | None = None) -> list[Fact]:
    """All facts that hold now, or at `as_of`, by key."""
    return list(_known_facts(scope, as_of).latest_per_key().defer("embedding"))


def history(*, scope: UserScope | None, key: str) -> list[Fact]:
    """All values that `key` ever had, the latest first."""
    rows = Fact.objects.of(scope).filter(key=fact_key(key)).select_related("source")
    return list(rows.latest_first().defer("embedding"))


def clear_fact(*, scope: UserScope | None, key: str) -> bool:
    """End the current value of `key` and keep its history; returns whether there was one."""
    if scope is None:
        return False
    name = fact_key(key)
    with transaction.atomic():
        lock_facts(scope)
        current = Fact.objects.of(scope).current().filter(key=name).first()
        ended = end_fact(current, timezone.now())
        if ended is not None:
            mark_outdated(ended)
            _record_fact_change(Action.CHANGED, scope, ended.pk, fields=["valid_to"])
        return ended is not None


def forget_fact(*, scope: UserScope | None, key: str) -> int:
    """Delete `key` with its history; returns the number of rows."""
    if scope is None:
        return 0
    with transaction.atomic():
        lock_facts(scope)
        _, rows = Fact.objects.of(scope).filter(key=fact_key(key)).delete()
        removed: int = rows.get(Fact._meta.label, 0)
        _record_fact_change(Action.DELETED, scope, count=removed)
    return removed


def _record_fact_change(
    action: Action, scope: UserScope, fact: int | None = None, **more: Any
) -> None:
    """Record the change. Background extraction has no actor and is not recorded."""
    if current_actor() != NO_ACTOR:
        record_change(
            action=action,
            kind=Kind.FACT,
            workspace_id=scope.workspace_id,
            object_id=fact,
            memory_of=scope.user_id,
            **more,
        )


def _known_facts(scope: UserScope | None, as_of: datetime | None) -> FactQuerySet[Fact]:
    rows = Fact.objects.of(scope)
    return rows.current() if as_of is None else rows.as_of(as_of)


def record_messages(
    *,
    scope: UserScope | None,
    conversation: str,
    messages: Sequence[Mapping[str, Any]],
    at: datetime | None = None,
) -> EnqueueResult | None:
    """Enqueue a conversation's user messages for extraction.

    `messages` are as chat clients send them, the whole conversation each time; known ones are
    skipped. Only the user's messages are kept, without injected memory, and only until they have
    been read. `at` is the time of the new ones, by default now; a message may have its own. Returns
    None without a scope or without user messages. Raises InvalidInput and QueueFull.
    """
    if scope is None:
        return None
    features.require("memory")
    said = user_messages(messages, at=at)
    if not said:
        return None
    recorded = enqueue_messages(scope, conversation, said)
    if recorded.is_due:
        transaction.on_commit(partial(enqueue_extraction, recorded.item_id))
    return recorded


def retry_extractions(*, item_ids: Sequence[int]) -> int:
    """Retry dead conversations with fresh attempts; returns how many."""
    with transaction.atomic():
        ids = QUEUE.requeue(item_ids)
        for item_id in ids:
            transaction.on_commit(partial(enqueue_extraction, item_id))
    return len(ids)


#: Number of prunings listed, the latest first.
LISTED_PRUNINGS = 10


@dataclass(frozen=True, slots=True)
class Usage:
    """How much is kept, and the limits; None is no limit. `prunings` are the latest first."""

    rows: Annotated[int, "Contexts."] = 0
    bytes: Annotated[int, "Of their texts."] = 0
    facts: Annotated[int, "Their history included."] = 0
    max_rows: Annotated[int | None, "Beyond it the oldest contexts are removed."] = None
    max_bytes: Annotated[int | None, "Likewise."] = None
    max_facts: Annotated[int | None, "Beyond it facts are refused: none is ever removed."] = None
    prunings: tuple[Pruning, ...] = ()


def usage(*, scope: UserScope | None) -> Usage:
    """This user's usage of the quota. The workspace's quota may allow less."""
    limits = quotas.Limits.of_user()
    held = Context.objects.of(scope).aggregate(rows=Count("*"), bytes=Sum("size"))
    return Usage(
        rows=held["rows"],
        bytes=held["bytes"] or 0,
        facts=Fact.objects.of(scope).count(),
        max_rows=limits.rows,
        max_bytes=limits.bytes,
        max_facts=settings.MEMORY_MAX_FACTS,
        prunings=tuple(Pruning.objects.of(scope)[:LISTED_PRUNINGS]),
    )


#: Version of the export format.
EXPORT_VERSION = 1
EXPORT_CHUNK_ROWS = 500
FACT_FIELDS = ("key", "value", "valid_from", "valid_to", "origin")
CONTEXT_FIELDS = (
    *("user_message", "assistant_response", "conversation", "created_at", "outdated_at"),
    "origin",
)
CONVERSATION_FIELDS = ("messages", "state", "error", "last_message_at")


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """Number of deleted rows of each kind."""

    contexts: int = 0
    facts: Annotated[int, "Their history included."] = 0
    conversations: Annotated[int, "Of the queue of extraction."] = 0
    prunings: Annotated[int, "Records of what a quota removed."] = 0


def export_memory(*, scope: UserScope | None) -> Iterator[bytes]:
    """JSON Lines, each with its line end: a header, then facts with history, contexts, waiting
    conversations, and prunings.

    Vectors are left out: they can be computed from the texts.
    """
    if scope is None:
        return
    header = {"version": EXPORT_VERSION, "user_id": scope.user_id, "at": timezone.now()}
    yield encode_line({"kind": "memory", **header})
    for row in _iterate(Fact.objects.of(scope).select_related("superseded_by")):
        following = row.superseded_by
        links = {"superseded_by": following and following.value, "source": row.source_id}
        yield encode_line({"kind": "fact", **_values(row, FACT_FIELDS), **links})
    for row in _iterate(Context.objects.of(scope)):
        yield encode_line({"kind": "context", "id": row.pk, **_values(row, CONTEXT_FIELDS)})
    for row in _iterate(ExtractionItem.objects.of(scope)):
        waiting = {"conversation": row.key, **_values(row, CONVERSATION_FIELDS)}
        yield encode_line({"kind": "conversation", **waiting})
    for row in _iterate(Pruning.objects.of(scope)):
        pruned = {"at": row.created_at, **_values(row, ("reason", "rows", "bytes", "until"))}
        yield encode_line({"kind": "pruning", **pruned})


@transaction.atomic
def erase_memory(*, scope: UserScope | None) -> ErasureResult:
    """Delete every row of this user, their entries in the admin's log, and what other apps derived
    from them, in one transaction.

    An extraction in progress is not stored any more either.
    """
    if scope is None:
        return ErasureResult()
    lock_facts(scope)
    scopes.notify_erased(scope)
    delete_subject_history(workspace_id=scope.workspace_id, memory_of=scope.user_id)
    record_change(action=Action.DELETED, kind=Kind.MEMORY, workspace_id=scope.workspace_id)
    # Conversations first: a worker that has claimed one finds it deleted before it stores results.
    return ErasureResult(
        conversations=_delete_rows(ExtractionItem.objects.of(scope)),
        facts=_delete_rows(Fact.objects.of(scope)),
        contexts=_delete_rows(Context.objects.of(scope)),
        prunings=_delete_rows(Pruning.objects.of(scope)),
    )


def _delete_rows(rows: QuerySet[Any]) -> int:
    kind = ContentType.objects.get_for_model(rows.model)
    ids = [str(pk) for pk in rows.values_list("pk", flat=True)]
    with bypass_rls():  # no request may touch the admin's log, which names what was erased
        LogEntry.objects.filter(content_type=kind, object_id__in=ids).delete()
    _, counts = rows.delete()
    return counts.get(rows.model._meta.label, 0)


def _values(row: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _iterate(rows: QuerySet[Any]) -> Iterator[Any]:
    """All rows by id, read in chunks."""
    fields = {field.name for field in rows.model._meta.get_fields()}
    rows = rows.defer(*(fields & {"embedding", "search_vector"}))
    return rows.order_by("pk").iterator(chunk_size=EXPORT_CHUNK_ROWS)
