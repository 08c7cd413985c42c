"""Questions to tables whose answers are known. Begin with `evaluate`."""

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import Any, Literal

from common.errors import InvalidInput
from tables.asking import TableAnswer
from tables.execute import Result
from tables.questions.plan import Plan
from tables.sql.results import WrittenQuery

Outcome = Literal["right", "wrong", "unknown"]
_EXPECTATIONS = ("value", "values", "groups")


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with what came of it; `computed` says what was understood."""

    question: str
    outcome: Outcome
    computed: str
    found: str


def load_questions(path: Path) -> list[Mapping[str, Any]]:
    """The questions of a TOML file, or of `questions.toml` in a folder. Raises InvalidInput."""
    file = path / "questions.toml" if path.is_dir() else path
    try:
        questions = tomllib.loads(file.read_text()).get("questions", [])
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}") from error
    for each in questions:
        if "question" not in each or len(set(_EXPECTATIONS) & each.keys()) != 1:
            raise InvalidInput(
                f"Each of the [[questions]] in {file} needs `question` and one of"
                f" {', '.join(_EXPECTATIONS)}."
            )
    return list(questions)


def evaluate(
    questions: Sequence[Mapping[str, Any]], ask: Callable[[str], TableAnswer]
) -> list[AskedQuestion]:
    """Ask each question and compare: a number with `value`, the name of a row or group with it,
    names of rows with `values`, groups with `groups`."""
    asked = []
    for each in questions:
        answer = ask(each["question"])
        if answer.written is not None:
            outcome: Outcome = "right" if _is_right_query(each, answer.written) else "wrong"
            shown = " · ".join(" ".join(map(str, row)) for row in answer.written.rows[:5])
            asked.append(AskedQuestion(each["question"], outcome, answer.written.sql, shown))
            continue
        if answer.plan is None or answer.result is None:
            readings = " | ".join(plan.describe() for plan in answer.readings)
            asked.append(
                AskedQuestion(each["question"], "unknown", readings, ", ".join(answer.unknown))
            )
            continue
        found = _names(answer.plan, answer.result)
        outcome = "right" if _is_right(each, answer.plan, answer.result) else "wrong"
        shown = f"{answer.result.value} {', '.join(found)}".strip()
        asked.append(AskedQuestion(each["question"], outcome, answer.plan.describe(), shown))
    return asked


def counts(asked: Sequence[AskedQuestion]) -> dict[Outcome, int]:
    """How many were right, wrong and not known."""
    found = Counter(each.outcome for each in asked)
    outcomes: tuple[Outcome, ...] = ("right", "wrong", "unknown")
    return {outcome: found[outcome] for outcome in outcomes}


def _names(plan: Plan, result: Result) -> list[str]:
    """The names of the groups, else of the rows."""
    if result.groups:
        return [group.name for group in result.groups]
    if plan.label is None or plan.measure not in ("most", "least", "list"):
        return []
    return [row.cells[plan.label].strip() for row in result.rows]


def _is_right(expected: Mapping[str, Any], plan: Plan, result: Result) -> bool:
    names = _names(plan, result)
    if "groups" in expected:
        found = {group.name: group.value for group in result.groups}
        return found.keys() == expected["groups"].keys() and all(
            _is_close(found[name], value) for name, value in expected["groups"].items()
        )
    if "values" in expected:
        return set(names) == set(expected["values"])
    value = expected["value"]
    if isinstance(value, str):
        return names == [value] or str(result.value) == value
    number = result.value
    if plan.compared and isinstance(number, float):
        number = abs(number)
    return _is_close(number, value)


def _is_right_query(expected: Mapping[str, Any], written: WrittenQuery) -> bool:
    """By what was computed, not by the SQL: names are the first column, numbers the last one."""
    names = [row[0] for row in written.rows]
    numbers = [row[-1] for row in written.rows]
    if "groups" in expected:
        groups: Mapping[str, float] = expected["groups"]
        found = dict(zip(names, numbers, strict=True))
        return found.keys() == groups.keys() and all(
            _is_close(found[name], value) for name, value in groups.items()
        )
    if "values" in expected:
        return set(names) == set(expected["values"])
    value = expected["value"]
    if isinstance(value, str):
        return names == [value]
    return (
        len(numbers) == 1
        and isinstance(numbers[0], float)
        and _is_close(abs(numbers[0]), abs(value))
    )


def _is_close(found: object, expected: float) -> bool:
    return isinstance(found, float) and isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)
