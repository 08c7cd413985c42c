"""`manage.py sync DIRECTORY --collection C`: a collection made to agree with a directory."""

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
from documents import services
from documents.management.cli import INTERRUPTED_EXIT_CODE, CancelOnInterrupt, ProgressBar
from documents.management.commands.ingest import run_report
from documents.services import SyncResult
from inference.interfaces import InferenceError

PARTIAL = 1
FATAL = 2
CHATTY = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Ingest what is new or changed below a directory, move documents whose files were renamed"
        " and, with --delete, remove those whose files are gone. A directory that is missing or"
        " suddenly empty deletes nothing. Exit code: 0 in step, 1 some files failed, 2 nothing was"
        " done, 130 cancelled by Ctrl-C, which deletes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIRECTORY")
        parser.add_argument("--collection", required=True, help="slug; made when missing")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
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
            "--force", "--yes", action="store_true", help="delete even more than half of them"
        )
        parser.add_argument(
            "--json", action="store_true", help="print the result as JSON, with every name"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        self._interrupt = CancelOnInterrupt(self.stderr.write)
        try:
            result = self._sync(options)
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        except KeyboardInterrupt:  # before there was a run to cancel
            sys.exit(INTERRUPTED_EXIT_CODE)
        report = sync_report(result, seconds=perf_counter() - started)
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self._print(result, report, verbose=options["verbosity"] >= CHATTY)
        if self._interrupt.has_ended(result.run):
            sys.exit(INTERRUPTED_EXIT_CODE)
        if result.failed or (result.run is not None and result.run.failed):
            sys.exit(PARTIAL)

    def _sync(self, options: dict[str, Any]) -> SyncResult:
        workspace = get_or_create_workspace(slug=options["workspace"])
        collection = services.get_or_create_collection(
            workspace=workspace, slug=options["collection"]
        )
        quiet = options["json"] or options["dry_run"] or not sys.stderr.isatty()
        with self._interrupt, ProgressBar("files", quiet=quiet) as bar:
            result = services.sync_directory(
                collection=collection,
                directory=options["directory"],
                glob=options["glob"],
                delete=options["delete"],
                dry_run=options["dry_run"],
                queue=options["queue"],
                allow_empty=options["allow_empty"],
                force=options["force"],
                on_progress=self._interrupt.wrap_progress(bar.show_run),
            )
        if result.run is not None:
            result.run.refresh_from_db()
        return result

    def _print(self, result: SyncResult, report: dict[str, Any], *, verbose: bool) -> None:
        for what in ("new", "modified", *(("unchanged",) if verbose else ()), "deleted"):
            for name in report[what]:
                self.stdout.write(f"{what}: {name}")
        for before, after in result.renamed:
            self.stdout.write(f"renamed: {before} -> {after}")
        if result.run is not None:
            for failure in report["run"]["failures"]:
                self.stderr.write(f"failed: {failure['name']}: {failure['reason']}")
        else:
            for name in result.failed:
                self.stderr.write(f"failed: {name}: {result.reasons[name]}")
            for name in result.retried:
                self.stdout.write(f"failed, to be tried again: {name}: {result.reasons[name]}")
        counts = ", ".join(f"{count:,} {what}" for what, count in report["counts"].items())
        self.stdout.write(f"{counts}; {report['seconds']} s")
        if result.deleted and not result.deletions_applied:
            self.stdout.write(
                "The deleted ones are still in the collection: --delete removes them."
            )


def sync_report(result: SyncResult, *, seconds: float) -> dict[str, Any]:
    """A sync as a dictionary for `--json`."""
    names: dict[str, list[Any]] = {
        "new": list(result.new),
        "modified": list(result.modified),
        "unchanged": list(result.unchanged),
        "renamed": [{"from": before, "to": after} for before, after in result.renamed],
        "deleted": list(result.deleted),
        "failed": list(result.failed),
        "retried": list(result.retried),
    }
    return {
        "counts": {what: len(listed) for what, listed in names.items()},
        **names,
        "reasons": dict(result.reasons),
        "deletions_applied": result.deletions_applied,
        "run": None if result.run is None else run_report(result.run, seconds=seconds),
        "seconds": round(seconds, 3),
    }
