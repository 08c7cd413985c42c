"""Everything that is remembered of one user: taken along, or erased."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.serializers.json import DjangoJSONEncoder
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.history import Action, Kind, forget_subject, note_change
from common.fence import unfenced
from memory import listeners
from memory.locks import hold_facts
from memory.models import Context, ExtractionItem, Fact, Pruning
from memory.scopes import UserScope

#: Of the format, for whoever reads it.
VERSION = 1
ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Erased:
    """How many rows of each kind were removed."""

    contexts: int = 0
    facts: int = 0
    conversations: int = 0
    prunings: int = 0


def export_memory(*, scope: UserScope | None) -> Iterator[str]:
    """JSON Lines, each with its line end: a header, then every fact with its history, every
    context, every conversation that waits to be read, and every pruning.

    Vectors are left out: they are computed from the texts.
    """
    if scope is None:
        return
    yield _line("memory", {"version": VERSION, "user_id": scope.user_id, "at": timezone.now()})
    for row in _all(Fact.objects.of(scope).select_related("superseded_by")):
        yield _line("fact", _fact(row))
    for row in _all(Context.objects.of(scope)):
        yield _line("context", _context(row))
    for row in _all(ExtractionItem.objects.of(scope)):
        yield _line("conversation", _conversation(row))
    for row in _all(Pruning.objects.of(scope)):
        yield _line("pruning", _pruning(row))


@transaction.atomic
def erase_memory(*, scope: UserScope | None) -> Erased:
    """Remove every row of this user, what the admin's log says of them, and what listeners made
    with them, in one transaction.

    What a worker is reading out of a conversation just now is not stored any more either.
    """
    if scope is None:
        return Erased()
    hold_facts(scope)
    listeners.erased(scope)
    forget_subject(workspace_id=scope.workspace_id, memory_of=scope.user_id)
    note_change(action=Action.DELETED, kind=Kind.MEMORY, workspace_id=scope.workspace_id)
    # Conversations first: whoever has taken one finds it gone before storing what it says.
    return Erased(
        conversations=_erase(ExtractionItem.objects.of(scope)),
        facts=_erase(Fact.objects.of(scope)),
        contexts=_erase(Context.objects.of(scope)),
        prunings=_erase(Pruning.objects.of(scope)),
    )


def _erase(rows: QuerySet[Any]) -> int:
    kind = ContentType.objects.get_for_model(rows.model)
    ids = [str(pk) for pk in rows.values_list("pk", flat=True)]
    with unfenced():  # no request may touch the admin's log, which names what was erased
        LogEntry.objects.filter(content_type=kind, object_id__in=ids).delete()
    _, counts = rows.delete()
    return counts.get(rows.model._meta.label, 0)


def _all(rows: QuerySet[Any]) -> Iterator[Any]:
    """In the order that they came, without holding all of them."""
    fields = {field.name for field in rows.model._meta.get_fields()}
    rows = rows.defer(*(fields & {"embedding", "search_vector"}))
    return rows.order_by("pk").iterator(chunk_size=ROWS_AT_ONCE)


def _line(kind: str, values: dict[str, Any]) -> str:
    return json.dumps({"kind": kind, **values}, cls=DjangoJSONEncoder, ensure_ascii=False) + "\n"


def _fact(row: Fact) -> dict[str, Any]:
    following = row.superseded_by
    return {
        "key": row.key,
        "value": row.value,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "superseded_by": following.value if following else None,
        "origin": row.origin,
        "source": row.source_id,
    }


def _context(row: Context) -> dict[str, Any]:
    return {
        "id": row.pk,
        "user_message": row.user_message,
        "assistant_response": row.assistant_response,
        "conversation": row.conversation,
        "created_at": row.created_at,
        "origin": row.origin,
    }


def _conversation(row: ExtractionItem) -> dict[str, Any]:
    return {
        "conversation": row.key,
        "messages": row.messages,
        "state": row.state,
        "error": row.error,
        "last_message_at": row.last_message_at,
    }


def _pruning(row: Pruning) -> dict[str, Any]:
    return {
        "at": row.created_at,
        "reason": row.reason,
        "rows": row.rows,
        "bytes": row.bytes,
        "until": row.until,
    }
