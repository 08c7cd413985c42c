"""`manage.py recall`: filtered vector search against an exact scan, by selectivity."""

from argparse import ArgumentParser

from common.console import (
    PARTIAL,
    CommandOutput,
    Options,
    ServiceCommand,
    add_json_option,
    print_table,
)
from search.evaluation.benchmark import measure_recall, recall_table

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
            print_table(recall_table(cases, k=k))
        is_too_low = any(not case["complete"] or case["recall"] < GOAL for case in cases)
        return CommandOutput(cases, code=PARTIAL if is_too_low else 0)
