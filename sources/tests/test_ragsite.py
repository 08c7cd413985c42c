"""A collection follows one of another ragsite, by the key of a reader there."""

from dataclasses import dataclass
from typing import Any

import pytest
from django.core.files.base import ContentFile

from accounts.tests.keys import make_key
from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services.deletion import delete_documents
from documents.services.documents import Upload, ingest_inline, ingest_text, ingest_uploads
from documents.tests.factories import CollectionFactory, MembershipFactory
from sources import runs, services
from sources.connectors.base import SourceError
from sources.models import DataSource, DataSourceRun
from tests.kit import process_documents

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]


@dataclass
class Sites:
    """The collection `there`, of another workspace behind a real server, and the one that follows
    it `here`."""

    there: Collection
    here: Collection
    options: dict[str, str]


@pytest.fixture
def sites(live_server: Any, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Sites:
    monkeypatch.setattr("sources.connectors.http.TRIES", 1)
    monkeypatch.setattr("sources.connectors.ragsite.PAGE_SIZE", 2)
    reader = MembershipFactory()
    there = CollectionFactory(
        workspace=reader.workspace, slug="handbook", name="The handbook", default_language="en"
    )
    _, secret = make_key(reader, "read")
    options = {"url": live_server.url, "api_key": secret, "collection": "The handbook"}
    return Sites(there, CollectionFactory(slug="copy", default_language="en"), options)


def read(source: DataSource) -> DataSourceRun:
    services.start_run(source=source, enqueue=False)
    run = runs.work_on(source.pk, seconds=None)
    assert run is not None
    process_documents()
    return run


def texts(collection: Collection) -> dict[str, str]:
    """By title, the text of each document."""
    rows = Document.objects.filter(collection=collection, is_current=True)
    return {row.title: "".join(chunk.text for chunk in row.chunks.all()) for row in rows}


def test_documents_come_with_their_files_or_texts_and_go_when_they_go_there(sites: Sites) -> None:
    ingest_uploads(
        collection=sites.there,
        uploads=[
            Upload("travel/rail.md", ContentFile(b"# By rail\n\nTrains.", "rail.md")),
            Upload("bus.txt", ContentFile(b"Buses are late.", "bus.txt")),
        ],
    )
    ingest_text(
        collection=sites.there, key="note", title="A note", text="# Ships\n\nOn Mondays.",
        media_type="text/markdown",
    )  # fmt: skip
    # As by a command: its file is not kept there.
    ingest_inline(
        collection=sites.there, sources=[text_source("fares.md", "# Fares\n\nTwo euros.")]
    )
    process_documents()
    source = services.create_source(
        collection=sites.here, name="There", connector="ragsite", options=sites.options
    )
    assert "api_key" not in source.options
    run = read(source)
    assert (run.state, run.fetched, run.failed) == ("succeeded", 4, 0)
    assert texts(sites.here) == texts(sites.there)
    assert set(texts(sites.here)) == {"By rail", "Bus", "A note", "Fares"}
    copy = Document.objects.get(collection=sites.here, title="By rail")
    assert (copy.source, copy.media_type) == ("travel/rail.md", "text/markdown")

    assert read(source).fetched == 0
    ingest_text(collection=sites.there, key="note", title="A note", text="On Tuesdays.")
    delete_documents(documents=[Document.objects.get(collection=sites.there, title="Bus")])
    process_documents()
    run = read(source)
    assert (run.fetched, run.deleted) == (1, 1)
    assert texts(sites.here) == texts(sites.there)


def test_a_refusal_says_what_to_do(sites: Sites) -> None:
    with pytest.raises(SourceError, match="It has: handbook"):
        services.first_items("ragsite", {**sites.options, "collection": "none"})
    with pytest.raises(
        SourceError, match="The other site refuses the API key, or the key lacks the right to read"
    ) as refused:
        services.first_items("ragsite", {**sites.options, "api_key": "rs_wrong"})
    assert refused.value.is_permanent
    with pytest.raises(SourceError, match=r"(ragsite|answers 404)"):
        services.first_items("ragsite", {**sites.options, "url": f"{sites.options['url']}/x"})
