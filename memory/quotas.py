"""Quotas: where a user or workspace exceeds its limits, the oldest contexts are pruned.

Facts are never pruned, nor anything of a user below a fair share of the workspace's quota.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Self

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from common.leases import retry_on_deadlock
from memory.models import Context, Pruning
from memory.scopes import UserScope


def max_min_fair_share(demands: Sequence[int], room: int) -> tuple[int, int] | None:
    """Max-min fair share: the highest limit for users above it, so that all fits into `room`, and
    how many of them may keep one more, because limits are whole numbers.

    Users at or below the limit keep everything, and what they leave is shared by the others. None
    where everything fits.
    """
    left = room
    ascending = sorted(demands)
    for place, amount in enumerate(ascending):
        others = len(ascending) - place
        if amount * others > left:
            return divmod(max(left, 0), others)
        left -= amount
    return None


logger = logging.getLogger(__name__)

#: Contexts deleted in one transaction, so that concurrent writers wait only briefly.
BATCH_ROWS = 1000
#: How long records of prunings are kept.
PRUNING_RETENTION = timedelta(days=90)

# The newest context that does not fit: it is deleted with all older ones.
_CUT_QUERY = """
    SELECT id, created_at
    FROM (
        SELECT id, created_at, row_number() OVER newest AS rows, sum(size) OVER newest AS bytes
        FROM memory_context
        WHERE workspace_id = %(workspace)s AND user_id = %(user)s
        WINDOW newest AS (ORDER BY created_at DESC, id DESC ROWS UNBOUNDED PRECEDING)
    ) AS held
    WHERE rows > %(rows)s OR bytes > %(bytes)s
    ORDER BY created_at DESC, id DESC
    LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of rows and bytes; None is no limit."""

    rows: int | None = None
    bytes: int | None = None

    @classmethod
    def of_user(cls) -> Self:
        """Those of a single user."""
        return cls._of_settings(settings.MEMORY_USER_ROWS, settings.MEMORY_USER_BYTES)

    @classmethod
    def of_workspace(cls) -> Self:
        """Those of all users of a workspace together."""
        return cls._of_settings(settings.MEMORY_WORKSPACE_ROWS, settings.MEMORY_WORKSPACE_BYTES)

    @classmethod
    def _of_settings(cls, rows: int, size: int) -> Self:
        """0 is no limit, and so are negative values, which a check rejects: they must not delete
        memories."""
        return cls(max(rows, 0) or None, max(size, 0) or None)

    @property
    def above(self) -> Q:
        """Condition: sums of contexts that exceed the limits."""
        rows = Q(rows__gt=self.rows) if self.rows is not None else Q()
        return rows | Q(bytes__gt=self.bytes) if self.bytes is not None else rows


def prune_to_quotas() -> list[Pruning]:
    """Delete the oldest contexts beyond the quotas; returns a Pruning for each affected user.

    Users below a fair share of the workspace's quota lose nothing to it. Each batch is a
    transaction of its own, so call this outside of one. Prunings older than PRUNING_RETENTION are
    deleted.
    """
    Pruning.objects.filter(created_at__lt=timezone.now() - PRUNING_RETENTION).delete()
    done: list[Pruning] = []
    limits = Limits.of_user()
    if limits.above:
        for user in _sums("workspace_id", "user_id").filter(limits.above):
            scope = UserScope(user["workspace_id"], user["user_id"])
            done += _prune_user(scope, limits, Pruning.Reason.USER)
    limits = Limits.of_workspace()
    over = _sums("workspace_id").filter(limits.above).order_by("workspace_id")
    for workspace_id in [row["workspace_id"] for row in over] if limits.above else []:
        for unit, room in (("rows", limits.rows), ("bytes", limits.bytes)):
            if room is not None:
                done += _prune_shared(workspace_id, unit, room)
    return done


def _prune_shared(workspace_id: int, unit: str, room: int) -> Iterator[Pruning]:
    """Limits of rows are so low that the remainder counts: the users with the latest contexts may
    keep one more.
    """
    held = _sums("user_id").filter(workspace_id=workspace_id).annotate(last=Max("created_at"))
    users = sorted(held, key=lambda user: user["last"], reverse=True)
    share = max_min_fair_share([user[unit] for user in users], room)
    if share is None:
        return
    level, spare = share
    for user in users:
        if user[unit] > level:
            limits = Limits(**{unit: level + (spare > 0)})
            spare -= 1
            scope = UserScope(workspace_id, user["user_id"])
            yield from _prune_user(scope, limits, Pruning.Reason.WORKSPACE)


def _sums(*by: str) -> QuerySet[Any, Any]:
    """Read from an index alone: neither texts nor vectors."""
    rows: QuerySet[Any, Any] = (
        Context.objects.order_by().values(*by).annotate(rows=Count("*"), bytes=Sum("size"))
    )
    return rows


def _prune_user(scope: UserScope, limits: Limits, reason: str) -> Iterator[Pruning]:
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "rows": limits.rows,
        "bytes": limits.bytes,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CUT_QUERY, parameters)
        cut = cursor.fetchone()
    if cut is None:
        return
    told: Pruning | None = None
    more = True
    while more:
        try:
            told, more = retry_on_deadlock(partial(_remove, scope, cut, reason, told))
        except IntegrityError:
            # A fact was learnt from one of them just now. It is not lost: the next time it is
            # parted from its source.
            more = False
    if told is not None:
        logger.info(
            "pruning %d: %d contexts, %d bytes removed for %s",
            told.pk,
            told.rows,
            told.bytes,
            told.get_reason_display(),
        )
        yield told


@transaction.atomic
def _remove(
    scope: UserScope, cut: tuple[int, datetime], reason: str, before: Pruning | None
) -> tuple[Pruning | None, bool]:
    """Delete a batch up to `cut`, the id and time of the newest; returns the total together with
    `before`, and whether there may be more.

    A context that was said again meanwhile is not old any more: the lock checks again.
    """
    last, at = cut
    old = Context.objects.of(scope).filter(
        Q(created_at__lt=at) | Q(created_at=at, pk__lte=last), created_at__lte=at
    )
    locked = old.select_for_update().order_by("created_at", "pk")
    doomed = list(locked.values_list("pk", "size", "created_at")[:BATCH_ROWS])
    if not doomed:
        return before, False
    ids, sizes, moments = zip(*doomed, strict=True)
    # Through Django, which parts facts from their source; without reading texts.
    Context.objects.filter(pk__in=ids).only("pk").delete()
    told = Pruning(
        pk=before.pk if before else None,
        workspace_id=scope.workspace_id,
        user_id=scope.user_id,
        reason=reason,
        rows=len(ids) + (before.rows if before else 0),
        bytes=sum(sizes) + (before.bytes if before else 0),
        until=max(moments),
    )
    told.save()
    return told, len(doomed) == BATCH_ROWS
