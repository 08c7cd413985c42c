"""Cancelling and retrying on the run page, with and without JavaScript."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from documents.ingestion import pipeline
from documents.ingestion.sources import text_source
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.services import Upload, cancel_run, ingest_inline, ingest_uploads
from documents.tests.factories import RunFactory
from documents.tests.views.reading import parse, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def run(notes: Collection) -> IngestionRun:
    """One file is ready, one has failed, one waits."""
    names = {"ready.txt": b"Some words.", "empty.txt": b"", "waiting.txt": b"More words."}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in names.items()]
    run = ingest_uploads(collection=notes, uploads=uploads)
    worked = Document.objects.exclude(key="waiting.txt").values_list("id", flat=True)
    pipeline.embed_documents(pipeline.parse_documents(list(worked)))
    return run


def page(client: Client, run: IngestionRun) -> Any:
    return parse(client.get(f"/runs/{run.pk}/"))


def buttons(tree: Any) -> list[str]:
    return [
        words(button)
        for button in tree.xpath(
            "//*[@id='progress']//*[@class='actions']//*[self::a or self::button]"
        )
    ]


def test_an_editor_may_cancel_and_retry_while_it_works(
    client: Client, bob: Client, run: IngestionRun
) -> None:
    assert buttons(page(client, run)) == ["Retry 1 failed", "Cancel the run"]
    assert buttons(page(bob, run)) == []


def test_cancelling_is_previewed_and_then_done(client: Client, run: IngestionRun) -> None:
    preview = client.get(f"/runs/{run.pk}/cancel/")
    assert "1 finished file stays searchable" in " ".join(parse(preview).text_content().split())
    assert "1 waiting file is skipped" in " ".join(parse(preview).text_content().split())
    run.refresh_from_db()
    assert run.state == "running"
    done = client.post(f"/runs/{run.pk}/cancel/", follow=True)
    assert done.redirect_chain == [(f"/runs/{run.pk}/", 302)]
    text = " ".join(parse(done).text_content().split())
    assert "The run is cancelled: 1 of 3 files are ready." in text
    assert "Cancelled 1" in text
    assert buttons(parse(done)) == ["Search them", "Show the collection", "Retry 1 failed"]


def test_a_run_that_has_ended_meanwhile_is_shown_instead(client: Client, run: IngestionRun) -> None:
    cancel_run(run=run)
    assert client.get(f"/runs/{run.pk}/cancel/").url == f"/runs/{run.pk}/"  # type: ignore[attr-defined]
    IngestionRun.objects.filter(pk=run.pk).update(cancel_requested_at=None, state="partial")
    refused = client.post(f"/runs/{run.pk}/cancel/")
    assert refused.status_code == 409
    assert "has ended already" in refused.text


def test_a_retry_goes_to_its_own_run_and_back(client: Client, run: IngestionRun) -> None:
    done = client.post(f"/runs/{run.pk}/retry/", follow=True)
    again = run.retries.get()
    assert done.redirect_chain == [(f"/runs/{again.pk}/", 302)]
    assert f"a retry of run {run.pk}" in " ".join(parse(done).text_content().split())
    before = " ".join(page(client, run).text_content().split())
    assert f"Retried as run {again.pk}." in before
    assert "Retry 1 failed" not in before
    assert client.post(f"/runs/{run.pk}/retry/").status_code == 409


def test_files_left_out_of_a_retry_are_named(client: Client, run: IngestionRun) -> None:
    IngestionItem.objects.create(
        workspace=run.workspace, run=run, name="elsewhere.txt", state="failed"
    )
    done = client.post(f"/runs/{run.pk}/retry/", follow=True)
    assert "Not stored here, to be uploaded again: elsewhere.txt." in done.text


def test_a_commands_failures_are_not_offered(client: Client, notes: Collection) -> None:
    run = ingest_inline(collection=notes, sources=[text_source("nothing", " ")])
    tree = page(client, run)
    assert buttons(tree) == []
    assert "The failed files are not stored here." in tree.text_content()


def test_the_page_shows_where_the_time_went(client: Client, notes: Collection) -> None:
    run = RunFactory(collection=notes, timings={"load": 1.0, "parse": 3.0, "embed": 4.0})
    rows = [words(row) for row in page(client, run).xpath("//table[@class='timings']//tr")]
    assert rows == ["Reading 3.0 s", "Embedding 4.0 s", "Loading 1.0 s"]
    bars = [bar.get("width") for bar in page(client, run).xpath("//*[@class='bar-fill']")]
    assert bars == ["37.5", "50.0", "12.5"]
