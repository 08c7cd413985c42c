# ruff: noqa: N999 (the command's name; Django imports it by a string)
"""`manage.py import FILE --collection C`: an export put into a collection."""

from argparse import ArgumentParser
from pathlib import Path
from time import perf_counter

from accounts.services import get_or_create_workspace
from common.console import PARTIAL, CommandOutput, Options, ServiceCommand
from common.json_lines import STANDARD_STREAM, open_for_reading
from common.text import pluralized
from documents import services
from documents.management.cli import ProgressBar, add_collection_options
from documents.management.commands.ingest import run_report, warning_lines


class Command(ServiceCommand):
    help = (
        "Put what `manage.py export` wrote into a collection, which is made when missing. Vectors"
        " of the same model are taken as they are, others made anew; documents that are there just"
        " so are skipped. Exit code: 0 all in, 1 some lines are broken or the file was cut off,"
        " 2 nothing could be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="- is standard input")
        add_collection_options(parser)

    def run(self, options: Options) -> CommandOutput:
        started = perf_counter()
        workspace = get_or_create_workspace(slug=options["workspace"])
        name = options["file"]
        quiet = options["json"]
        with open_for_reading(name) as file, ProgressBar("documents", quiet=quiet) as bar:
            run = services.import_collection(
                workspace=workspace,
                slug=options["collection"],
                file=file,
                source="" if name == STANDARD_STREAM else Path(name).name,
                on_progress=bar.show_run,
            )
        report = run_report(run, seconds=perf_counter() - started)
        documents, chunks = report["documents"], report["chunks"]
        line = (
            f"{report['collection']}: {documents['ready']} put in, {documents['skipped']}"
            f" unchanged, {documents['failed']} failed; {pluralized(chunks['ready'], 'chunk')}"
            f" searchable; {report['seconds']} s"
        )
        code = PARTIAL if run.failed else 0
        return CommandOutput(report, [line], warnings=warning_lines(report), code=code)
