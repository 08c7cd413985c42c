"""`manage.py catalogue --dsn DSN --collection C`: the tables of a database as documents."""

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from common.console import PARTIAL, CommandOutput, Options, ServiceCommand
from common.text import pluralized
from documents.catalogue.database import MAX_SAMPLES, database_label, read_dsn, reflect
from documents.catalogue.ddl import read_scripts
from documents.catalogue.tables import CatalogueError, Table
from documents.ingestion.sources import BrokenSource
from documents.management.cli import (
    ProgressBar,
    add_collection_options,
    get_or_create_collection,
)
from documents.management.commands.ingest import run_report, warning_lines
from documents.services.catalogue import ingest_catalogue


class Command(ServiceCommand):
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
        add_collection_options(parser, "slug; made when missing")
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

    def run(self, options: Options) -> CommandOutput:
        started = perf_counter()
        database, entries = read_tables(options)
        collection = get_or_create_collection(options)
        with ProgressBar("tables", quiet=options["json"]) as bar:
            run, vanished = ingest_catalogue(
                collection=collection,
                database=options["name"] or database,
                entries=entries,
                schema=options["schema"],
                delete=options["delete"],
                on_progress=bar.show_run,
            )
        report = run_report(run, seconds=perf_counter() - started)
        documents = report["documents"]
        deleted = options["delete"] and bool(vanished)
        lines = [
            *(f"{'deleted' if deleted else 'vanished'}: {name}" for name in vanished),
            f"{report['collection']}: {pluralized(documents['ready'], 'table')} ready,"
            f" {documents['skipped']} unchanged, {documents['failed']} failed,"
            f" {len(vanished)} vanished; {report['seconds']} s",
        ]
        if vanished and not deleted:
            lines.append("The vanished ones are still in the collection: --delete removes them.")
        return CommandOutput(
            {**report, "vanished": vanished, "deleted": deleted},
            lines,
            warnings=warning_lines(report),
            code=PARTIAL if run.failed else 0,
        )


def read_tables(options: Options) -> tuple[str, Sequence[Table | BrokenSource]]:
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
