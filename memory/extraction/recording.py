"""Taking over what a user said into the queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Func, IntegerField, Sum

from common.clock import database_now
from common.errors import RagsiteError
from memory import texts
from memory.extraction.found import Said
from memory.extraction.progress import MOST, Overlap, overlap
from memory.extraction.queue import State, next_due
from memory.models import ExtractionItem
from memory.scopes import UserScope

DIGEST_LETTERS = 16


class QueueFull(RagsiteError):
    """So much waits to be read that no more is taken."""

    code = "extraction_queue_full"
    status = 429
    retry_after = 60


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of messages: how many were new, how many wait now, whether they are due."""

    item_id: int
    new: int
    waiting: int
    is_due: bool


class _ArrayLength(Func):
    function = "jsonb_array_length"
    output_field = IntegerField()


@transaction.atomic
def take_over(scope: UserScope, conversation: str, messages: Sequence[Said]) -> Recorded:
    """Add what is new of the messages to those that wait. Raises QueueFull."""
    item = _row(scope, conversation)
    digests = [texts.digest(said.text)[:DIGEST_LETTERS] for said in messages]
    known = list(item.taken)
    shared = overlap(known, digests)
    new = messages[shared.start :]
    if new or shared.is_edit(known):
        _make_room(item, len(new))
        _take_back(item, shared)
        _add(item, new, known[: shared.kept] + digests[shared.start :])
        item.save()
    is_due = item.state == State.WAITING and _has_come(item.due_at)
    return Recorded(item.pk, len(new), len(item.messages), is_due)


def _row(scope: UserScope, conversation: str) -> ExtractionItem:
    names: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "user_id": scope.user_id,
        "key": texts.name(conversation, field="conversation"),
    }
    item, _ = ExtractionItem.objects.select_for_update().get_or_create(**names)
    return item


def _has_come(moment: datetime | None) -> bool:
    return moment is not None and moment <= database_now()


def _make_room(item: ExtractionItem, new: int) -> None:
    """What was given up counts for its own conversation only: it holds up no other."""
    waiting = ExtractionItem.objects.filter(
        workspace_id=item.workspace_id, state__in=(State.WAITING, State.RUNNING)
    )
    others = waiting.exclude(pk=item.pk).aggregate(all=Sum(_ArrayLength(F("messages"))))["all"] or 0
    limit: int = settings.MEMORY_EXTRACTION_QUEUE_LIMIT
    if others + len(item.messages) + new > limit:
        raise QueueFull(
            f"{others + len(item.messages):,} messages wait to be read in this workspace, and"
            f" {limit:,} are allowed. Send the conversation again later: nothing of it is lost"
            " until then. The admin shows which conversations hold the queue up."
        )


def _take_back(item: ExtractionItem, shared: Overlap) -> None:
    """Forget waiting messages that the user has changed, and whoever is reading them."""
    read = len(item.taken) - len(item.messages)
    still = max(0, shared.kept - read)
    if still >= len(item.messages):
        return
    item.messages = item.messages[:still]
    item.token = item.leased_until = None
    item.attempts = item.outages = 0
    item.error = ""
    item.state = State.IDLE


def _add(item: ExtractionItem, new: Sequence[Said], taken: Sequence[str]) -> None:
    now = database_now()
    item.messages += [{"content": said.text, "at": said.at.isoformat()} for said in new]
    item.seen += len(new)
    # never fewer than wait: by their number is told what was read
    item.taken = list(taken)[-max(MOST, len(item.messages)) :]
    item.last_message_at = now
    if item.state == State.IDLE or (item.state == State.WAITING and not item.error):
        item.state = State.WAITING if item.messages else State.IDLE
        item.due_at = next_due(len(item.messages), now=now)
