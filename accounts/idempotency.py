"""A request with a key of its caller's is done once, however often it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from accounts.models import IdempotencyRecord, Workspace
from common.clock import database_now
from common.errors import Conflict, InvalidInput, RagsiteError
from common.heartbeat import heartbeat

MAX_KEY_CHARACTERS = 255
#: How long an answer is kept.
KEPT = timedelta(hours=24)
#: A request that says nothing for this long is taken for dead.
LEASE = timedelta(seconds=60)


class KeyReused(RagsiteError):
    """The key belongs to another request."""

    code = "idempotency_key_reused"
    status = 422


class KeyInUse(Conflict):
    """The first request with this key is not answered yet."""

    code = "idempotency_key_in_use"
    retry_after = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What the first request was answered. `body` is JSON, or empty."""

    status: int
    body: str
    location: str


@dataclass(frozen=True, slots=True)
class Turn:
    """The right, and the duty, to do the work and say what came of it."""

    record_id: int
    token: UUID


def check_key(key: str) -> None:
    """Raise InvalidInput for what is no key."""
    if not key or len(key) > MAX_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
        raise InvalidInput(
            f"An Idempotency-Key has 1 to {MAX_KEY_CHARACTERS} printable ASCII characters. A UUID"
            " will do.",
            field="Idempotency-Key",
        )


def begin(*, user: Any, workspace: Workspace, key: str, fingerprint: str) -> Answer | Turn:
    """The kept answer, or a turn: of requests that come at once, one gets it.

    The turn is committed before this returns, unless the caller is in a transaction. Raises
    KeyReused for a key of another request, and KeyInUse while somebody else has the turn.
    """
    owner = {"workspace": workspace, "user": user, "key": key}
    while True:
        turn = _new_turn(fingerprint)
        record, is_new = IdempotencyRecord.objects.get_or_create(**owner, defaults=turn)
        if is_new:
            return Turn(record.pk, turn["token"])
        with transaction.atomic():
            held = IdempotencyRecord.objects.select_for_update().filter(pk=record.pk).first()
            if held is not None:  # else it was given up just now
                return _take_over(held, turn) if _is_over(held) else _answer_of(held, fingerprint)


def _new_turn(fingerprint: str) -> dict[str, Any]:
    now = database_now()
    return {
        "fingerprint": fingerprint,
        "token": uuid4(),
        "leased_until": now + LEASE,
        "created_at": now,
        "status": None,
        "location": "",
        "body": "",
    }


def _is_over(record: IdempotencyRecord) -> bool:
    now = database_now()
    return record.leased_until < now if record.status is None else record.created_at < now - KEPT


def _take_over(record: IdempotencyRecord, turn: dict[str, Any]) -> Turn:
    IdempotencyRecord.objects.filter(pk=record.pk).update(**turn)
    return Turn(record.pk, turn["token"])


def _answer_of(record: IdempotencyRecord, fingerprint: str) -> Answer:
    if record.fingerprint != fingerprint:
        raise KeyReused(
            "This Idempotency-Key belongs to another request: its address or its body was"
            " different. Use a new key."
        )
    if record.status is None:
        raise KeyInUse(
            "The first request with this Idempotency-Key is still being worked on. Send it again"
            " in a moment for its answer."
        )
    return Answer(record.status, record.body, record.location)


@contextmanager
def kept(turn: Turn) -> Iterator[None]:
    """Keep the turn while the block works."""
    mine = _mine(turn)
    seconds = LEASE.total_seconds() / 3
    with heartbeat(lambda: mine.update(leased_until=Now() + LEASE), seconds=seconds):
        yield


def finish(turn: Turn, answer: Answer) -> None:
    """Keep the answer for those who ask again."""
    _mine(turn).update(status=answer.status, body=answer.body, location=answer.location)


def give_up(turn: Turn) -> None:
    """Let the next request with this key do the work."""
    _mine(turn).delete()


def _mine(turn: Turn) -> Any:
    return IdempotencyRecord.objects.filter(pk=turn.record_id, token=turn.token)


def prune() -> int:
    """Delete what was kept long enough; returns how many records."""
    now = database_now()
    is_old = Q(created_at__lt=now - KEPT)
    is_dead = Q(status=None, leased_until__lt=now)
    deleted, _ = IdempotencyRecord.objects.filter((is_old & ~Q(status=None)) | is_dead).delete()
    return deleted
