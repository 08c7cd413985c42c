"""`manage.py graph …`: looked at, written to and from files, merged, read from documents."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.console import print_output
from common.errors import RagsiteError
from graph.management import subcommands
from graph.reading.arguments import MAX_DEPTH, MAX_VERTICES
from graph.reading.steps import DIRECTIONS, GRAINS
from inference.interfaces import InferenceError

FATAL = 2
FORMATS = ("graphml", "json", "jsonl")
ACTIONS = {
    "stats": subcommands.stats,
    "find": subcommands.find_nodes,
    "show": subcommands.show_node,
    "neighbors": subcommands.neighbors,
    "path": subcommands.shortest_path,
    "merge": subcommands.merge_nodes,
    "import": subcommands.import_file,
    "export": subcommands.export_file,
    "extractions": subcommands.extraction_states,
    "extract": subcommands.extract_now,
    "reextract": subcommands.reextract,
}


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "The knowledge graph of a workspace: count it, look around in it, merge nodes, bring it"
        " from a file and write it to one, and have documents read for it. Exit code: 0 done, 1"
        " some documents still wait, 2 nothing was done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        common = ArgumentParser(add_help=False)
        common.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        common.add_argument("--json", action="store_true", help="print JSON")
        actions = parser.add_subparsers(dest="action", required=True)

        def add(name: str, meaning: str) -> ArgumentParser:
            made: ArgumentParser = actions.add_parser(name, parents=[common], help=meaning)
            return made

        add("stats", "how large it is, and of what it is made")
        finding = add("find", "nodes by the beginning of a name, or something like it")
        finding.add_argument("text")
        finding.add_argument("--label", action="append", help="with this label; may be repeated")
        finding.add_argument("-n", type=int, default=10, help="how many at most (default: 10)")
        add("show", "a node, document or passage").add_argument("id")
        near = add("neighbors", "what is related to a node")
        near.add_argument("id")
        _add_way(near)
        near.add_argument("-n", type=int, default=50, help="how many at most (default: 50)")
        path = add("path", "a shortest way between two nodes")
        path.add_argument("source")
        path.add_argument("target")
        _add_way(path)
        path.add_argument(
            "--max-depth",
            type=int,
            default=6,
            help=f"steps at most (default: 6, up to {MAX_DEPTH})",
        )
        merging = add("merge", "make nodes one; edges and mentions go to the one that is kept")
        merging.add_argument("keep", metavar="KEEP", help="id of the node that stays")
        merging.add_argument(
            "others", metavar="OTHER", nargs="+", help="ids of those that go into it"
        )
        merging.add_argument("--dry-run", action="store_true", help="only say what would be done")
        importing = add("import", "nodes and edges from a file of JSON Lines, all or none")
        importing.add_argument("file", metavar="FILE", help="- is standard input; .gz is read, too")
        importing.add_argument(
            "--lenient", action="store_true", help="make ends of edges that are not there"
        )
        importing.add_argument(
            "--replace-props", action="store_true", help="instead of adding to those that are there"
        )
        _add_export(add("export", "all of it, or what is around some nodes"))
        collection = add("extractions", "how far documents are read for the graph")
        collection.add_argument("--collection", help="slug (default: all)")
        waiting = add("extract", "read what waits, in this process")
        waiting.add_argument("--collection", help="slug (default: all)")
        again = add("reextract", "have documents read again, by the workers")
        again.add_argument("--collection", required=True, help="slug")
        again.add_argument(
            "--stale", action="store_true", help="only those read in another way than they would be"
        )

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            shown = ACTIONS[action](options)
        except (RagsiteError, InferenceError, OSError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        if action == "export":
            self.stderr.write(" ".join(shown.lines))
        else:
            print_output(shown, stream=self.stdout, as_json=options["json"])
        if shown.code:
            sys.exit(shown.code)


def _add_way(parser: ArgumentParser) -> None:
    parser.add_argument("--rel", action="append", help="only by this one; may be repeated")
    parser.add_argument("--direction", choices=DIRECTIONS, default="both")
    parser.add_argument(
        "--grain", choices=GRAINS, default="document", help="what mentions a node is shown as"
    )


def _add_export(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="graphml")
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="FILE",
        help="compressed where it ends in .gz; - (default) is standard output",
    )
    parser.add_argument("--around", nargs="+", metavar="ID", help="only what is around these nodes")
    parser.add_argument("--hops", type=int, default=1, help="steps from them (default: 1)")
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        help=f"nodes around them at most (default: 1000, up to {MAX_VERTICES:,})",
    )
    parser.add_argument(
        "--extracted", action="store_true", help="jsonl: also what documents tell, as if given"
    )
