"""`manage.py pipelines …`: pipelines and templates listed, shown, checked and run."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.showing import show
from inference.base import InferenceError

FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Pipelines of a workspace and templates: list, show, check and run them. Exit code: 0 done,"
        " 1 the run failed, 2 nothing was done, 3 the definition has faults."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        printed = ArgumentParser(add_help=False)
        printed.add_argument("--json", action="store_true", help="print JSON")
        whose = ArgumentParser(add_help=False, parents=[printed])
        whose.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        whose.add_argument("--user", default="", help="on whose behalf (default: its first owner)")
        actions = parser.add_subparsers(dest="action", required=True)

        def add(name: str, meaning: str, *, of: ArgumentParser = whose) -> ArgumentParser:
            made: ArgumentParser = actions.add_parser(name, parents=[of], help=meaning)
            return made

        add("list", "the workspace's own, then templates")
        add("templates", "those that come with the site", of=printed)
        add("show", "one as JSON").add_argument("id")
        checking = add("validate", "tell everything that is wrong with a definition", of=printed)
        checking.add_argument("file", type=Path)
        running = add("run", "ask one of them")
        running.add_argument("id", help="or a file that ends in .json")
        running.add_argument("question")
        running.add_argument("--model", default="", help="for nodes that name none")
        running.add_argument("--system-prompt", default="", help="what you demand of the answer")
        running.add_argument(
            "--language", default="", help="of the answer: German, de, or of code Python"
        )
        running.add_argument(
            "--collection", action="append", metavar="SLUG", help="look nowhere else; repeatable"
        )

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        from rag.management import pipelines as actions  # noqa: PLC0415 (it takes a moment)

        does = {
            "list": actions.list_all,
            "templates": actions.templates,
            "show": actions.show_one,
            "validate": actions.validate,
            "run": actions.run,
        }[action]
        try:
            shown = does(options)
        except (RagsiteError, InferenceError, OSError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        show(shown, to=self.stdout, as_json=options["json"])
        if shown.code:
            sys.exit(shown.code)
