"""Reports of evaluations for a terminal, and the comparison with an earlier run. Begin
with `report_table`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from common.errors import RagsiteError
from common.text import pluralized
from search.evaluation.learned_weights import LearnedWeights

TOLERANCE = 0.005
#: Times differ between machines, and MRR adds nothing to these.
COMPARED_MEASURES = ("ndcg@", "recall@", "all@")


class BaselineError(RagsiteError):
    """A baseline file that cannot be read or compared."""

    code = "baseline"


#: A report as `evaluate_collection` and `evaluate_memory` make it.
Report = dict[str, Any]
#: Mode, measure, and its value before and now.
MeasureChange = tuple[str, str, float, float]


def fell(change: MeasureChange, tolerance: float) -> bool:
    """Whether a measure dropped by more than `tolerance`."""
    _, _, before, now = change
    return round(before - now, 6) > tolerance


def compare_with_baseline(report: Report, path: Path) -> list[MeasureChange]:
    """Every measure of `report` with its value in the earlier run at `path`.

    Raises BaselineError for a file that is no such run, or a run of other questions or modes.
    """
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BaselineError(
            f"{path} cannot be read ({error}). Make it with `manage.py evaluate … --json > {path}`."
        ) from error
    if not isinstance(earlier, dict) or not isinstance(earlier.get("modes"), dict):
        raise BaselineError(f"{path} is not what `manage.py evaluate … --json` prints.")
    if (earlier.get("dataset"), earlier.get("queries")) != (report["dataset"], report["queries"]):
        raise BaselineError(
            f"{path} measured {earlier.get('queries')} questions of {earlier.get('dataset')}, not"
            f" {report['queries']} of {report['dataset']}. Make a new baseline with --json."
        )
    changes = []
    for mode, values in report["modes"].items():
        measures = earlier["modes"].get(mode)
        if not isinstance(measures, dict):
            known = ", ".join(earlier["modes"])
            raise BaselineError(
                f"{path} does not measure mode {mode}. Name others with --mode: {known}."
            )
        before = {
            name: value for name, value in measures.items() if isinstance(value, (int, float))
        }
        named = [name for name in values if name.startswith(COMPARED_MEASURES) and name in before]
        if not named:
            raise BaselineError(
                f"{path} has no measure of mode {mode} in common with this run. Use the same -k."
            )
        changes += [(mode, name, before[name], values[name]) for name in named]
    return changes


def report_table(report: Report) -> Table:
    """Measures with a row per mode."""
    title = (
        f"{report['dataset']}: {pluralized(report['documents'], 'document')},"
        f" {pluralized(report['chunks'], 'chunk')},"
        f" {pluralized(report['queries'], 'question')}"
    )
    if report["seconds_to_ingest"] is not None:
        title += f", ingested in {report['seconds_to_ingest']} s"
    names = list(next(iter(report["modes"].values())))
    table = Table("mode", title=title)
    for name in names:
        table.add_column(name, justify="right")
    for mode, values in report["modes"].items():
        table.add_row(mode, *(f"{values[name]:g}" for name in names))
    return table


def memory_tables(report: Report, *, k: int) -> list[Table]:
    """Measures by ranking and category, and the effect of relevance thresholds."""
    names = (f"ndcg@{k}", "recall@5", "recall@10")
    ranked = Table(
        "questions",
        "ranking",
        title=f"{report['dataset']}: {report['turns']} turns of {report['users']} users,"
        f" {pluralized(report['queries'], 'question')}, stored in {report['seconds_to_store']} s",
    )
    for name in (*names, "p95_ms"):
        ranked.add_column(name, justify="right")
    for category, modes in {"all": report["modes"], **report["categories"]}.items():
        for place, (mode, values) in enumerate(modes.items()):
            cells = [f"{values[name]:.4f}" for name in names]
            ranked.add_row(
                "" if place else category,
                mode,
                *cells,
                f"{values.get('p95_ms', ''):g}" if "p95_ms" in values else "",
                end_section=place == len(modes) - 1,
            )
    curve = Table(
        title="what a threshold of relevance leaves; injected: contexts a question, 3 at most"
    )
    for name in (
        "threshold",
        "recall@5",
        "recall injected",
        "injected",
        "adversarial",
        "of others",
    ):
        curve.add_column(name, justify="right")
    for point in report["curve"]:
        threshold, *recalls, own, adversarial, others = point.values()
        cells = [f"{recall:.4f}" for recall in recalls]
        injected = [f"{each:.2f}" for each in (own, adversarial, others)]
        curve.add_row(f"{threshold:g}", *cells, *injected)
    return [ranked, curve]


def change_table(changes: Sequence[MeasureChange], *, tolerance: float) -> Table:
    """A row per measure; regressions are marked."""
    table = Table("mode", "measure", title=f"against the baseline, tolerance {tolerance:g}")
    for name in ("before", "now", "change"):
        table.add_column(name, justify="right")
    for change in changes:
        mode, name, before, now = change
        is_worse = fell(change, tolerance)
        table.add_row(
            mode,
            name,
            f"{before:.4f}",
            f"{now:.4f}",
            f"{now - before:+.4f}" + (" fell" if is_worse else ""),
            style="red" if is_worse else None,
        )
    return table


def weights_table(name: str, learnt: LearnedWeights, *, k: int) -> Table:
    """nDCG of the learned weights beside the others."""
    table = Table("ranked by", title=f"{name}: learnt from {learnt.questions} judged questions")
    table.add_column(f"nDCG@{k}", justify="right")
    table.add_row("words alone", f"{learnt.words:.4f}")
    table.add_row("meaning alone", f"{learnt.meaning:.4f}")
    table.add_row("both, default weights", f"{learnt.untuned:.4f}")
    table.add_row("both, learnt weights, of questions not learnt from", f"{learnt.tuned:.4f}")
    return table


def weights_summary(learnt: LearnedWeights) -> str:
    """The weights, and the confidence interval of their gain."""
    pull = (
        f", less by {learnt.pull:g} for each 1.0 that the nearest passage is closer than usual"
        if learnt.pull
        else ""
    )
    low, high = learnt.interval
    return (
        f"Words {learnt.lexical:.2f}, meaning {1 - learnt.lexical:.2f}{pull}. Gain over the default"
        f" weights {learnt.gain:+.4f}; with 95 % confidence between {low:+.4f} and {high:+.4f}."
    )
