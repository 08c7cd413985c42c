"""The buttons that judge a hit."""

from collections.abc import Mapping
from dataclasses import dataclass

from search.judging import Grade

GRADES: Mapping[int, str] = {Grade.PINNED: "Best", Grade.GOOD: "Good", Grade.BAD: "Bad"}
TAKEN_BACK = "none"


@dataclass(frozen=True, slots=True)
class GradeButton:
    """A grade to press; pressing the one that holds takes it back. `value` is what is sent."""

    label: str
    value: str
    pressed: bool


def grade_buttons(document_id: int, chunk_id: int, said: int | None) -> tuple[GradeButton, ...]:
    """Best, good, bad; `said` is the grade that the document has for the question."""
    return tuple(
        GradeButton(
            label=label,
            value=f"{document_id}.{chunk_id}.{TAKEN_BACK if said == grade else grade}",
            pressed=said == grade,
        )
        for grade, label in GRADES.items()
    )
