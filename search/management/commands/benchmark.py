"""`manage.py benchmark`: how fast searches are, by size and mode."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.checks import SETTINGS
from common.console import print_table
from common.errors import InvalidInput, RagsiteError
from inference.interfaces import InferenceError
from search.evaluation.benchmark import SIZES, growth_sentence, measure_speed, speed_table
from search.evaluation.reports import print_progress
from search.query_options import MAX_K

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
            if min(options["chunks"]) < 1 or options["queries"] < 1:
                raise InvalidInput("--chunks and --queries must be at least 1.")
            if not 1 <= options["k"] <= MAX_K:
                raise InvalidInput(f"-k may be 1 to {MAX_K}.")
            measured = measure_speed(
                sizes=options["chunks"],
                queries=options["queries"],
                k=options["k"],
                on_progress=print_progress,
            )
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            self.stdout.write(json.dumps(measured, indent=2))
        else:
            print_table(speed_table(measured))
            if measured["growth"]:
                self.stdout.write(growth_sentence(measured["growth"]))
        if options["fail"] and not measured["is_held"]:
            sys.exit(EXCEEDED)
