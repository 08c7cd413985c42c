"""`manage.py evaluate DIR`: how good retrieval is on a set with judgements."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table

from common.checks import SETTINGS
from common.errors import RagsiteError
from inference.base import InferenceError
from search.evaluation.dataset import DatasetError, load_dataset
from search.evaluation.evaluate import Report, evaluate
from search.results import MODES, Mode

FATAL = 2


def _modes(value: str) -> list[Mode]:
    wanted = value.split(",")
    unknown = [mode for mode in wanted if mode not in MODES]
    if unknown:
        raise ArgumentTypeError(f"there is no mode “{unknown[0]}”; use {', '.join(MODES)}")
    return [mode for mode in MODES if mode in wanted]


class Command(BaseCommand):
    # Checks of pages and URLs would take longer than many a run of this.
    requires_system_checks = [SETTINGS]

    help = (
        "Ingest DIR (corpus.jsonl, queries.jsonl, qrels.tsv) into a throw-away collection, ask"
        " its questions in every mode and print the measures side by side."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR")
        parser.add_argument("--mode", type=_modes, default=list(MODES), help=",".join(MODES))
        parser.add_argument("-k", "--k", type=int, default=10, help="depth of nDCG (default: 10)")
        parser.add_argument(
            "--scope-field", default="", help="search only documents that share this field"
        )
        parser.add_argument(
            "--keep", action="store_true", help="keep the collection and use it again next time"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = evaluate(
                load_dataset(options["directory"]),
                modes=options["mode"],
                k=options["k"],
                scope_field=options["scope_field"],
                keep=options["keep"],
                on_progress=self._progress,
            )
        except (DatasetError, RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            self.stdout.write(json.dumps(asdict(report), indent=2))
        else:
            Console().print(_table(report))

    def _progress(self, what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{what} {done}/{total}   ", ending="")


def _table(report: Report) -> Table:
    title = (
        f"{report.dataset}: {report.documents} documents, {report.chunks} chunks,"
        f" {report.queries} questions, ingested in {report.seconds_to_ingest} s"
    )
    table = Table(title=title)
    table.add_column("mode")
    names = list(next(iter(report.modes.values())))
    for name in names:
        table.add_column(name, justify="right")
    for mode, values in report.modes.items():
        table.add_row(mode, *(f"{values[name]:g}" for name in names))
    return table
