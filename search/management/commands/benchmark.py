"""`manage.py benchmark`: how fast searches are, by size and mode."""

from argparse import ArgumentParser

from common.console import (
    PARTIAL,
    CommandOutput,
    Options,
    ServiceCommand,
    add_json_option,
    print_table,
)
from common.errors import InvalidInput
from search.evaluation.benchmark import SIZES, growth_sentence, measure_speed, speed_table
from search.query_options import MAX_K


class Command(ServiceCommand):
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
        add_json_option(parser)
        parser.add_argument(
            "--fail", action="store_true", help="exit code 1 where a bound is exceeded"
        )

    def run(self, options: Options) -> CommandOutput:
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
