"""`manage.py sync DIRECTORY --collection C`: a collection made to agree with a directory."""

from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from time import perf_counter
from typing import Any

from django.core.management.base import CommandError

from common.console import FATAL, INTERRUPTED, PARTIAL, CommandOutput, Options, ServiceCommand
from documents import services
from documents.management.cli import (
    CancelOnInterrupt,
    add_collection_options,
    existing_collection,
    get_or_create_collection,
    run_display,
)
from documents.management.commands.ingest import run_report, warning_lines
from documents.models import Collection
from documents.services import SyncRefused, SyncResult

CHATTY = 2


class Command(ServiceCommand):
    help = (
        "Ingest what is new or changed below a directory, move documents whose files were renamed"
        " and, with --delete, remove those whose files are gone. A directory that is missing or"
        " suddenly empty deletes nothing. Exit code: 0 in step, 1 some files failed, 2 nothing was"
        " done, 130 cancelled by Ctrl-C, which deletes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIRECTORY")
        add_collection_options(parser, "slug; made when missing")
        parser.add_argument(
            "--glob",
            default="**/*",
            help="which files; documents of others are left alone (default: **/*)",
        )
        parser.add_argument(
            "--delete", action="store_true", help="remove documents whose files are gone"
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument(
            "--queue", action="store_true", help="leave ingestion to the workers and return"
        )
        parser.add_argument(
            "--allow-empty", action="store_true", help="the directory is meant to hold no file"
        )
        parser.add_argument(
            "--allow-deletions", action="store_true", help="delete even more than half of them"
        )
        parser.add_argument("--force", "--yes", action="store_true", help=SUPPRESS)

    def run(self, options: Options) -> CommandOutput:
        started = perf_counter()
        if options["force"]:
            self.stderr.write("--force is called --allow-deletions now.")
        if options["dry_run"]:
            collection = existing_collection(options)
        else:
            collection = get_or_create_collection(options)
        interrupt = CancelOnInterrupt(self.stderr.write)
        if collection is None:
            result = services.plan_first_sync(
                slug=options["collection"], directory=options["directory"], glob=options["glob"]
            )
        else:
            result = self._sync(collection, options, interrupt)
        if result.run is not None:
            result.run.refresh_from_db()
        report = sync_report(result, seconds=perf_counter() - started)
        report["would_create_collection"] = collection is None
        code = 0
        if interrupt.has_ended(result.run):
            code = INTERRUPTED
        elif result.failed or (result.run is not None and result.run.failed):
            code = PARTIAL
        failed = [f"failed: {name}: {result.reasons[name]}" for name in result.failed]
        return CommandOutput(
            report,
            sync_lines(result, report, options),
            warnings=failed if result.run is None else warning_lines(report["run"]),
            code=code,
        )

    def _sync(
        self, collection: Collection, options: Options, interrupt: CancelOnInterrupt
    ) -> SyncResult:
        try:
            with interrupt, run_display(self.stderr.write, json=options["json"]) as display:
                return services.sync_directory(
                    collection=collection,
                    directory=options["directory"],
                    glob=options["glob"],
                    delete=options["delete"],
                    dry_run=options["dry_run"],
                    queue=options["queue"],
                    allow_empty=options["allow_empty"],
                    allow_deletions=options["allow_deletions"] or options["force"],
                    on_progress=interrupt.wrap_progress(display.show_run),
                )
        except SyncRefused as error:
            raise CommandError(
                f"{error.reason} Nothing was changed. --dry-run lists them."
                f" {permission_line(error)}",
                returncode=FATAL,
            ) from error


def permission_line(refused: SyncRefused) -> str:
    """How to allow what was refused."""
    return f"If this is intended: --{refused.option.replace('_', '-')}."


def sync_lines(result: SyncResult, report: dict[str, Any], options: Options) -> list[str]:
    """What was found, a line each, the counts, and what was not done."""
    is_verbose = options["verbosity"] >= CHATTY
    shown = ("new", "modified", *(("unchanged",) if is_verbose else ()), "deleted")
    lines = [f"{what}: {name}" for what in shown for name in report[what]]
    lines += [f"renamed: {before} -> {after}" for before, after in result.renamed]
    if result.run is None:
        lines += [
            f"failed, to be tried again: {name}: {result.reasons[name]}" for name in result.retried
        ]
    counts = ", ".join(f"{count:,} {what}" for what, count in report["counts"].items())
    lines.append(f"{counts}; {report['seconds']} s")
    if result.deleted and not options["delete"]:
        lines.append("The deleted ones stay in the collection: --delete removes them.")
    if report["would_create_collection"]:
        lines.append(f"Without --dry-run the collection “{options['collection']}” is created.")
    if options["dry_run"]:
        lines.append("Nothing was changed: this was a dry run.")
    if result.refused:
        lines.append(
            f"Without --dry-run this is refused: {result.refused.reason}"
            f" {permission_line(result.refused)}"
        )
    return lines


def sync_report(result: SyncResult, *, seconds: float) -> dict[str, Any]:
    """A sync as a dictionary for `--json`."""
    names: dict[str, list[Any]] = {
        "new": result.new,
        "modified": result.modified,
        "unchanged": result.unchanged,
        "renamed": [{"from": before, "to": after} for before, after in result.renamed],
        "deleted": result.deleted,
        "failed": result.failed,
        "retried": result.retried,
    }
    return {
        "counts": {what: len(listed) for what, listed in names.items()},
        **names,
        "reasons": result.reasons,
        "deletions_applied": result.deletions_applied,
        "refused": result.refused
        and {"reason": result.refused.reason, "option": result.refused.option},
        "run": None if result.run is None else run_report(result.run, seconds=seconds),
        "seconds": round(seconds, 3),
    }
