"""The command of `bench.site`: speed and recall of searches over a site's own documents."""

from argparse import ArgumentParser

from bench.synthetic import (
    SIZES,
    growth_sentence,
    measure_recall,
    measure_speed,
    recall_table,
    speed_table,
)
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand, print_table
from common.errors import InvalidInput
from search.query_options import MAX_K

#: Least recall.
GOAL = 0.99


class Command(ServiceCommand):
    help = (
        "Make many chunks of the site's own sentences and vectors and search them. They are removed"
        " afterwards. Exit code: 0 measured, 1 a bound was exceeded, 2 not measured."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = self.add_actions(parser)
        speed = add(
            "speed", self.speed, "search in every mode: SQL alone, the service, with snippets"
        )
        speed.add_argument("--chunks", type=int, nargs="+", default=list(SIZES), metavar="N")
        speed.add_argument("--queries", type=int, default=60)
        speed.add_argument(
            "--fail", action="store_true", help="exit code 1 where a bound is exceeded"
        )
        recall = add(
            "recall",
            self.recall,
            "search through filters that keep more and less, beside an exact scan; exit code 1:"
            f" too few hits, or a recall@k below {GOAL}",
        )
        recall.add_argument("--chunks", type=int, default=100_000)
        recall.add_argument("--queries", type=int, default=50)
        for action in (speed, recall):
            action.add_argument("-k", "--k", type=int, default=10, help="hits on a page")

    def speed(self, options: Options) -> CommandOutput:
        if min(options["chunks"]) < 1 or options["queries"] < 1:
            raise InvalidInput("--chunks and --queries must be at least 1.")
        if not 1 <= options["k"] <= MAX_K:
            raise InvalidInput(f"-k may be 1 to {MAX_K}.")
        measured = measure_speed(
            sizes=options["chunks"],
            queries=options["queries"],
            k=options["k"],
            on_progress=self.show_progress,
        )
        if not options["json"]:
            print_table(speed_table(measured))
        growth = measured["growth"]
        return CommandOutput(
            measured,
            [growth_sentence(growth)] if growth else [],
            code=PARTIAL if options["fail"] and not measured["is_held"] else 0,
        )

    def recall(self, options: Options) -> CommandOutput:
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
