# ruff: noqa: N999 (the command's name; Django imports it by a string)
"""`manage.py import FILE --collection C`: an export put into a collection."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar
from documents.management.commands.ingest import run_report
from documents.transfer.format import STANDARD_STREAM, open_for_reading
from inference.interfaces import InferenceError

PARTIAL = 1
FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Put what `manage.py export` wrote into a collection, which is made when missing. Vectors"
        " of the same model are taken as they are, others made anew; documents that are there just"
        " so are skipped. Exit code: 0 all in, 1 some lines are broken or the file was cut off,"
        " 2 nothing could be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="- is standard input")
        parser.add_argument("--collection", required=True, help="slug")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        try:
            workspace = get_or_create_workspace(slug=options["workspace"])
            name = options["file"]
            quiet = options["json"] or not sys.stderr.isatty()
            with open_for_reading(name) as file, ProgressBar("documents", quiet=quiet) as bar:
                run = services.import_collection(
                    workspace=workspace,
                    slug=options["collection"],
                    file=file,
                    source="" if name == STANDARD_STREAM else Path(name).name,
                    on_progress=bar.show_run,
                )
        except (RagsiteError, InferenceError, OSError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        report = run_report(run, seconds=perf_counter() - started)
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self._print(report)
        if run.failed:
            sys.exit(PARTIAL)

    def _print(self, report: dict[str, Any]) -> None:
        documents, chunks = report["documents"], report["chunks"]
        for failure in report["failures"]:
            self.stderr.write(f"failed: {failure['name']}: {failure['reason']}")
        self.stdout.write(
            f"{report['collection']}: {documents['ready']} put in, {documents['skipped']}"
            f" unchanged, {documents['failed']} failed; {pluralized(chunks['ready'], 'chunk')}"
            f" searchable; {report['seconds']} s"
        )
