"""A request with a key of its caller's is done once, however often it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

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


def check_key(key: str) -> None:
    """Raise InvalidInput unless `key` is a valid Idempotency-Key."""
    if not key or len(key) > MAX_KEY_CHARACTERS or not key.isascii() or not key.isprintable():
        raise InvalidInput(
            gettext(
                "An Idempotency-Key has 1 to {limit} printable ASCII characters, such as a UUID."
            ).format(limit=MAX_KEY_CHARACTERS),
            field="Idempotency-Key",
        )


def claim_or_replay(
    *, user: Any, workspace: Workspace, key: str, fingerprint: str
) -> IdempotencyRecord:
    """The record with its stored answer, or without a `status`: that is the caller's to answer, of
    concurrent requests only one gets it.

    The claim is committed before this returns, unless the caller is in a transaction. Raises
    KeyReused for a key of another request, and KeyInUse while another request holds the claim.
    """
    owner = {"workspace": workspace, "user": user, "key": key}
    while True:
        now = database_now()
        turn: dict[str, Any] = {
            "fingerprint": fingerprint,
            "token": uuid4(),
            "leased_until": now + LEASE,
            "created_at": now,
            "status": None,
            "location": "",
            "body": "",
        }
        record, is_new = IdempotencyRecord.objects.get_or_create(**owner, defaults=turn)
        if is_new:
            return record
        with transaction.atomic():
            held = IdempotencyRecord.objects.select_for_update().filter(pk=record.pk).first()
            if held is None:
                continue  # it was given up just now
            now = database_now()
            is_open = held.status is None
            if held.leased_until < now if is_open else held.created_at < now - RETENTION:
                IdempotencyRecord.objects.filter(pk=held.pk).update(**turn)
                held.token, held.status = turn["token"], None
                return held
            if held.fingerprint != fingerprint:
                raise KeyReused(
                    gettext(
                        "This Idempotency-Key belongs to a request with another address or"
                        " body. Use a new key."
                    )
                )
            if is_open:
                raise KeyInUse(
                    gettext(
                        "The first request with this Idempotency-Key is still in progress."
                        " Send it again in a moment for its answer."
                    )
                )
            return held


@contextmanager
def renew_lease(turn: IdempotencyRecord) -> Iterator[None]:
    """Renew the claim's lease while the block runs."""
    mine = claimed(turn)
    seconds = LEASE.total_seconds() / 3
    with heartbeat(lambda: mine.update(leased_until=Now() + LEASE), seconds=seconds):
        yield


def claimed(turn: IdempotencyRecord) -> QuerySet[IdempotencyRecord]:
    """The claimed record, unless another request has taken it over: to be given an answer, or
    deleted so that the next request with this key does the work."""
    return IdempotencyRecord.objects.filter(pk=turn.pk, token=turn.token)


def prune_records() -> int:
    """Delete expired records; returns how many."""
    now = database_now()
    is_old = Q(created_at__lt=now - RETENTION)
    is_dead = Q(status=None, leased_until__lt=now)
    deleted, _ = IdempotencyRecord.objects.filter((is_old & ~Q(status=None)) | is_dead).delete()
    return deleted
