"""`manage.py ingest PATH… --collection C`: files and directories into a collection."""

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
from documents.ingestion.sources import SourceError, discover
from documents.models import IngestionItem, IngestionRun
from documents.progress import Bar
from inference.base import InferenceError

PARTIAL = 1
FATAL = 2


class Command(BaseCommand):
    # Checks of pages and URLs would take longer than many a run of this.
    requires_system_checks = [SETTINGS]

    help = (
        "Ingest files and directories into a collection, which is made when missing. Exit code:"
        " 0 all ready, 1 some files failed, 2 nothing could be done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--collection", required=True, help="slug")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--glob", default="**/*", help="which files of a directory (default: **/*)"
        )
        parser.add_argument("--overwrite", action="store_true", help="ingest unchanged files again")
        parser.add_argument(
            "--queue", action="store_true", help="leave the work to the workers and return"
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        try:
            run = self._ingest(options)
        except (RagsiteError, SourceError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        report = run_report(run, seconds=perf_counter() - started)
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self._print(report)
        if run.failed:
            sys.exit(PARTIAL)

    def _ingest(self, options: dict[str, Any]) -> IngestionRun:
        for path in options["paths"]:
            if not path.exists():
                raise SourceError(f"{path} does not exist. Check the path.")
        workspace = get_or_create_workspace(slug=options["workspace"])
        collection = services.get_or_create_collection(
            workspace=workspace, slug=options["collection"]
        )
        policy = IngestionRun.Policy
        arguments: dict[str, Any] = {
            "collection": collection,
            "sources": discover(options["paths"], glob=options["glob"]),
            "policy": policy.OVERWRITE if options["overwrite"] else policy.SKIP_IF_UNCHANGED,
            "source": ", ".join(map(str, options["paths"])),
        }
        if options["queue"]:
            return services.ingest_sources(**arguments)
        with Bar("files", quiet=options["json"] or not sys.stderr.isatty()) as bar:
            return services.ingest_inline(**arguments, on_progress=bar.show_run)

    def _print(self, report: dict[str, Any]) -> None:
        documents, chunks = report["documents"], report["chunks"]
        for failure in report["failures"]:
            self.stderr.write(f"failed: {failure['name']}: {failure['reason']}")
        self.stdout.write(
            f"{report['collection']}: {documents['ready']} ready, {documents['skipped']} unchanged,"
            f" {documents['failed']} failed; {chunks['embedded']} chunks embedded,"
            f" {chunks['ready']} searchable; {report['seconds']} s ({report['state']})"
        )


def run_report(run: IngestionRun, *, seconds: float) -> dict[str, Any]:
    """What a program wants to know of a run. `chunks.ready` counts the whole collection."""
    failures = run.items.filter(state=IngestionItem.State.FAILED).order_by("name")
    return {
        "collection": run.collection.slug,
        "run": run.pk,
        "state": run.state,
        "documents": {
            "total": run.total,
            "ready": run.ready,
            "skipped": run.skipped,
            "failed": run.failed,
        },
        "chunks": {
            "ready": services.chunk_count(collection=run.collection),
            "embedded": run.embedded,
        },
        "tokens": run.tokens,
        "bytes": run.bytes,
        "failures": [
            {"name": item.name, "code": item.error_code, "reason": item.error} for item in failures
        ],
        "seconds": round(seconds, 3),
        "timings": run.timings,
    }
