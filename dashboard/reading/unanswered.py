"""Questions that nothing was found for, the same ones together."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.postgres.aggregates import BoolOr
from django.db.models import Count, Max
from django.db.models.functions import Lower, Trim

from accounts.models import Workspace
from accounts.services import can_edit
from dashboard.ranges import Range
from search.models import SearchLog


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question, how often it was asked in vain, by how many people, and when last. `refused`: a
    chat said that the sources do not say."""

    question: str
    times: int
    people: int
    refused: bool
    last_at: datetime


def unanswered(
    *, workspace: Workspace, user: Any, range: Range, most: int = 20
) -> tuple[list[Unanswered], int]:
    """The most frequent ones, and how many different ones there are.

    Editors see what everybody asked, others their own questions only.
    """
    log = SearchLog.objects.filter(workspace=workspace)
    if not can_edit(user=user, workspace=workspace):
        log = log.visible_to(user)
    rows = (
        log.found_nothing()
        .filter(created_at__gte=range.start, created_at__lt=range.end)
        .order_by()
        .annotate(same=Lower(Trim("query")))
        .values("same")
        .annotate(
            question=Max("query"),
            times=Count("id"),
            people=Count("user", distinct=True),
            refused=BoolOr("refused"),
            last_at=Max("created_at"),
        )
    )
    shown = rows.order_by("-times", "-last_at", "same")[: most + 1]
    found = [
        Unanswered(
            question=row["question"].strip(),
            times=row["times"],
            people=row["people"],
            refused=row["refused"],
            last_at=row["last_at"],
        )
        for row in shown
    ]
    return found[:most], len(found) if len(found) <= most else rows.count()
