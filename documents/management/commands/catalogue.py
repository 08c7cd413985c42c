"""`manage.py catalogue --dsn DSN --collection C`: the tables of a database as documents."""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace
from common.checks import SETTINGS
from common.errors import RagsiteError
from common.text import pluralized
from documents import services
from documents.catalogue.database import MAX_SAMPLES, database_label, read_dsn, reflect
from documents.catalogue.ddl import read_scripts
from documents.catalogue.tables import CatalogueError, Table
from documents.ingestion.sources import BrokenSource
from documents.management.cli import ProgressBar
from documents.management.commands.ingest import run_report
from documents.models import IngestionRun
from documents.services.catalogue import ingest_catalogue
from inference.interfaces import InferenceError

PARTIAL = 1
FATAL = 2


class Command(BaseCommand):
    requires_system_checks = [SETTINGS]

    help = (
        "Write a document for each table and view of a database, so that a question finds the"
        " table that answers it. Reads the database itself, or scripts that define it; unchanged"
        " tables are passed over. Exit code: 0 all ready, 1 some tables failed, 2 nothing was done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            "--dsn", help="address of the database, such as postgresql://user@host/name"
        )
        source.add_argument(
            "--dsn-env",
            metavar="NAME",
            help="environment variable with the address, so that no list of processes shows its"
            " password",
        )
        source.add_argument(
            "--ddl", nargs="+", type=Path, metavar="FILE", help="scripts with CREATE TABLE"
        )
        parser.add_argument("--collection", required=True, help="slug; made when missing")
        parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
        parser.add_argument(
            "--schema",
            default="",
            help="only this schema; in scripts also that of tables that name none",
        )
        parser.add_argument(
            "--dialect", default="", help="of the scripts (default: the first that fits)"
        )
        parser.add_argument(
            "--name", default="", help="what to call the database (default: its address)"
        )
        parser.add_argument(
            "--samples",
            type=int,
            default=0,
            metavar="N",
            help=f"show up to N values of each column, at most {MAX_SAMPLES}; none of columns that"
            " look secret",
        )
        parser.add_argument(
            "--delete", action="store_true", help="remove tables that the database has no more"
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        started = perf_counter()
        try:
            run, vanished = self._catalogue(options)
        except (RagsiteError, InferenceError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        report = {
            **run_report(run, seconds=perf_counter() - started),
            "vanished": vanished,
            "deleted": options["delete"] and bool(vanished),
        }
        if options["json"]:
            self.stdout.write(json.dumps(report, ensure_ascii=False, indent=2))
        else:
            self._print(report)
        if run.failed:
            sys.exit(PARTIAL)

    def _catalogue(self, options: dict[str, Any]) -> tuple[IngestionRun, list[str]]:
        database, entries = _read(options)
        workspace = get_or_create_workspace(slug=options["workspace"])
        collection = services.get_or_create_collection(
            workspace=workspace, slug=options["collection"]
        )
        with ProgressBar("tables", quiet=options["json"] or not sys.stderr.isatty()) as bar:
            return ingest_catalogue(
                collection=collection,
                database=options["name"] or database,
                entries=entries,
                schema=options["schema"],
                delete=options["delete"],
                on_progress=bar.show_run,
            )

    def _print(self, report: dict[str, Any]) -> None:
        documents = report["documents"]
        for failure in report["failures"]:
            self.stderr.write(f"failed: {failure['name']}: {failure['reason']}")
        for name in report["vanished"]:
            self.stdout.write(f"{'deleted' if report['deleted'] else 'vanished'}: {name}")
        self.stdout.write(
            f"{report['collection']}: {pluralized(documents['ready'], 'table')} ready,"
            f" {documents['skipped']} unchanged, {documents['failed']} failed,"
            f" {len(report['vanished'])} vanished; {report['seconds']} s"
        )
        if report["vanished"] and not report["deleted"]:
            self.stdout.write(
                "The vanished ones are still in the collection: --delete removes them."
            )


def _read(options: dict[str, Any]) -> tuple[str, Sequence[Table | BrokenSource]]:
    """The database's name and its tables. Raises CatalogueError."""
    schema = options["schema"]
    if options["ddl"]:
        if options["samples"]:
            raise CatalogueError("Scripts hold no values: --samples needs --dsn or --dsn-env.")
        files = options["ddl"]
        dialect = options["dialect"]
        entries = read_scripts(files, dialect=dialect, default_schema=schema)
        if schema:
            entries = [
                entry
                for entry in entries
                if isinstance(entry, BrokenSource) or entry.name.schema == schema
            ]
        if not entries:
            where = f" of schema {schema}" if schema else ""
            raise CatalogueError(
                f"The scripts define no tables{where}. Give those with CREATE TABLE."
            )
        return ", ".join(file.name for file in files), entries
    if not 0 <= options["samples"] <= MAX_SAMPLES:
        raise CatalogueError(f"--samples may be 0 to {MAX_SAMPLES}.")
    name = options["dsn_env"]
    dsn = options["dsn"] or os.environ.get(name, "")
    if not dsn:
        raise CatalogueError(f"The environment variable {name} is not set. Set it to the address.")
    url = read_dsn(dsn)
    return database_label(url), reflect(url, schema=schema, samples=options["samples"])
