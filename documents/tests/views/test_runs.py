"""Runs, as they go."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from documents.ingestion.sources import text_source
from documents.models import Collection, IngestionItem, IngestionRun
from documents.services import cancel_run, ingest_inline
from documents.tests.factories import ItemFactory, RunFactory
from documents.tests.views.reading import href, parse, rows, words
from tests.kit import half_done_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def run(notes: Collection) -> IngestionRun:
    """Four files: one ready, one failed, one being embedded, one waiting; ten seconds old."""
    run = RunFactory(
        collection=notes,
        total=4,
        ready=1,
        failed=1,
        chunks=5,
        started_at=timezone.now() - timedelta(seconds=10),
    )
    states = IngestionItem.State
    ItemFactory(run=run, name="ready.txt", state=states.READY)
    ItemFactory(run=run, name="waiting.txt", state=states.WAITING)
    ItemFactory(run=run, name="embedding.txt", state=states.EMBEDDING)
    ItemFactory(run=run, name="failed.pdf", state=states.FAILED, error="Encrypted. Remove it.")
    return run


def test_a_run_shows_failures_first_with_their_cure(client: Client, run: IngestionRun) -> None:
    tree = parse(client.get(f"/runs/{run.pk}/"))

    assert rows(tree) == ["failed.pdf", "embedding.txt", "waiting.txt", "ready.txt"]
    assert words(tree.find(".//tbody//th")) == "failed.pdf Encrypted. Remove it."
    assert "2 of 4 files" in tree.text_content()
    assert tree.find(".//progress").get("value") == "50"
    stats = [words(stat) for stat in tree.iterfind(".//dl/div")]
    assert stats[:3] == ["Ready 1", "Unchanged 0", "Failed 1"]
    assert stats[3:6] == ["Waiting 1", "Reading 0", "Embedding 1"]


def test_a_run_tells_what_it_gave_to_the_graph(client: Client, run: IngestionRun) -> None:
    address = f"/runs/{run.pk}/"
    assert "Mentions" not in client.get(address).text
    IngestionRun.objects.filter(pk=run.pk).update(mentions=1200, relations=7)

    stats = [words(stat) for stat in parse(client.get(address)).iterfind(".//dl/div")]
    assert {"Mentions 1,200", "Relations 7"} < set(stats)


def test_a_run_tells_its_pace_and_what_is_left(client: Client, run: IngestionRun) -> None:
    with time_machine.travel(run.started_at + timedelta(seconds=10), tick=False):
        text = client.get(f"/runs/{run.pk}/").text

    assert "about 10 s left" in text
    assert "12 files a minute" in text
    assert "30 passages a minute" in text


def test_a_run_is_followed_until_it_ends(client: Client, run: IngestionRun) -> None:
    path = f"/runs/{run.pk}/"
    part = client.get(path, headers=HTMX)
    assert f'data-events="{path}events/"' in part.text
    assert "<html" not in part.text
    assert "<noscript>" in client.get(path).text

    run.finished_at, run.state = timezone.now(), IngestionRun.State.PARTIAL
    run.save()

    ended = client.get(path, headers=HTMX)
    assert "data-events" not in ended.text
    assert "The run has ended: 1 ready, 0 unchanged, 1 failed." in ended.text
    assert "htmx" not in client.get(path).text


def test_the_part_of_a_page_is_never_kept_for_the_page(client: Client, run: IngestionRun) -> None:
    answer = client.get(f"/runs/{run.pk}/", headers=HTMX)

    assert "HX-Request" in answer["Vary"]
    assert answer["Cache-Control"] == "no-store"


def test_a_session_that_ended_sends_the_whole_page_to_the_login(run: IngestionRun) -> None:
    answer = Client().get(f"/runs/{run.pk}/", headers=HTMX)

    assert answer["HX-Redirect"] == f"/login/?next=/runs/{run.pk}/"


def test_many_files_of_a_run_come_in_pages(client: Client, run: IngestionRun) -> None:
    ItemFactory.create_batch(120, run=run)
    first = parse(client.get(f"/runs/{run.pk}/"))
    second = parse(client.get(f"/runs/{run.pk}/{href(first, 'More files')}"))

    assert (len(rows(first)), len(rows(second))) == (100, 24)
    assert set(rows(first)).isdisjoint(rows(second))


def test_the_runs_are_listed_newest_first_and_followed_while_one_works(
    client: Client, run: IngestionRun
) -> None:
    done = RunFactory(collection=run.collection, source="later", finished_at=timezone.now())
    tree = parse(client.get("/runs/"))

    assert [link.get("href") for link in tree.iterfind(".//tbody//a")] == [
        f"/runs/{done.pk}/",
        f"/runs/{run.pk}/",
    ]
    assert tree.get_element_by_id("runs").get("hx-trigger") == "every 2s"
    IngestionRun.objects.update(finished_at=timezone.now())
    assert parse(client.get("/runs/")).get_element_by_id("runs").get("hx-trigger") is None


def test_without_runs_the_page_says_how_to_begin(client: Client) -> None:
    assert "No runs yet" in client.get("/runs/").text


@pytest.fixture
def half(notes: Collection) -> IngestionRun:
    return half_done_run(notes)


def page(client: Client, half: IngestionRun) -> Any:
    return parse(client.get(f"/runs/{half.pk}/"))


def buttons(tree: Any) -> list[str]:
    return [
        words(button)
        for button in tree.xpath(
            "//*[@id='progress']//*[@class='actions']//*[self::a or self::button]"
        )
    ]


def test_an_editor_may_cancel_and_retry_while_it_works(
    client: Client, bob: Client, half: IngestionRun
) -> None:
    assert buttons(page(client, half)) == ["Retry 1 failed", "Cancel the run"]
    assert buttons(page(bob, half)) == []


def test_cancelling_is_previewed_and_then_done(client: Client, half: IngestionRun) -> None:
    preview = client.get(f"/runs/{half.pk}/cancel/")
    assert "1 finished file stays searchable" in " ".join(parse(preview).text_content().split())
    assert "1 waiting file is skipped" in " ".join(parse(preview).text_content().split())
    half.refresh_from_db()
    assert half.state == "running"
    done = client.post(f"/runs/{half.pk}/cancel/", follow=True)
    assert done.redirect_chain == [(f"/runs/{half.pk}/", 302)]
    text = " ".join(parse(done).text_content().split())
    assert "The run is cancelled: 1 of 3 files are ready." in text
    assert "Cancelled 1" in text
    assert buttons(parse(done)) == ["Search them", "Show the collection", "Retry 1 failed"]


def test_a_run_that_has_ended_meanwhile_is_shown_instead(
    client: Client, half: IngestionRun
) -> None:
    cancel_run(run=half)
    assert client.get(f"/runs/{half.pk}/cancel/").url == f"/runs/{half.pk}/"  # type: ignore[attr-defined]
    IngestionRun.objects.filter(pk=half.pk).update(cancel_requested_at=None, state="partial")
    refused = client.post(f"/runs/{half.pk}/cancel/")
    assert refused.status_code == 409
    assert "has ended already" in refused.text


def test_a_retry_goes_to_its_own_run_and_back(client: Client, half: IngestionRun) -> None:
    done = client.post(f"/runs/{half.pk}/retry/", follow=True)
    again = half.retries.get()
    assert done.redirect_chain == [(f"/runs/{again.pk}/", 302)]
    assert f"a retry of run {half.pk}" in " ".join(parse(done).text_content().split())
    before = " ".join(page(client, half).text_content().split())
    assert f"Retried as run {again.pk}." in before
    assert "Retry 1 failed" not in before
    assert client.post(f"/runs/{half.pk}/retry/").status_code == 409


def test_files_left_out_of_a_retry_are_named(client: Client, half: IngestionRun) -> None:
    IngestionItem.objects.create(
        workspace=half.workspace, run=half, name="elsewhere.txt", state="failed"
    )
    done = client.post(f"/runs/{half.pk}/retry/", follow=True)
    assert "Not stored here, to be uploaded again: elsewhere.txt." in done.text


def test_a_commands_failures_are_not_offered(client: Client, notes: Collection) -> None:
    half = ingest_inline(collection=notes, sources=[text_source("nothing", " ")])
    tree = page(client, half)
    assert buttons(tree) == []
    assert "The failed files are not stored here." in tree.text_content()


def test_the_page_shows_where_the_time_went(client: Client, notes: Collection) -> None:
    half = RunFactory(collection=notes, timings={"load": 1.0, "parse": 3.0, "embed": 4.0})
    rows = [words(row) for row in page(client, half).xpath("//table[@class='timings']//tr")]
    assert rows == ["Reading 3.0 s", "Embedding 4.0 s", "Loading 1.0 s"]
    bars = [bar.get("width") for bar in page(client, half).xpath("//*[@class='bar-fill']")]
    assert bars == ["37.5", "50.0", "12.5"]
