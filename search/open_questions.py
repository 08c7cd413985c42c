"""Questions that a curator should look at: those that nothing, or nothing near, was found for.

What counts as near is told by docs/decisions/0040.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Literal

from django.db import connection
from django.utils import timezone

from common.answerability import needed_nearness
from documents.calibration import Scale, scale_of
from documents.models import EmbeddingSpace
from search.judging import question_key
from search.models import Judgement

Reason = Literal["nothing", "refused", "far"]
REASONS: tuple[Reason, ...] = ("nothing", "refused", "far")
#: The newest searches that are looked at: a list must not grow slow with the log.
LOOKED_AT = 20_000
#: What is asked by the same person so soon after is taken for another try.
SOON = timedelta(minutes=5)

#: Where the passage may hold half of the question's words, of which some were found.
WITH_WORDS = needed_nearness(background=0.1, coverage=0.5)
#: Where none of them was found: what a usual answer in other words has.
WITHOUT_WORDS = 1.0


@dataclass(frozen=True, slots=True)
class Floor:
    """Similarities of a space below which a best hit is far: with words of the question found
    anywhere, and without."""

    space_id: int
    with_words: float
    without_words: float


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question as it was asked last, and how it went.

    `asked` counts all times, `people` those who are known, and `reasons` how often nothing was
    found, a chat refused to answer, or the best hit was far. `again` is what the same people
    searched for next; `judged` says how many documents were judged for it.
    """

    question: str
    workspace_id: int
    log_id: int
    asked: int
    people: int
    reasons: dict[Reason, int]
    similarity: float | None
    last_at: datetime
    again: tuple[str, ...] = field(default=())
    judged: int = 0


def floors() -> list[Floor]:
    """Of each space that searches ask and whose model knows meaning."""
    spaces = EmbeddingSpace.objects.filter(collections__isnull=False).distinct()
    return [floor_of(space.pk, scale) for space in spaces if (scale := scale_of(space))]


def floor_of(space_id: int, scale: Scale) -> Floor:
    """What the scale of its model makes of the two bounds."""
    room = scale.related - scale.unrelated
    return Floor(
        space_id, scale.unrelated + WITH_WORDS * room, scale.unrelated + WITHOUT_WORDS * room
    )


def open_questions(
    *,
    workspace_id: int | None = None,
    days: float = 30,
    reason: Reason | None = None,
    words: str = "",
    limit: int = 50,
    offset: int = 0,
    known: Sequence[Floor] | None = None,
) -> list[OpenQuestion]:
    """Questions of the last `days` that went badly the last time they were asked, those first that
    are asked most.

    `workspace_id` None is every workspace: for the site's curators alone. `reason` names one thing
    that went wrong, `words` a part of the question. Questions that differ in case and spaces are
    one. `known` is what is far in each space, by default what its model says. Where the model did
    not work, nothing is said about nearness.
    """
    known = floors() if known is None else known
    parameters = {
        "workspace": workspace_id,
        "since": timezone.now() - timedelta(days=days),
        "looked_at": LOOKED_AT,
        "spaces": [each.space_id for each in known],
        "with_words": [each.with_words for each in known],
        "without_words": [each.without_words for each in known],
        "reason": reason,
        "words": "%" + words.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_") + "%",
        "limit": limit,
        "offset": offset,
    }
    rows = _rows("open_questions", parameters)
    again = _again([row["log_ids"] for row in rows])
    judged = _judged(rows)
    return [
        OpenQuestion(
            question=row["question"],
            workspace_id=row["workspace_id"],
            log_id=row["log_ids"][0],
            asked=row["asked"],
            people=row["people"],
            reasons={name: row[name] for name in REASONS if row[name]},
            similarity=row["similarity"],
            last_at=row["last_at"],
            again=again.get(row["log_ids"][0], ()),
            judged=judged.get((row["workspace_id"], row["question"]), 0),
        )
        for row in rows
    ]


def _again(groups: Sequence[Sequence[int]]) -> dict[int, tuple[str, ...]]:
    """By the first id of each group: what was asked next by those who asked."""
    firsts = [group[0] for group in groups for _ in group]
    parameters = {
        "firsts": firsts,
        "ids": [pk for group in groups for pk in group],
        "soon": SOON,
    }
    found: dict[int, tuple[str, ...]] = {}
    for row in _rows("searched_again", parameters) if firsts else []:
        found[row["first"]] = tuple(row["questions"])
    return found


def _judged(rows: Sequence[dict[str, Any]]) -> dict[tuple[int, str], int]:
    """How many documents were judged for each question."""
    keys = {(row["workspace_id"], question_key(row["question"])): row for row in rows}
    hashes = [sha256 for _, sha256 in keys]
    counted: dict[tuple[int, str], int] = {}
    found = Judgement.objects.filter(question_sha256__in=hashes)
    for owner, sha256 in found.values_list("workspace_id", "question_sha256"):
        if (row := keys.get((owner, sha256))) is not None:
            place = (owner, row["question"])
            counted[place] = counted.get(place, 0) + 1
    return counted


def _rows(name: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_sql(name), parameters)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


@cache
def _sql(name: str) -> str:
    return (Path(__file__).parent / "sql" / f"{name}.sql").read_text()
