"""`manage.py recall`: filtered vector search against an exact scan, by selectivity."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.checks import SETTINGS
from common.console import print_table
from common.errors import RagsiteError
from inference.interfaces import InferenceError
from search.evaluation.benchmark import measure_recall, recall_table
from search.evaluation.reports import print_progress

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
                on_progress=print_progress,
            )
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if options["json"]:
            self.stdout.write(json.dumps(cases, indent=2))
        else:
            print_table(recall_table(cases, k=k))
        if any(not case["complete"] or case["recall"] < GOAL for case in cases):
            sys.exit(TOO_LITTLE)
