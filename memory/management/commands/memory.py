"""`manage.py memory`: one user's memory, and maintenance of all memories."""

import sys
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.console import print_output
from common.errors import RagsiteError
from inference.interfaces import InferenceError
from memory.management import actions as of_one
from memory.models import ExtractionItem
from memory.retrieval import MODES
from memory.scopes import LOCAL_USER

FATAL = 2
DEFAULT_LISTED = 50
ACTIONS = {
    "search": of_one.search_contexts,
    "facts": of_one.list_facts,
    "set": of_one.set_fact,
    "history": of_one.list_history,
    "forget": of_one.forget_rows,
    "export": of_one.export_user,
    "erase": of_one.erase_user,
    "usage": of_one.show_usage,
    "prune": of_one.prune_all,
    "embed": of_one.embed_all,
    "extractions": of_one.list_extractions,
}


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "What is remembered of a user: search it, look at its facts, change, export and erase it."
        " And of all users: prune, embed what waits, try again what extraction gave up. Exit code:"
        " 0 done, 1 some could not be embedded, 2 nothing was done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        printed = ArgumentParser(add_help=False)
        printed.add_argument("--json", action="store_true", help="print JSON")
        whose = ArgumentParser(add_help=False, parents=[printed])
        whose.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        whose.add_argument(
            "--user",
            default=None,
            help=f"whose memory (default: that of the only account, or else {LOCAL_USER})",
        )
        actions = parser.add_subparsers(dest="action", required=True)

        def add(name: str, meaning: str, *, of: ArgumentParser = whose) -> ArgumentParser:
            made: ArgumentParser = actions.add_parser(name, parents=[of], help=meaning)
            return made

        _add_search(add("search", "what was said that has to do with a question"))
        facts = add("facts", "everything held true")
        facts.add_argument("--as-of", type=datetime_option, help="what was held true then")
        setting = add("set", "a fact, from now on; what it was stays in the history")
        setting.add_argument("key")
        setting.add_argument("value")
        setting.add_argument("--at", type=datetime_option, help="since when it has been true")
        add("history", "all values that a fact ever had").add_argument("key")
        _add_forget(add("forget", "a fact with its history, or contexts"))
        exporting = add("export", "all of it as JSON Lines")
        exporting.add_argument(
            "-o",
            "--output",
            default="-",
            metavar="FILE",
            help="compressed where it ends in .gz; - (default) is standard output",
        )
        erasing = add("erase", "all of it, for good")
        erasing.add_argument("--yes", action="store_true", help="without it nothing is erased")
        add("usage", "how much it takes up of its quota")
        add("prune", "remove what exceeds the quotas, of all users", of=printed)
        add("embed", "embed what waits for it, of all users, here and now", of=printed)
        _add_extractions(add("extractions", "the queue of conversations", of=printed))

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


def _add_search(parser: ArgumentParser) -> None:
    parser.add_argument("query")
    parser.add_argument("-k", type=int, default=5, help="how many at most (default: 5)")
    parser.add_argument("--mode", choices=MODES, default="hybrid")
    parser.add_argument("--threshold", type=float, help="the least relevance, 0 to 1")
    parser.add_argument("--recency", type=float, help="how much it counts, 0 to 1")


def _add_forget(parser: ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("key", nargs="?", help="of a fact")
    what.add_argument("--question", help="contexts in which the user said exactly this")
    what.add_argument("--context", type=int, nargs="+", metavar="ID", help="these contexts")


def _add_extractions(parser: ArgumentParser) -> None:
    parser.add_argument("--workspace", help="slug (default: all)")
    parser.add_argument("--user", help="of this user only")
    parser.add_argument(
        "--state",
        choices=ExtractionItem.State.values,
        help="default: all in which something waits",
    )
    parser.add_argument("-n", type=int, default=DEFAULT_LISTED, help=f"how many ({DEFAULT_LISTED})")
    parser.add_argument(
        "--retry",
        type=int,
        nargs="*",
        metavar="ID",
        help="try these again that were given up, or all",
    )


def datetime_option(text: str) -> datetime:
    """Parse a time option; without a zone it is in the site's time zone."""
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise ArgumentTypeError("write a moment such as 2026-05-01T12:00 or 2026-05-01T12:00Z")
    return found if timezone.is_aware(found) else timezone.make_aware(found)
