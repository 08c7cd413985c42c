"""`manage.py recall`: filtered vector search against an exact scan, by selectivity."""

from argparse import ArgumentParser
from dataclasses import asdict

from rich.table import Table

from common.console import (
    PARTIAL,
    CommandOutput,
    Options,
    ServiceCommand,
    add_json_option,
    print_table,
)
from search.evaluation.benchmark import RecallCase, measure_recall

GOAL = 0.99


class Command(ServiceCommand):
    help = (
        "Make many chunks of the site's own vectors, perturbed, search them through filters that"
        " keep more and less of them, and compare with an exact scan. They are removed afterwards."
        " Exit code: 0 all is well, 1 a search returns too few hits or its recall@k is below"
        f" {GOAL}, 2 not measured."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunks", type=int, default=100_000)
        parser.add_argument("--queries", type=int, default=50)
        parser.add_argument("-k", "--k", type=int, default=10)
        add_json_option(parser)

    def run(self, options: Options) -> CommandOutput:
        k = options["k"]
        cases = measure_recall(
            chunks=options["chunks"],
            queries=options["queries"],
            k=k,
            on_progress=self.show_progress,
        )
        if not options["json"]:
            print_table(recall_table(cases, k))
        is_too_low = any(not case.is_complete(k) or case.recall < GOAL for case in cases)
        return CommandOutput(
            [{**asdict(case), "complete": case.is_complete(k)} for case in cases],
            code=PARTIAL if is_too_low else 0,
        )


def recall_table(cases: list[RecallCase], k: int) -> Table:
    """A row for each filter."""
    table = Table(title=f"vector search against an exact scan, the first {k}")
    for heading in ("filter", "chunks it keeps", "method", "hits, fewest", f"recall@{k}"):
        table.add_column(heading, justify="left" if heading in ("filter", "method") else "right")
    for heading in ("p50 ms", "p95 ms"):
        table.add_column(heading, justify="right")
    for case in cases:
        table.add_row(
            case.name,
            f"{case.matching:,}",
            case.method,
            str(case.fewest) if case.is_complete(k) else f"{case.fewest} (too few)",
            f"{case.recall:.3f}",
            f"{case.p50_ms:.1f}",
            f"{case.p95_ms:.1f}",
        )
    return table
