"""Queue of conversations to extract facts from (`common.queues`): enqueue, claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Func, IntegerField, QuerySet, Sum
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext

from common.errors import InvalidInput, RagsiteError
from common.leases import database_now
from common.queues import RetryLimits, WorkQueue
from common.translation import format_number
from inference.chat_models import chosen_models
from memory import store
from memory.extraction.chat_model import MAX_MESSAGE_CHARACTERS
from memory.extraction.messages import MAX_DIGESTS, UserMessage, overlap
from memory.injection import remove_blocks, text_of_content
from memory.models import ExtractionItem
from memory.scopes import UserScope

QUEUE = WorkQueue(
    ExtractionItem,
    "memory.extraction",
    limits=lambda: RetryLimits(
        attempts=settings.MEMORY_EXTRACTION_MAX_ATTEMPTS,
        outages=settings.MEMORY_EXTRACTION_MAX_OUTAGES,
        first_seconds=settings.MEMORY_EXTRACTION_RETRY_SECONDS,
    ),
)

#: Characters stored of a message: one more than are read, to show that it is longer.
MAX_STORED_CHARACTERS = MAX_MESSAGE_CHARACTERS + 1


def user_messages(
    messages: Sequence[Mapping[str, Any]], *, at: datetime | None
) -> list[UserMessage]:
    """The user's messages with text, in order, without injected memory.

    Their time is the message's own `at`, else `at`, else now; never in the future. Raises
    InvalidInput for malformed messages.
    """
    now = timezone.now()
    said: list[UserMessage] = []
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidInput(
                gettext("A message is an object with a “role” and a “content”."), field="messages"
            )
        if message["role"] != "user":
            continue
        # The rest is not read, so it need not be searched for blocks either.
        text = text_of_content(message.get("content"))[: 4 * MAX_STORED_CHARACTERS]
        text = remove_blocks(text)[:MAX_STORED_CHARACTERS].strip()
        text = store.storable_text(text, field="messages")
        if not text:
            continue
        moment = message.get("at")
        if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
            raise InvalidInput(
                gettext("The “at” of a message is a time with its zone."), field="messages"
            )
        said.append(UserMessage(text, min(moment or at or now, now)))
    return said


State = ExtractionItem.State
#: Conversations that one sweep sends to the workers.
SWEEP_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Claim:
    """A conversation claimed by a worker, with the messages to read."""

    item_id: int
    token: UUID
    scope: UserScope
    conversation: str
    messages: tuple[UserMessage, ...]
    waiting: int


def next_due(waiting: int, *, now: datetime) -> datetime | None:
    """When this many waiting messages are to be read: at once if there are many, after an idle time
    if there are enough, after a longer one if there are fewer. None where none waits.
    """
    if not waiting:
        return None
    if waiting >= max_messages():
        return now
    idle: float = settings.MEMORY_EXTRACTION_IDLE_SECONDS
    if waiting < settings.MEMORY_EXTRACTION_MIN_TURNS:
        idle = max(idle, settings.MEMORY_EXTRACTION_FEW_IDLE_SECONDS)
    return now + timedelta(seconds=idle)


def max_messages() -> int:
    """Maximum number of messages read together."""
    return max(1, int(settings.MEMORY_EXTRACTION_MAX_TURNS))


def claim(item_id: int) -> Claim | None:
    """Claim a conversation that is due and unclaimed.

    After each failure fewer messages are taken, down to one, in case the answer was too long or one
    message is at fault.
    """
    token, items = QUEUE.claim(QUEUE.claimable().filter(pk=item_id))
    if not items:
        return None
    (item,) = items
    batch = item.messages[: max(1, max_messages() >> item.attempts)]
    return Claim(
        item.pk,
        token,
        UserScope(item.workspace_id, item.user_id),
        item.key,
        tuple(
            UserMessage(message["content"], parse_datetime(message["at"]) or timezone.now())
            for message in batch
        ),
        len(item.messages),
    )


def claimed_row(claim: Claim) -> QuerySet[ExtractionItem]:
    """The claimed row, empty if the claim was lost."""
    return QUEUE.rows.filter(pk=claim.item_id, token=claim.token)


def due_items() -> list[int]:
    """Ids of due conversations whose model answers, including those of dead workers; each at most
    once within a lease.
    """
    return QUEUE.sweep("due_at", "pk", limit=SWEEP_ROWS, where=QUEUE.not_paused(chosen_models()))


DIGEST_CHARACTERS = 16


class QueueFull(RagsiteError):
    """Too many messages wait in this workspace."""

    code = "extraction_queue_full"
    status = 429
    retry_after = 60


@dataclass(frozen=True, slots=True)
class EnqueueResult:
    """How many messages were new, how many wait now, and whether they are due."""

    item_id: int
    new: int
    waiting: int
    is_due: bool


class _ArrayLength(Func):
    function = "jsonb_array_length"
    output_field = IntegerField()


@transaction.atomic
def enqueue_messages(
    scope: UserScope, conversation: str, messages: Sequence[UserMessage]
) -> EnqueueResult:
    """Append the new messages to those that wait. Raises QueueFull."""
    names: dict[str, Any] = {
        "workspace_id": scope.workspace_id,
        "user_id": scope.user_id,
        "key": store.checked_name(conversation, field="conversation"),
    }
    item, _ = ExtractionItem.objects.select_for_update().get_or_create(**names)
    digests = [store.content_digest(said.text)[:DIGEST_CHARACTERS] for said in messages]
    known = list(item.taken)
    kept, start = overlap(known, digests)
    new = messages[start:]
    if new or kept < len(known):
        _check_room(item, len(new))
        read = len(item.taken) - len(item.messages)
        still = max(0, kept - read)
        if still < len(item.messages):
            # The user has changed some that wait: drop them, and release the worker's claim.
            item.messages = item.messages[:still]
            item.token = item.leased_until = None
            item.attempts = item.outages = 0
            item.error = ""
            item.state = State.IDLE
        taken = known[:kept] + digests[start:]
        now = database_now()
        item.messages += [{"content": said.text, "at": said.at.isoformat()} for said in new]
        item.seen += len(new)
        # never fewer than wait, because their number tells what was read
        item.taken = list(taken)[-max(MAX_DIGESTS, len(item.messages)) :]
        item.last_message_at = now
        if item.state == State.IDLE or (item.state == State.WAITING and not item.error):
            item.state = State.WAITING if item.messages else State.IDLE
            item.due_at = next_due(len(item.messages), now=now)
        item.save()
    is_due = item.state == State.WAITING and (
        item.due_at is not None and item.due_at <= database_now()
    )
    return EnqueueResult(item.pk, len(new), len(item.messages), is_due)


def _check_room(item: ExtractionItem, new: int) -> None:
    """Dead items count for their own conversation only, so that they block no other."""
    waiting = ExtractionItem.objects.filter(
        workspace_id=item.workspace_id, state__in=(State.WAITING, State.RUNNING)
    )
    others = waiting.exclude(pk=item.pk).aggregate(all=Sum(_ArrayLength(F("messages"))))["all"] or 0
    limit: int = settings.MEMORY_EXTRACTION_QUEUE_LIMIT
    if others + len(item.messages) + new > limit:
        raise QueueFull(
            gettext(
                "{count} messages would wait in this workspace; the limit is {limit}. Send the"
                " conversation again later. The admin shows the conversations that block the"
                " queue."
            ).format(limit=format_number(limit), count=format_number(others + len(item.messages)))
        )
