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
from common.errors import Conflict, InvalidInput, RagsiteError
from common.leases import database_now, heartbeat

MAX_KEY_CHARACTERS = 255
#: How long an answer is kept.
RETENTION = timedelta(hours=24)
#: A request without a heartbeat for this long counts as dead.
LEASE = timedelta(seconds=60)


class KeyReused(RagsiteError):
    """The key was already used for a different request."""

    code = "idempotency_key_reused"
    status = 422


class KeyInUse(Conflict):
    """The first request with this key is still in progress."""

    code = "idempotency_key_in_use"
    retry_after = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """A stored answer. `body` is JSON, or empty."""

    status: int
    body: str
    location: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim on a key: its holder does the work and stores the answer."""

    record_id: int
    token: UUID


def check_key(key: str) -> None:
    """Raise InvalidInput unless `key` is a valid Idempotency-Key."""
    if not key or len(key) > MAX_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
        raise InvalidInput(
            f"An Idempotency-Key has 1 to {MAX_KEY_CHARACTERS} printable ASCII characters. A UUID"
            " will do.",
            field="Idempotency-Key",
        )


def claim_or_replay(
    *, user: Any, workspace: Workspace, key: str, fingerprint: str
) -> Answer | Claim:
    """The stored answer, or a claim: of concurrent requests only one gets it.

    The claim is committed before this returns, unless the caller is in a transaction. Raises
    KeyReused for a key of another request, and KeyInUse while another request holds the claim.
    """
    owner = {"workspace": workspace, "user": user, "key": key}
    while True:
        now, token = database_now(), uuid4()
        turn: dict[str, Any] = {
            "fingerprint": fingerprint,
            "token": token,
            "leased_until": now + LEASE,
            "created_at": now,
            "status": None,
            "location": "",
            "body": "",
        }
        record, is_new = IdempotencyRecord.objects.get_or_create(**owner, defaults=turn)
        claim = Claim(record.pk, token)
        if is_new:
            return claim
        with transaction.atomic():
            held = IdempotencyRecord.objects.select_for_update().filter(pk=record.pk).first()
            if held is None:
                continue  # it was given up just now
            now = database_now()
            is_over = (
                held.leased_until < now
                if held.status is None
                else held.created_at < now - RETENTION
            )
            if not is_over:
                return _replayed_answer(held, fingerprint)
            IdempotencyRecord.objects.filter(pk=held.pk).update(**turn)
            return claim


def _replayed_answer(record: IdempotencyRecord, fingerprint: str) -> Answer:
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
def renew_lease(turn: Claim) -> Iterator[None]:
    """Renew the claim's lease while the block runs."""
    mine = _claimed_record(turn)
    seconds = LEASE.total_seconds() / 3
    with heartbeat(lambda: mine.update(leased_until=Now() + LEASE), seconds=seconds):
        yield


def store_answer(turn: Claim, answer: Answer) -> None:
    """Store the answer for repeated requests."""
    _claimed_record(turn).update(status=answer.status, body=answer.body, location=answer.location)


def release_claim(turn: Claim) -> None:
    """Release the claim, so that the next request with this key does the work."""
    _claimed_record(turn).delete()


def _claimed_record(turn: Claim) -> Any:
    return IdempotencyRecord.objects.filter(pk=turn.record_id, token=turn.token)


def prune_records() -> int:
    """Delete expired records; returns how many."""
    now = database_now()
    is_old = Q(created_at__lt=now - RETENTION)
    is_dead = Q(status=None, leased_until__lt=now)
    deleted, _ = IdempotencyRecord.objects.filter((is_old & ~Q(status=None)) | is_dead).delete()
    return deleted
