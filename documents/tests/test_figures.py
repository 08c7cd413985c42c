"""`stats` counts what is there."""

import io
import json
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command

from accounts.models import Workspace
from documents import services
from documents.ingestion.sources import text_source
from documents.models import Collection, IngestionRun
from documents.tests.factories import CollectionFactory, RunFactory

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "\n\n".join(f"Paragraph {n} speaks of topic{n}. " * 25 for n in range(8))


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(slug="notes", default_language="en")
    services.ingest_inline(
        collection=collection,
        sources=[
            text_source("one", TEXT),
            text_source("two", "# Note\n\nShort.", file_name="b.md"),
        ],
    )
    upload = services.Upload(name="three.txt", file=ContentFile(b"It waits for a worker."))
    services.ingest_uploads(collection=collection, uploads=[upload])
    return collection


def stats(*arguments: str) -> Any:
    out = io.StringIO()
    call_command("stats", "--json", *arguments, stdout=out)
    return json.loads(out.getvalue())


def of(collection: Collection) -> Any:
    return stats("--collection", collection.slug, "--workspace", collection.workspace.slug)


def test_a_collection_is_counted(collection: Collection) -> None:
    CollectionFactory(slug="another")
    report = of(collection)
    documents = collection.documents.filter(status="ready")
    assert report["documents"] == {"ready": 2, "queued": 1}
    assert report["chunks"] == sum(document.chunk_count for document in documents)
    assert report["tokens"] == sum(document.token_count for document in documents)
    assert report["source_bytes"] == sum(collection.documents.values_list("size", flat=True))
    assert (report["stored_files"], report["stored_bytes"]) == (1, 22)
    assert [(s["name"], s["chunks"]) for s in report["spaces"]] == [
        ("minilm-384", report["chunks"])
    ]
    assert report["languages"] == {"english": report["chunks"]}
    assert report["media_types"] == {"text/markdown": 1, "text/plain": 1}
    assert report["graph"] == {"rules": 1}
    assert report["runs"] == {"running": 1, "succeeded": 1}


def test_rates_are_those_of_the_last_runs(collection: Collection) -> None:
    IngestionRun.objects.filter(collection=collection, state="succeeded").update(
        bytes=5000, chunks=100, embedded=40, tokens=3000, timings={"parse": 2.0, "embed": 4.0}
    )
    RunFactory(collection=collection, chunks=9999, timings={"parse": 1.0})  # not finished
    report = of(collection)
    assert report["last_runs"] == 1
    assert report["stages"] == {
        "parse": {"seconds": 2.0, "rates": {"bytes": 2500.0}},
        "embed": {"seconds": 4.0, "rates": {"embedded": 10.0}},
    }


def test_the_site_has_sizes_of_tables_too(collection: Collection) -> None:
    report = stats()
    sizes = report["table_bytes"]
    assert 0 < sizes["chunks"] < sizes["all"]
    assert 0 < sizes["chunk_indexes"] < sizes["all"]
    assert of(collection)["table_bytes"] == {}


def test_an_empty_site_is_no_error() -> None:
    report = stats()
    assert (report["chunks"], report["documents"], report["stages"]) == (0, {}, {})


def test_people_read_lines(collection: Collection) -> None:
    out = io.StringIO()
    call_command("stats", stdout=out)
    assert "documents     2 ready, 1 queued\n" in out.getvalue()
    assert "media types   1 text/markdown, 1 text/plain\n" in out.getvalue()


@pytest.mark.parametrize("command", ["stats", "validate", "export", "reindex"])
def test_a_name_that_is_misspelt_ends_with_2_and_makes_nothing(command: str) -> None:
    CollectionFactory(slug="notes", workspace__slug="mine")
    for workspace, collection in (("mine", "nots"), ("mien", "notes")):
        with pytest.raises(CommandError) as raised:
            call_command(command, "--collection", collection, "--workspace", workspace)
        assert raised.value.returncode == 2
    assert not Workspace.objects.filter(slug="mien").exists()
