"""`manage.py benchmark`: how fast searches are, by size and mode."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.checks import SETTINGS
from common.errors import InvalidInput, RagsiteError
from common.showing import print_table
from inference.base import InferenceError
from search.asked import MAX_K
from search.evaluation.benchmark import MOST_GROWTH, SIZES, Benchmark, measure_speed
from search.evaluation.speed_table import growth_sentence, speed_table

EXCEEDED = 1
FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Make many chunks of the site's own sentences and vectors, search them in every mode, and"
        " print how long the SQL alone, the service and a page with snippets take. They are"
        " removed afterwards. Exit code: 0 measured, 1 a bound was exceeded with --fail, 2 not"
        " measured."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--chunks", type=int, nargs="+", default=list(SIZES), metavar="N")
        parser.add_argument("--queries", type=int, default=60)
        parser.add_argument("-k", "--k", type=int, default=10, help="hits on a page")
        parser.add_argument("--json", action="store_true")
        parser.add_argument(
            "--fail", action="store_true", help="exit code 1 where a bound is exceeded"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            _check(options)
            measured = measure_speed(
                sizes=options["chunks"],
                queries=options["queries"],
                k=options["k"],
                on_progress=self._progress,
            )
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            self.stdout.write(json.dumps(_as_json(measured), indent=2))
        else:
            print_table(speed_table(measured))
            if measured.growth:
                self.stdout.write(growth_sentence(measured.growth))
        if options["fail"] and not measured.is_held:
            sys.exit(EXCEEDED)

    def _progress(self, what: str, done: int, total: int) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{what} {done:,}/{total:,}   ", ending="")


def _check(options: dict[str, Any]) -> None:
    if min(options["chunks"]) < 1 or options["queries"] < 1:
        raise InvalidInput("--chunks and --queries must be at least 1.")
    if not 1 <= options["k"] <= MAX_K:
        raise InvalidInput(f"-k may be 1 to {MAX_K}.")


def _as_json(measured: Benchmark) -> dict[str, Any]:
    growth = measured.growth
    return {
        "speeds": [
            {
                **asdict(speed),
                "times_bare": round(speed.times_bare, 3),
                "bound_ms": round(speed.bound_ms, 2),
                "is_held": speed.is_held,
            }
            for speed in measured.speeds
        ],
        "growth": growth and {**asdict(growth), "bound": MOST_GROWTH, "is_held": growth.is_held},
        "is_held": measured.is_held,
    }
