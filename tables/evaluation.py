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
from tables.execute import MAX_ROWS, Result
from tables.questions.plan import Plan
from tables.sql.results import WrittenQuery

Outcome = Literal["right", "wrong", "unknown"]
_EXPECTATIONS = ("value", "values", "groups", "nothing")


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with what came of it; `computed` says what was understood. `has_right_rows` is
    None where the value is not right, or the question names no rows."""

    question: str
    kind: str
    outcome: Outcome
    computed: str
    found: str
    has_right_rows: bool | None = None


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
    the greater of two that are compared with its name, names of rows with `values`, groups with
    `groups`; with `nothing`, that nothing is computed.
    The rows that are shown are compared with `rows`, which count from 1."""
    return [_compared(each, ask(each["question"])) for each in questions]


def _compared(expected: Mapping[str, Any], answer: TableAnswer) -> AskedQuestion:
    question, kind = expected["question"], expected.get("kind", "")
    if (written := answer.written) is not None:
        is_right = "nothing" not in expected and _is_right_query(expected, written)
        shown = " · ".join(" ".join(map(str, row)) for row in written.rows[:5])
        return AskedQuestion(question, kind, "right" if is_right else "wrong", written.sql, shown)
    if answer.plan is None or answer.result is None:
        readings = " | ".join(plan.describe() for plan in answer.readings)
        outcome: Outcome = "right" if "nothing" in expected else "unknown"
        return AskedQuestion(question, kind, outcome, readings, ", ".join(answer.unknown))
    plan, result = answer.plan, answer.result
    is_right = "nothing" not in expected and _is_right(expected, plan, result)
    shown = f"{result.value} {', '.join(_names(plan, result))}".strip()
    has_right_rows = None
    if is_right and "rows" in expected:
        rows = {row.ordinal + 1 for row in result.rows}
        has_right_rows = rows <= set(expected["rows"])
        has_right_rows &= len(rows) == min(len(expected["rows"]), MAX_ROWS)
    return AskedQuestion(
        question, kind, "right" if is_right else "wrong", plan.describe(), shown, has_right_rows
    )


def counts(results: Sequence[AskedQuestion]) -> dict[Outcome, int]:
    """How many were right, wrong and not known."""
    found = Counter(each.outcome for each in results)
    outcomes: tuple[Outcome, ...] = ("right", "wrong", "unknown")
    return {outcome: found[outcome] for outcome in outcomes}


def by_kind(results: Sequence[AskedQuestion]) -> dict[str, list[AskedQuestion]]:
    """The questions of each kind that is named, in order of the names."""
    kinds = sorted({each.kind for each in results if each.kind})
    return {kind: [each for each in results if each.kind == kind] for kind in kinds}


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
    if isinstance(value, str) and plan.compared and len(result.groups) == 2:
        return max(result.groups, key=lambda each: float(each.value or 0)).name == value
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
