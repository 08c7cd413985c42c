"""`manage.py graph …`: looked at, written to and from files, merged, read from documents."""

from argparse import ArgumentParser

from accounts.services import DEFAULT_WORKSPACE
from common.console import ServiceCommand
from common.json_lines import add_output_option
from common.options.commandline import add_options
from graph.management import subcommands
from graph.options import PathOptions, SubgraphOptions, WalkOptions
from graph.reading.steps import MAX_VERTICES

FORMATS = ("graphml", "json", "jsonl")


class Command(ServiceCommand):
    help = (
        "The knowledge graph of a workspace: count it, look around in it, merge nodes, bring it"
        " from a file and write it to one, and have documents read for it. Exit code: 0 done, 1"
        " some documents still wait, 2 nothing was done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        workspace = ArgumentParser(add_help=False)
        workspace.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        add = self.add_actions(parser, workspace)
        add("stats", subcommands.stats, "how large it is, and of what it is made")
        finding = add(
            "find", subcommands.find_nodes, "nodes by the beginning of a name, or something like it"
        )
        finding.add_argument("text")
        finding.add_argument("--label", action="append", help="with this label; may be repeated")
        finding.add_argument("-n", type=int, default=10, help="how many at most (default: 10)")
        add("show", subcommands.show_node, "a node, document or passage").add_argument("id")
        near = add("neighbors", subcommands.neighbors, "what is related to a node")
        near.add_argument("id")
        add_options(near, WalkOptions)
        near.add_argument("-n", type=int, default=50, help="how many at most (default: 50)")
        path = add("path", subcommands.shortest_path, "a shortest way between two nodes")
        path.add_argument("source")
        path.add_argument("target")
        add_options(path, PathOptions)
        merging = add(
            "merge",
            subcommands.merge_nodes,
            "make nodes one; edges and mentions go to the one that is kept",
        )
        merging.add_argument("keep", metavar="KEEP", help="id of the node that stays")
        merging.add_argument(
            "others", metavar="OTHER", nargs="+", help="ids of those that go into it"
        )
        merging.add_argument("--dry-run", action="store_true", help="only say what would be done")
        importing = add(
            "import",
            subcommands.import_file,
            "nodes and edges from a file of JSON Lines, all or none",
        )
        importing.add_argument("file", metavar="FILE", help="- is standard input; .gz is read, too")
        importing.add_argument(
            "--lenient", action="store_true", help="make ends of edges that are not there"
        )
        importing.add_argument(
            "--replace-props", action="store_true", help="instead of adding to those that are there"
        )
        _add_export(
            add("export", subcommands.export_file, "all of it, or what is around some nodes")
        )
        collection = add(
            "extractions", subcommands.extraction_states, "how far documents are read for the graph"
        )
        collection.add_argument("--collection", help="slug (default: all)")
        waiting = add("extract", subcommands.extract_now, "read what waits, in this process")
        waiting.add_argument("--collection", help="slug (default: all)")
        again = add("reextract", subcommands.reextract, "have documents read again, by the workers")
        again.add_argument("--collection", required=True, help="slug")
        again.add_argument(
            "--stale", action="store_true", help="only those read in another way than they would be"
        )


def _add_export(parser: ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="graphml")
    add_output_option(parser)
    parser.add_argument("--around", nargs="+", metavar="ID", help="only what is around these nodes")
    add_options(parser, SubgraphOptions, only={"hops"})
    parser.add_argument(
        "--limit",
        type=int,
        default=1000,
        help=f"nodes around them at most (default: 1000, up to {MAX_VERTICES:,})",
    )
    parser.add_argument(
        "--extracted", action="store_true", help="jsonl: also what documents tell, as if given"
    )
