"""`manage.py recall`: filtered vector search against an exact scan, by selectivity."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.table import Table

from common.checks import SETTINGS
from common.console import print_table
from common.errors import RagsiteError
from inference.interfaces import InferenceError
from search.evaluation.benchmark import RecallCase, measure_recall

TOO_LITTLE = 1
FATAL = 2
GOAL = 0.99


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

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
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        k = options["k"]
        try:
            cases = measure_recall(
                chunks=options["chunks"],
                queries=options["queries"],
                k=k,
                on_progress=self._progress,
            )
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            report = [{**asdict(case), "complete": case.is_complete(k)} for case in cases]
            self.stdout.write(json.dumps(report, indent=2))
        else:
            print_table(_table(cases, k))
        if any(not case.is_complete(k) or case.recall < GOAL for case in cases):
            sys.exit(TOO_LITTLE)

    def _progress(self, what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{what} {done:,}/{total:,}   ", ending="")


def _table(cases: list[RecallCase], k: int) -> Table:
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
