"""A first run of each kind of source, and a second one in which nothing has changed.

    python -m bench.sources [FILES] [KIND ...]

Real servers on loopback ports (those of the tests) hold 2,000 small files unless told otherwise,
and a fresh site on embedded servers of its own, with the hashing embedder, reads them: listed,
fetched, parsed, chunked and stored, in this process. The second run must be 30 times quicker and
fetch nothing.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
os.environ["RAGSITE_SOURCE_NETWORKS"] = "127.0.0.0/8,::1/128"
for variable in ("DATABASE_URL", "REDIS_URL", "EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)
_var_dir = TemporaryDirectory(prefix="ragsite-bench-")
os.environ["RAGSITE_VAR_DIR"] = _var_dir.name

import django

from ragsite import bootstrap

bootstrap.ensure_services()
django.setup()

from django.core.management import call_command
from rich.console import Console
from rich.table import Table

from accounts.models import Workspace
from documents.ingestion import pipeline
from documents.models import Document
from documents.services import get_or_create_collection
from sources import runs, services
from sources.connectors import connector_class
from sources.models import DataSource, DataSourceRun
from sources.tests.places import GitPlace, MailPlace, Place, S3Place, WebDavPlace, opened

MUST_BE_QUICKER = 30
KINDS = {place.kind: place for place in (Place, GitPlace, WebDavPlace, S3Place, MailPlace)}


def main(files: int, kinds: list[str]) -> int:
    call_command("migrate", verbosity=0)
    table = Table("source", "first run", "of it fetching", "second run", "quicker", "fetched again")
    fails = False
    for kind in kinds or list(KINDS):
        with TemporaryDirectory() as folder, opened(KINDS[kind], Path(folder, "place")) as place:
            for number in range(files):
                name = f"folder-{number % 20}/file-{number:05}.md"
                place.write(name, f"Of file {number} this is all.")
            place.tell()
            source = made(place)
            first, fetching, fetched = timed(source)
            second, _, again = timed(source)
        documents = Document.objects.filter(collection=source.collection, status="ready").count()
        if fetched != files or documents != files:
            raise SystemExit(f"{kind}: {fetched} of {files} files fetched, {documents} documents")
        fails |= bool(again) or first < MUST_BE_QUICKER * second
        table.add_row(
            kind,
            f"{first:.1f} s",
            f"{fetching:.1f} s",
            f"{second:.2f} s",
            f"{first / second:.0f}×",
            str(again),
        )
    Console().print(table)
    return int(fails)


def made(place: Place) -> DataSource:
    workspace, _ = Workspace.objects.get_or_create(slug="bench", defaults={"name": "Bench"})
    collection = get_or_create_collection(workspace=workspace, slug=place.kind)
    return services.create_source(
        collection=collection, name=place.kind, connector=place.kind, options=place.options
    )


def timed(source: DataSource) -> tuple[float, float, int]:
    """Seconds of a whole run with all that it makes the workers do, those spent on fetching, and
    how many files were fetched."""
    connector = connector_class(source.connector)
    fetch: Callable[..., Any] = connector.fetch
    spent: list[float] = []

    def counted(*args: Any, **options: Any) -> Any:
        started = perf_counter()
        try:
            return fetch(*args, **options)
        finally:
            spent.append(perf_counter() - started)

    connector.fetch = counted  # type: ignore[method-assign]
    started = perf_counter()
    try:
        services.start_run(source=source, enqueue=False)
        run = runs.work_on(source.pk, seconds=None)
        waiting = Document.objects.exclude(status="ready").order_by("pk")
        while ids := list(waiting.values_list("pk", flat=True)[:200]):
            pipeline.embed_documents(pipeline.parse_documents(ids))
        seconds = perf_counter() - started
    finally:
        connector.fetch = fetch  # type: ignore[method-assign]
    if run is None or run.state != DataSourceRun.State.SUCCEEDED:
        raise SystemExit(f"{source} did not end well: {run and run.error}")
    return seconds, sum(spent), len(spent)


if __name__ == "__main__":
    given = sys.argv[1:]
    count = int(given.pop(0)) if given and given[0].isdecimal() else 2000
    try:
        code = main(count, given)
    finally:
        call_command("services", "stop")
    sys.exit(code)
