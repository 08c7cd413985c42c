"""What was measured and learnt, for a terminal."""

from collections.abc import Sequence

from rich.table import Table

from common.wording import counted
from search.evaluation.baseline import Change
from search.evaluation.evaluate import Report
from search.evaluation.learning import Learnt
from search.evaluation.memory_measures import MemoryReport


def report_table(report: Report) -> Table:
    """A row a mode."""
    title = (
        f"{report.dataset}: {counted(report.documents, 'document')},"
        f" {counted(report.chunks, 'chunk')},"
        f" {counted(report.queries, 'question')}"
    )
    if report.seconds_to_ingest is not None:
        title += f", ingested in {report.seconds_to_ingest} s"
    names = list(next(iter(report.modes.values())))
    table = Table("mode", title=title)
    for name in names:
        table.add_column(name, justify="right")
    for mode, values in report.modes.items():
        table.add_row(mode, *(f"{values[name]:g}" for name in names))
    return table


def memory_tables(report: MemoryReport, *, k: int) -> list[Table]:
    """Measures by ranking and category of question, and what a threshold of relevance leaves."""
    names = (f"ndcg@{k}", "recall@5", "recall@10")
    ranked = Table(
        "questions",
        "ranking",
        title=f"{report.dataset}: {report.turns} turns of {report.users} users,"
        f" {counted(report.queries, 'question')}, stored in {report.seconds_to_store} s",
    )
    for name in (*names, "p95_ms"):
        ranked.add_column(name, justify="right")
    for category, modes in {"all": report.modes, **report.categories}.items():
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
    for point in report.curve:
        curve.add_row(
            f"{point.threshold:g}",
            f"{point.recall_5:.4f}",
            f"{point.recall_injected:.4f}",
            f"{point.injected:.2f}",
            f"{point.injected_adversarial:.2f}",
            f"{point.injected_of_others:.2f}",
        )
    return [ranked, curve]


def change_table(changes: Sequence[Change], *, tolerance: float) -> Table:
    """A row a measure, what fell marked."""
    table = Table("mode", "measure", title=f"against the baseline, tolerance {tolerance:g}")
    for name in ("before", "now", "change"):
        table.add_column(name, justify="right")
    for change in changes:
        fell = change.fell(tolerance)
        table.add_row(
            change.mode,
            change.measure,
            f"{change.before:.4f}",
            f"{change.after:.4f}",
            f"{change.after - change.before:+.4f}" + (" fell" if fell else ""),
            style="red" if fell else None,
        )
    return table


def learnt_table(name: str, learnt: Learnt, *, k: int) -> Table:
    """What the learnt weights are worth beside the others."""
    table = Table("ranked by", title=f"{name}: learnt from {learnt.questions} judged questions")
    table.add_column(f"nDCG@{k}", justify="right")
    table.add_row("words alone", f"{learnt.words:.4f}")
    table.add_row("meaning alone", f"{learnt.meaning:.4f}")
    table.add_row("both, default weights", f"{learnt.untuned:.4f}")
    table.add_row("both, learnt weights, of questions not learnt from", f"{learnt.tuned:.4f}")
    return table


def learnt_sentences(learnt: Learnt) -> str:
    """The weights, and how sure the gain is."""
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
