"""Runs are cancelled while they work, and retried: by services, `manage.py runs`, Ctrl-C and API.
What is ready stays, what waits is as it was before."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from common.errors import Conflict
from documents import services
from documents.ingestion import jobs, loader, pipeline
from documents.ingestion.sources import Source, text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    StagedDocument,
)
from documents.services import Upload, cancel_run, ingest_inline, ingest_uploads, retry_failed
from documents.tasks import recover_documents
from documents.tests.factories import CollectionFactory, MembershipFactory, RunFactory
from tests.kit import at_once, half_done_run
from tests.plugin import WorkerProcess, database_url_of_tests, wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

OnCommit = Any


def upload(collection: Collection, **files: str) -> IngestionRun:
    """Queue files by name, without any worker."""
    uploads = [
        Upload(name=f"{name}.txt", file=ContentFile(text.encode())) for name, text in files.items()
    ]
    return ingest_uploads(collection=collection, uploads=uploads)


def document(key: str) -> Document:
    return Document.objects.get(key=f"{key}.txt")


def work(*keys: str) -> None:
    """What the two queues do with these documents."""
    ids = [document(key).id for key in keys]
    pipeline.embed_documents(pipeline.parse_documents(ids))


def cancel(run: IngestionRun) -> IngestionRun:
    return cancel_run(run=run)


def states(run: IngestionRun) -> dict[str, str]:
    return dict(run.items.values_list("name", "state"))


def texts() -> set[str]:
    return set(Chunk.objects.values_list("text", flat=True))


def test_what_is_ready_stays_and_what_waits_goes_with_its_file(
    collection: Collection, django_capture_on_commit_callbacks: OnCommit
) -> None:
    run = upload(collection, ready="The first text.", waiting="The second text.")
    work("ready")
    file = document("waiting").file
    with django_capture_on_commit_callbacks(execute=True):
        cancelled = cancel(run)
    assert (cancelled.state, cancelled.ready, cancelled.cancelled) == ("cancelled", 1, 1)
    assert cancelled.settled == cancelled.total == 2
    assert states(run) == {"ready.txt": "ready", "waiting.txt": "cancelled"}
    assert texts() == {"The first text."}
    assert not Document.objects.filter(key="waiting.txt").exists()
    assert not file.storage.exists(file.name)


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_known_document_keeps_its_old_text_and_is_ready(
    collection: Collection, is_staged: bool
) -> None:
    upload(collection, note="The old text.")
    work("note")
    run = upload(collection, note="The new text.")
    if is_staged:
        pipeline.parse_documents([document("note").id])
    cancel(run)
    note = document("note")
    assert (note.status, note.claimed_by, note.file.name) == ("ready", None, "")
    assert texts() == {"The old text."}
    pipeline.embed_documents([note.id])
    assert texts() == {"The old text."}
    again = upload(collection, note="The new text.")
    assert again.skipped == 0
    work("note")
    assert texts() == {"The new text."}


def test_a_version_that_waits_goes_and_the_current_one_stays(collection: Collection) -> None:
    upload(collection, note="The old text.")
    work("note")
    uploads = [Upload(name="note.txt", file=ContentFile(b"The new text."))]
    run = ingest_uploads(
        collection=collection, uploads=uploads, policy=IngestionRun.Policy.NEW_VERSION
    )
    assert Document.objects.count() == 2
    cancel(run)
    kept = document("note")
    assert (kept.version, kept.is_current, kept.status) == (1, True, "ready")
    assert kept.file.read() == b"The old text."
    assert texts() == {"The old text."}


def test_a_duplicate_that_waits_goes_and_its_original_stays(collection: Collection) -> None:
    upload(collection, first="The same text.")
    work("first")
    run = upload(collection, second="The same text.")
    pipeline.parse_documents([document("second").id])
    cancel(run)
    assert document("first").status == "ready"
    assert not Document.objects.filter(key="second.txt").exists()
    assert texts() == {"The same text."}


def test_a_worker_in_the_middle_loads_nothing(collection: Collection) -> None:
    run = upload(collection, note="The old text.")
    work("note")
    run = upload(collection, note="The new text.", other="Another text.")
    ids = [document("note").id, document("other").id]
    staged = pipeline.parse_documents(ids)
    assert sorted(staged) == sorted(ids)
    token, taken = jobs.claim(ids)
    cancel(run)
    assert not Document.objects.filter(claimed_by=token).exists()
    assert len(taken) == 2
    pipeline.embed_documents(ids)
    jobs.fail_documents(ids, code="malformed", message="It came too late.", token=token)
    assert texts() == {"The old text."}
    assert document("note").status == "ready"


def test_a_text_that_a_later_run_brought_goes_on(collection: Collection) -> None:
    first = upload(collection, note="The first text.")
    second = upload(collection, note="The second text.")
    cancel(first)
    work("note")
    second.refresh_from_db()
    assert (second.state, second.ready) == ("succeeded", 1)
    assert texts() == {"The second text."}


def test_an_earlier_run_is_told_that_its_text_is_gone(
    collection: Collection, django_capture_on_commit_callbacks: OnCommit
) -> None:
    first = upload(collection, note="The first text.")
    second = upload(collection, note="The second text.")
    with django_capture_on_commit_callbacks(execute=True):
        cancel(second)
    first.refresh_from_db()
    assert (first.state, first.failed) == ("failed", 1)
    assert first.items.get().error_code == "replaced"
    assert not Document.objects.exists()


def test_cancelling_twice_is_as_good_as_once(collection: Collection) -> None:
    run = upload(collection, note="A text.")
    once = cancel(run)
    twice = cancel(IngestionRun.objects.get(pk=run.pk))
    assert (once.finished_at, once.cancelled) == (twice.finished_at, twice.cancelled)


def test_a_run_that_has_ended_cannot_be_cancelled(collection: Collection) -> None:
    run = upload(collection, note="A text.")
    work("note")
    with pytest.raises(Conflict, match="has ended already: succeeded"):
        cancel(IngestionRun.objects.get(pk=run.pk))
    assert IngestionRun.objects.get().state == "succeeded"


def test_a_run_whose_canceller_died_is_cancelled_by_recovery(
    collection: Collection, settings: Any
) -> None:
    settings.INGESTION_LEASE_SECONDS = 0
    run = upload(collection, note="A text.")
    assert jobs.request_cancellation(run.pk)
    recover_documents()
    run.refresh_from_db()
    assert (run.state, run.cancelled) == ("cancelled", 1)
    assert not Document.objects.exists()


def test_many_documents_are_undone_in_batches(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "CANCEL_BATCH", 3)
    run = upload(collection, **{f"n{number}": f"Text {number}." for number in range(8)})
    assert cancel(run).cancelled == 8
    assert set(states(run).values()) == {"cancelled"}
    assert not Document.objects.exists()


def test_a_run_without_files_can_be_ended() -> None:
    run = cancel(RunFactory())
    assert (run.state, run.is_finished) == ("cancelled", True)


# --- a command, which works in another process -------------------------------------------------


def cancelling_source(run: list[IngestionRun], key: str, text: str) -> Source:
    """A source while which is read somebody cancels."""

    def read() -> bytes:
        if IngestionRun.objects.get(pk=run[0].pk).finished_at is None:
            cancel_run(run=run[0])
        return text.encode()

    return Source(key=key, name=key, size=len(text), read=read)


def test_a_command_stops_at_the_next_batch(collection: Collection) -> None:
    seen: list[IngestionRun] = []
    read: list[str] = []

    def sources() -> Iterator[Source]:
        yield text_source("before", "It was there before.")
        yield cancelling_source(seen, "cancels", "Nobody reads this.")
        for number in range(2000):
            read.append(str(number))
            yield text_source(f"later-{number}", f"Text {number}.")

    ended = ingest_inline(collection=collection, sources=sources(), on_progress=seen.append)
    assert ended.state == "cancelled"
    assert ended.settled == ended.total == ended.cancelled < 1000
    assert len(read) < 1000
    assert not Chunk.objects.exists()
    assert not Document.objects.exists()


def test_what_a_command_has_loaded_stays(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "GROUP_CHUNKS", 32)

    def stop(run: IngestionRun) -> None:
        if run.ready:
            cancel_run(run=run)

    sources = (text_source(f"n{number}", f"Text {number}.") for number in range(300))
    ended = ingest_inline(collection=collection, sources=sources, on_progress=stop)
    assert ended.state == "cancelled"
    assert 0 < ended.ready < 300
    assert Document.objects.count() == Document.objects.filter(status="ready").count()
    assert Document.objects.count() == ended.ready
    assert ended.settled == ended.total


# --- retry -------------------------------------------------------------------------------------


@pytest.fixture
def half_failed(collection: Collection) -> IngestionRun:
    """One file is ready, two are broken."""
    run = upload(collection, good="A text.", empty="", blank=" ")
    work("good", "empty", "blank")
    run.refresh_from_db()
    assert (run.state, run.ready, run.failed) == ("partial", 1, 2)
    return run


def test_failed_files_are_tried_again_as_a_run_of_their_own(half_failed: IngestionRun) -> None:
    alice = MembershipFactory(workspace=half_failed.workspace).user
    document("empty").file.storage.delete(document("empty").file.name)
    row = document("empty")
    row.file.save("mended", ContentFile(b"It was mended."), save=True)
    again = retry_failed(run=half_failed, user=alice).run
    assert (again.retry_of, again.user, again.total) == (half_failed, alice, 2)
    assert document("empty").status == "queued"
    work("empty", "blank")
    again.refresh_from_db()
    assert (again.state, again.ready, again.failed) == ("partial", 1, 1)
    assert "It was mended." in texts()
    half_failed.refresh_from_db()
    assert half_failed.failed == 2


def test_a_retry_while_one_is_under_way_has_nothing_to_do(half_failed: IngestionRun) -> None:
    retry_failed(run=half_failed)
    with pytest.raises(Conflict, match="brought again or deleted"):
        retry_failed(run=half_failed)
    assert IngestionRun.objects.count() == 2


def test_a_cancelled_retry_leaves_the_failure_and_its_file(half_failed: IngestionRun) -> None:
    again = cancel_run(run=retry_failed(run=half_failed).run)
    assert (again.state, again.cancelled) == ("cancelled", 2)
    assert document("empty").error_code == "cancelled"
    assert document("empty").file.storage.exists(document("empty").file.name)
    assert retry_failed(run=half_failed).run.total == 2


def test_files_that_are_not_stored_are_named(
    collection: Collection, half_failed: IngestionRun
) -> None:
    IngestionItem.objects.create(
        workspace=collection.workspace, run=half_failed, name="elsewhere.txt", state="failed"
    )
    assert retry_failed(run=half_failed).left_out == ("elsewhere.txt",)
    command = ingest_inline(collection=collection, sources=[text_source("nothing", " ")])
    with pytest.raises(Conflict, match=r"not stored here: nothing\. Run the command again"):
        retry_failed(run=command)


def test_a_run_without_failures_has_nothing_to_retry(collection: Collection) -> None:
    run = upload(collection, note="A text.")
    with pytest.raises(Conflict, match="No file of run"):
        retry_failed(run=run)


# --- at the same moment ------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_cancelled_while_it_is_loaded_a_document_is_there_or_not_never_half() -> None:
    collection = CollectionFactory()
    for turn in range(4):
        run = upload(collection, **{f"t{turn}-{n}": f"Text {n} of {turn}." for n in range(12)})
        ids = list(run.items.values_list("document_id", flat=True))
        staged = pipeline.parse_documents(ids)
        at_once(
            lambda staged=staged: pipeline.embed_documents(staged),
            lambda run=run: _cancel_quietly(run),
            lambda run=run: _cancel_quietly(run),
        )
        run.refresh_from_db()
        assert run.is_finished
        assert run.ready + run.cancelled == run.settled == run.total == 12
        kept = Document.objects.filter(key__startswith=f"t{turn}-")
        assert kept.count() == run.ready
        assert all(row.status == "ready" and row.chunks.count() == 1 for row in kept)
    assert Chunk.objects.count() == Document.objects.count()
    assert services.chunk_count(collection=collection) == Chunk.objects.count()


def _cancel_quietly(run: IngestionRun) -> None:
    try:
        cancel_run(run=run)
    except Conflict:
        assert IngestionRun.objects.get(pk=run.pk).is_finished


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_real_workers_go_on_with_what_was_not_cancelled(
    celery_worker_process: WorkerProcess,
) -> None:
    collection = CollectionFactory()
    cancelled = upload(collection, **{f"c{n}": f"Text {n}." for n in range(150)})
    kept = upload(collection, **{f"k{n}": f"Text {n}." for n in range(20)})
    wait_until(Chunk.objects.exists, what="something is loaded")
    cancel(cancelled)
    wait_until(lambda: not IngestionRun.objects.filter(finished_at=None), what="all has ended")
    cancelled.refresh_from_db()
    kept.refresh_from_db()
    assert (kept.state, kept.ready) == ("succeeded", 20)
    assert cancelled.state == "cancelled"
    assert cancelled.ready + cancelled.cancelled == 150
    assert cancelled.cancelled > 0
    documents = Document.objects.all()
    assert documents.count() == cancelled.ready + kept.ready
    assert all(row.status == "ready" and row.chunk_count == row.chunks.count() for row in documents)
    assert not StagedDocument.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_retries_at_once_one_does_it() -> None:
    run = upload(CollectionFactory(), empty="")
    work("empty")

    def retry() -> bool:
        try:
            return bool(retry_failed(run=run))
        except Conflict:
            return False

    assert sorted(at_once(retry, retry)) == [False, True]
    assert IngestionRun.objects.filter(retry_of=run).count() == 1


@pytest.fixture
def run(notes: Collection) -> IngestionRun:
    return half_done_run(notes)


def runs(*arguments: object) -> str:
    out = StringIO()
    call_command("runs", *map(str, arguments), stdout=out)
    return out.getvalue()


def test_runs_are_listed_and_shown(run: IngestionRun) -> None:
    assert "notes: 1 ready, 1 failed of 3  3 files" in runs("list")
    assert runs("list", "-n", 0) == ""
    shown = runs("show", run.pk)
    assert "parse" in shown
    assert "failed: empty.txt: " in shown


def test_a_program_gets_figures(run: IngestionRun) -> None:
    (listed,) = json.loads(runs("list", "--json"))
    shown = json.loads(runs("show", run.pk, "--json"))
    assert (listed["run"], listed["settled"], listed["waiting"]) == (run.pk, 2, 1)
    assert [failure["code"] for failure in shown["failures"]] == ["empty"]


def test_a_run_is_cancelled_and_retried(run: IngestionRun) -> None:
    assert "Cancelled" in runs("cancel", run.pk)
    run.refresh_from_db()
    assert (run.state, run.cancelled) == ("cancelled", 1)
    again = json.loads(runs("retry", run.pk, "--json"))
    assert (again["retry_of"], again["total"], again["state"]) == (run.pk, 1, "running")
    with pytest.raises(CommandError, match="brought again or deleted") as refused:
        runs("retry", run.pk)
    assert refused.value.returncode == 2


def test_a_run_that_is_not_there_is_told(run: IngestionRun) -> None:
    with pytest.raises(CommandError, match="There is no run 987654") as refused:
        runs("show", 987654)
    assert refused.value.returncode == 2


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_cancels_the_run_of_a_command_cleanly(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"note-{number}.txt").write_text(f"Note {number} tells of topic{number}.")
    # The command, on this test's database.
    environment = {**os.environ, "DATABASE_URL": database_url_of_tests()}
    command = [sys.executable, "manage.py", "ingest", str(tmp_path), "--collection", "notes"]
    process = subprocess.Popen(
        [*command, "--json"],
        cwd=site.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(IngestionRun.objects.filter(total__gt=0).exists, what="the command is at work")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    report: Any = json.loads(out)
    assert (process.returncode, report["state"]) == (130, "cancelled")
    assert b"Ctrl-C again ends at once" in err
    run = IngestionRun.objects.get()
    assert run.settled == run.total == run.ready + run.cancelled
    assert report["documents"]["cancelled"] == run.cancelled > 0
    assert Document.objects.count() == Chunk.objects.count() == run.ready
    assert not StagedDocument.objects.exists()


def test_failed_files_are_retried_as_a_run(api: APIClient, run: IngestionRun) -> None:
    IngestionItem.objects.create(
        workspace=run.workspace, run=run, name="elsewhere.txt", state="failed"
    )
    answer = api.post(f"/api/v1/runs/{run.pk}/retry/")
    told = answer.json()
    assert answer.status_code == 202
    assert answer["Location"] == told["url"]
    assert (told["retry_of"], told["total"], told["state"]) == (run.pk, 1, "running")
    assert told["left_out"] == ["elsewhere.txt"]
    assert api.post(f"/api/v1/runs/{run.pk}/retry/").status_code == 409
