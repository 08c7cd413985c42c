"""`manage.py ingest PATH… --collection C`: files, directories and pages into a collection."""

from argparse import ArgumentParser
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import Any

from django.core.management.base import CommandError

from common.console import INTERRUPTED, PARTIAL, CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents import services
from documents.ingestion.sources import NothingFoundError, SourceError, discover_any
from documents.ingestion.web_pages import web_sources
from documents.management.cli import (
    CancelOnInterrupt,
    add_collection_options,
    get_or_create_collection,
    run_display,
)
from documents.models import IngestionItem, IngestionRun


class Command(ServiceCommand):
    help = (
        "Ingest files and directories into a collection, which is made when missing. Exit code:"
        " 0 all ready, 1 some files failed or none was found, 2 nothing could be done, 130"
        " cancelled by Ctrl-C."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths",
            nargs="+",
            metavar="PATH",
            help="a file, a directory, or the address of a page (https://…)",
        )
        add_collection_options(parser)
        parser.add_argument(
            "--glob", default="**/*", help="which files of a directory (default: **/*)"
        )
        policy = parser.add_mutually_exclusive_group()
        policy.add_argument("--overwrite", action="store_true", help="ingest unchanged files again")
        policy.add_argument(
            "--new-version",
            action="store_true",
            help="keep the text before of changed files as a version: read, and not searched",
        )
        parser.add_argument(
            "--store-once",
            action="store_true",
            help="make a file with the bytes of another one a link to it",
        )
        parser.add_argument(
            "--access",
            action="append",
            metavar="WHO",
            help="who alone may see the new documents: user:7, a user name or email address,"
            " group:3 or the name of a group; may be given several times. Those that are there keep"
            " their own lists (default: all members)",
        )
        parser.add_argument(
            "--queue", action="store_true", help="leave the work to the workers and return"
        )
        parser.add_argument(
            "--suspend-index",
            action="store_true",
            help="build the vector index anew at the end: faster for very many files, and searches"
            " are slow until then",
        )

    def run(self, options: Options) -> CommandOutput:
        started = perf_counter()
        interrupt = CancelOnInterrupt(self.stderr.write)
        try:
            run = ingest_paths(options, interrupt, say=self.stderr.write)
        except NothingFoundError as error:
            raise CommandError(str(error), returncode=PARTIAL) from error
        report = run_report(run, seconds=perf_counter() - started)
        documents, chunks = report["documents"], report["chunks"]
        cancelled = f", {documents['cancelled']} cancelled" if documents["cancelled"] else ""
        line = (
            f"{report['collection']}: {documents['ready']} ready, {documents['skipped']} unchanged,"
            f" {documents['failed']} failed{cancelled}; {pluralized(chunks['embedded'], 'chunk')}"
            f" embedded, {chunks['ready']} searchable; {report['seconds']} s ({report['state']})"
        )
        code = PARTIAL if run.failed or run.cancelled else 0
        return CommandOutput(
            report,
            [line],
            warnings=[
                *warning_lines(report),
                *(f"duplicate: {each['name']} of {each['of']}" for each in report["duplicates"]),
            ],
            code=INTERRUPTED if interrupt.has_ended(run) else code,
        )


def ingest_paths(
    options: Options, interrupt: CancelOnInterrupt, *, say: Callable[[str], Any]
) -> IngestionRun:
    """The run that reads the named files and pages, finished unless it is queued."""
    urls = [path for path in options["paths"] if "://" in path]
    paths = [Path(path) for path in options["paths"] if path not in urls]
    if urls:
        services.require_urls(urls)
    for path in paths:
        if not path.exists():
            raise SourceError(f"{path} does not exist. Check the path.")
    files = discover_any(paths, glob=options["glob"]) if paths else ()
    collection = get_or_create_collection(options)
    policy = IngestionRun.Policy.SKIP_IF_UNCHANGED
    if options["new_version"]:
        policy = IngestionRun.Policy.NEW_VERSION
    elif options["overwrite"]:
        policy = IngestionRun.Policy.OVERWRITE
    arguments: dict[str, Any] = {
        "collection": collection,
        "sources": chain(
            services.keep_source_documents(collection, files), web_sources(collection, urls)
        ),
        "policy": policy,
        "store_once": options["store_once"],
        "source": ", ".join(options["paths"]),
        "access": options["access"],
    }
    if options["queue"]:
        return services.ingest_sources(**arguments)
    with interrupt, run_display(say, json=options["json"]) as display:
        run = services.ingest_inline(
            **arguments,
            on_progress=interrupt.wrap_progress(display.show_run),
            suspend_index=options["suspend_index"],
        )
    run.refresh_from_db()
    return run


def warning_lines(report: dict[str, Any]) -> list[str]:
    """A line for each file of a `run_report` that failed, and its notes."""
    failed = [f"failed: {each['name']}: {each['reason']}" for each in report["failures"]]
    return [*failed, *report["notes"]]


def run_report(run: IngestionRun, *, seconds: float) -> dict[str, Any]:
    """A run as a dictionary for `--json`. `chunks.ready` counts the whole collection."""
    failures = run.items.filter(state=IngestionItem.State.FAILED).order_by("name")
    notes = services.run_notes(run).sentences
    duplicates = run.items.filter(state=IngestionItem.State.READY).exclude(
        document__duplicate_of=None
    )
    return {
        "collection": run.collection.slug,
        "run": run.pk,
        "state": run.state,
        "documents": {
            "total": run.total,
            "ready": run.ready,
            "skipped": run.skipped,
            "failed": run.failed,
            "cancelled": run.cancelled,
            "duplicates": run.duplicates,
        },
        "chunks": {
            "ready": services.chunk_count(collection=run.collection),
            "embedded": run.embedded,
        },
        "tokens": run.tokens,
        "graph": {"mentions": run.mentions, "relations": run.relations},
        "bytes": run.bytes,
        "notes": notes,
        "failures": [
            {"name": item.name, "code": item.error_code, "reason": item.error} for item in failures
        ],
        "duplicates": [
            {"name": name, "of": first or key}
            for name, first, key in duplicates.order_by("name").values_list(
                "name", "document__duplicate_of__source", "document__duplicate_of__key"
            )
        ],
        "seconds": round(seconds, 3),
        "timings": run.timings,
    }
