"""Quotas: of users and workspaces that hold more than they may, the oldest contexts go. Facts
never do, nor anything of somebody who is below an equal share of a workspace's."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from common.deadlocks import despite_deadlocks
from memory.models import Context, Pruning
from memory.scopes import UserScope
from memory.shares import equal_share

logger = logging.getLogger(__name__)

#: Contexts that one transaction removes: whoever stores meanwhile waits for no more.
BATCH = 1000
#: For how long it is told what was removed.
KEPT = timedelta(days=90)

# The newest one that does not fit: it goes, with all that is older.
_CUT = """
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
    """How much may be kept; None is no limit."""

    rows: int | None = None
    bytes: int | None = None

    @property
    def above(self) -> Q:
        """Sums of contexts that exceed them."""
        rows = Q(rows__gt=self.rows) if self.rows is not None else Q()
        return rows | Q(bytes__gt=self.bytes) if self.bytes is not None else rows


@dataclass(frozen=True, slots=True)
class _Cut:
    id: int
    at: datetime


def user_limits() -> Limits:
    """What each user may keep."""
    return _limits(settings.MEMORY_USER_ROWS, settings.MEMORY_USER_BYTES)


def workspace_limits() -> Limits:
    """What all users of a workspace may keep together."""
    return _limits(settings.MEMORY_WORKSPACE_ROWS, settings.MEMORY_WORKSPACE_BYTES)


def _limits(rows: int, size: int) -> Limits:
    """0 is no limit. Nor is less, which a check refuses: it must not empty all memories."""
    return Limits(max(rows, 0) or None, max(size, 0) or None)


def prune() -> list[Pruning]:
    """Remove what exceeds the quotas; tells of each user that lost something.

    Each batch is a transaction of its own, so this must not be called within one where others are
    to store meanwhile. Prunings older than KEPT are told no longer.
    """
    Pruning.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    done = list(_within_their_own(user_limits()))
    limits = workspace_limits()
    for workspace_id in _overfull_workspaces(limits):
        if limits.rows is not None:
            done += _shared_rows(workspace_id, limits.rows)
        if limits.bytes is not None:
            done += _shared_bytes(workspace_id, limits.bytes)
    return done


def _within_their_own(limits: Limits) -> Iterator[Pruning]:
    if not limits.above:
        return
    for user in _sums("workspace_id", "user_id").filter(limits.above):
        scope = UserScope(user["workspace_id"], user["user_id"])
        yield from _cut_down(scope, limits, Pruning.Reason.USER)


def _overfull_workspaces(limits: Limits) -> list[int]:
    if not limits.above:
        return []
    rows = _sums("workspace_id").filter(limits.above).order_by("workspace_id")
    return [row["workspace_id"] for row in rows]


def _shared_rows(workspace_id: int, room: int) -> Iterator[Pruning]:
    """Contexts are few enough that what is over counts: who spoke last may keep one more."""
    held = _sums("user_id").filter(workspace_id=workspace_id).annotate(last=Max("created_at"))
    users = sorted(held, key=lambda user: user["last"], reverse=True)
    share = equal_share([user["rows"] for user in users], room)
    if share is None:
        return
    spare = share.spare
    for user in users:
        if user["rows"] > share.level:
            limits = Limits(rows=share.level + (spare > 0))
            spare -= 1
            scope = UserScope(workspace_id, user["user_id"])
            yield from _cut_down(scope, limits, Pruning.Reason.WORKSPACE)


def _shared_bytes(workspace_id: int, room: int) -> Iterator[Pruning]:
    users = list(_sums("user_id").filter(workspace_id=workspace_id))
    share = equal_share([user["bytes"] for user in users], room)
    if share is None:
        return
    for user in users:
        if user["bytes"] > share.level:
            scope = UserScope(workspace_id, user["user_id"])
            yield from _cut_down(scope, Limits(bytes=share.level), Pruning.Reason.WORKSPACE)


def _sums(*by: str) -> QuerySet[Any, Any]:
    """Read from the index alone: neither texts nor vectors."""
    rows: QuerySet[Any, Any] = (
        Context.objects.order_by().values(*by).annotate(rows=Count("*"), bytes=Sum("size"))
    )
    return rows


# --- one user ------------------------------------------------------------------------------------


def _cut_down(scope: UserScope, limits: Limits, reason: str) -> Iterator[Pruning]:
    cut = _cut(scope, limits)
    if cut is None:
        return
    told: Pruning | None = None
    more = True
    while more:
        try:
            told, more = despite_deadlocks(partial(_remove, scope, cut, reason, told))
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


def _cut(scope: UserScope, limits: Limits) -> _Cut | None:
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "rows": limits.rows,
        "bytes": limits.bytes,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CUT, parameters)
        row = cursor.fetchone()
    return _Cut(*row) if row else None


@transaction.atomic
def _remove(
    scope: UserScope, cut: _Cut, reason: str, before: Pruning | None
) -> tuple[Pruning | None, bool]:
    """Remove a batch; what was removed with what was `before`, and whether there may be more.

    One that is said again meanwhile is not among the old any more: the lock looks again.
    """
    old = Context.objects.of(scope).filter(
        Q(created_at__lt=cut.at) | Q(created_at=cut.at, pk__lte=cut.id), created_at__lte=cut.at
    )
    locked = old.select_for_update().order_by("created_at", "pk")
    doomed = list(locked.values_list("pk", "size", "created_at")[:BATCH])
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
    return told, len(doomed) == BATCH
