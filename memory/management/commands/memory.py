"""`manage.py memory`: one user's memory, and maintenance of all memories."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from accounts.services import DEFAULT_WORKSPACE
from common.console import ServiceCommand
from common.json_lines import add_output_option
from common.options.commandline import add_options
from memory.management import actions
from memory.models import ExtractionItem
from memory.options import MemoryQuery
from memory.scopes import LOCAL_USER

DEFAULT_LISTED = 50


class Command(ServiceCommand):
    help = (
        "What is remembered of a user: search it, look at its facts, change, export and erase it."
        " And of all users: prune, embed what waits, try again what extraction gave up. Exit code:"
        " 0 done, 1 some could not be embedded, 2 nothing was done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        whose = ArgumentParser(add_help=False)
        whose.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        whose.add_argument(
            "--user",
            default=None,
            help="whose memory: a member's user name, or the id under which a program keeps it,"
            " behind id: to the letter (default: the workspace's first owner, or else"
            f" {LOCAL_USER})",
        )
        add = self.add_actions(parser, whose)
        _add_search(
            add("search", actions.search_contexts, "what was said that has to do with a question")
        )
        facts = add("facts", actions.list_facts, "everything held true")
        facts.add_argument("--as-of", type=datetime_option, help="what was held true then")
        setting = add(
            "set", actions.set_fact, "a fact, from now on; what it was stays in the history"
        )
        setting.add_argument("key")
        setting.add_argument("value")
        setting.add_argument("--at", type=datetime_option, help="since when it has been true")
        add("history", actions.list_history, "all values that a fact ever had").add_argument("key")
        _add_forget(add("forget", actions.forget_rows, "a fact with its history, or contexts"))
        exporting = add("export", actions.export_user, "all of it as JSON Lines")
        add_output_option(exporting)
        erasing = add("erase", actions.erase_user, "all of it, for good")
        erasing.add_argument("--yes", action="store_true", help="without it nothing is erased")
        add("usage", actions.show_usage, "how much it takes up of its quota")
        add(
            "prune",
            actions.prune_all,
            "remove what exceeds the quotas, of all users",
            is_shared=False,
        )
        add(
            "embed",
            actions.embed_all,
            "embed what waits for it, of all users, here and now",
            is_shared=False,
        )
        _add_extractions(
            add(
                "extractions",
                actions.list_extractions,
                "the queue of conversations",
                is_shared=False,
            )
        )


def _add_search(parser: ArgumentParser) -> None:
    parser.add_argument("q", metavar="query")
    add_options(parser, MemoryQuery, skip={"q"})


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
