"""How much is kept of a user, of how much that may be, and the pruning of what is beyond."""

from dataclasses import dataclass

from django.conf import settings
from django.db.models import Count, Sum

from memory import quotas
from memory.models import Context, Fact, Pruning
from memory.scopes import UserScope

#: Of what was removed, the latest are told.
TOLD = 10


@dataclass(frozen=True, slots=True)
class Usage:
    """Contexts, their bytes, and facts with their history; of how many. None is no limit.

    `prunings` are the latest first.
    """

    rows: int = 0
    bytes: int = 0
    facts: int = 0
    max_rows: int | None = None
    max_bytes: int | None = None
    max_facts: int | None = None
    prunings: tuple[Pruning, ...] = ()


def usage(*, scope: UserScope | None) -> Usage:
    """What this user takes up of the quota. The workspace's may leave less."""
    limits = quotas.user_limits()
    held = Context.objects.of(scope).aggregate(rows=Count("*"), bytes=Sum("size"))
    return Usage(
        rows=held["rows"],
        bytes=held["bytes"] or 0,
        facts=Fact.objects.of(scope).count(),
        max_rows=limits.rows,
        max_bytes=limits.bytes,
        max_facts=settings.MEMORY_MAX_FACTS,
        prunings=tuple(Pruning.objects.of(scope)[:TOLD]),
    )


def prune() -> list[Pruning]:
    """Remove what exceeds the quotas, the oldest contexts first; what was removed of whom.

    Nobody who holds no more than an equal share of the workspace's loses anything to it. Facts are
    never removed.
    """
    return quotas.prune()
