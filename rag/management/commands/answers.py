"""`manage.py answers`: how good answers by quotation are on a set of judged questions."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.table import Table

from common.checks import SETTINGS
from common.errors import InvalidInput, RagsiteError
from common.showing import print_table
from common.wording import counted
from inference.base import InferenceError
from rag.management.measuring import AnswerReport, measure_answers
from search.evaluation.dataset import Dataset, DatasetError, load_dataset
from search.evaluation.evaluate import ingested
from search.results import MODES

FATAL = 2


class Command(BaseCommand):
    # Checks of pages and URLs would take longer than many a run of this.
    requires_system_checks = [SETTINGS]

    help = (
        "Answer the questions of DIR (corpus.jsonl, queries.jsonl, qrels.tsv) by quoting its"
        " corpus, which goes into a throw-away collection, and tell what is cited and what is"
        " refused. With --unanswerable also the questions of other sets, all of which should be"
        " refused. Exit code: 0 measured, 2 not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument(
            "--unanswerable",
            type=Path,
            metavar="DIR",
            action="append",
            default=[],
            help="a set of which the corpus knows nothing; may be given several times",
        )
        parser.add_argument("--mode", choices=MODES, default="hybrid")
        parser.add_argument(
            "--questions", type=int, metavar="N", help="of each set so many, always the same"
        )
        parser.add_argument(
            "--scope-field", default="", help="search only documents that share this field"
        )
        parser.add_argument("--keep", action="store_true", help="keep the collection")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["questions"] is not None and options["questions"] < 1:
                raise InvalidInput("--questions must be at least 1.")
            dataset, *foreign = (
                _some(load_dataset(directory), options["questions"])
                for directory in (options["directory"], *options["unanswerable"])
            )
            with ingested(dataset, keep=options["keep"], on_progress=self._progress) as made:
                report = measure_answers(
                    made[0],
                    dataset,
                    foreign=foreign,
                    mode=options["mode"],
                    k=settings.RAG_PASSAGES,
                    scope_field=options["scope_field"],
                    on_progress=self._progress,
                )
        except (DatasetError, RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report), indent=2))
        else:
            print_table(_table(report))

    def _progress(self, what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{what} {done}/{total}   ", ending="")


def _some(dataset: Dataset, most: int | None) -> Dataset:
    """The set with at most so many of its questions, from all over it."""
    count = len(dataset.queries)
    if most is None or count <= most:
        return dataset
    chosen = tuple(dataset.queries[place * count // most] for place in range(most))
    return replace(dataset, queries=chosen)


def _table(report: AnswerReport) -> Table:
    """A row a measure."""
    table = Table("measure", title=f"{report.dataset}: {counted(report.questions, 'question')}")
    table.add_column("value", justify="right")
    rows = {
        "first hit is relevant": report.recall_1,
        "first citation is relevant": report.cited_1,
        "some citation is relevant": report.cited,
        "quotations hold the answer": report.quoted,
        "refused": report.refused,
        **{f"refused of {name}": share for name, share in report.refused_foreign.items()},
        f"of {report.citations} citations resolve": report.resolved,
    }
    for name, value in rows.items():
        table.add_row(name, "unknown" if value is None else f"{value:.4f}")
    table.add_row("characters of an answer", f"{report.characters:g}")
    table.add_row("milliseconds, median", f"{report.p50_ms:g}")
    table.add_row("milliseconds, 95 %", f"{report.p95_ms:g}")
    return table
