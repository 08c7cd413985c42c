"""Comparing a measurement with an earlier one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import RagsiteError
from search.evaluation.evaluate import Report
from search.evaluation.memory_measures import MemoryReport

TOLERANCE = 0.005
#: Times differ from machine to machine, and MRR tells nothing that these do not.
COMPARED = ("ndcg@", "recall@", "all@")


class BaselineError(RagsiteError):
    """A file that no measurement can be compared with; the message says why."""

    code = "baseline"


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one mode, then and now."""

    mode: str
    measure: str
    before: float
    after: float

    def fell(self, tolerance: float = TOLERANCE) -> bool:
        """Whether it is lower by more than `tolerance`."""
        return round(self.before - self.after, 6) > tolerance


def compare(report: Report | MemoryReport, path: Path) -> list[Change]:
    """Every measure of `report` beside that of the earlier run in `path`.

    Raises BaselineError for a file that is no such run, or one of other questions or modes.
    """
    earlier = _read(path)
    if (earlier.get("dataset"), earlier.get("queries")) != (report.dataset, report.queries):
        raise BaselineError(
            f"{path} measured {earlier.get('queries')} questions of {earlier.get('dataset')}, not"
            f" {report.queries} of {report.dataset}. Make a new baseline with --json."
        )
    changes = []
    for mode, values in report.modes.items():
        before = _measures(earlier, mode, path)
        named = [name for name in values if name.startswith(COMPARED) and name in before]
        if not named:
            raise BaselineError(
                f"{path} has no measure of mode {mode} in common with this run. Use the same -k."
            )
        changes += [Change(mode, name, before[name], values[name]) for name in named]
    return changes


def _read(path: Path) -> Mapping[str, Any]:
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{path} cannot be read ({error}). Make it with `manage.py evaluate … --json > {path}`."
        ) from error
    if not isinstance(earlier, dict) or not isinstance(earlier.get("modes"), dict):
        raise BaselineError(f"{path} is not what `manage.py evaluate … --json` prints.")
    return earlier


def _measures(earlier: Mapping[str, Any], mode: str, path: Path) -> dict[str, float]:
    measures = earlier["modes"].get(mode)
    if not isinstance(measures, dict):
        known = ", ".join(earlier["modes"])
        raise BaselineError(
            f"{path} does not measure mode {mode}. Name others with --mode: {known}."
        )
    return {name: value for name, value in measures.items() if isinstance(value, (int, float))}
