"""`manage.py runs`, and Ctrl-C while `manage.py ingest` works."""

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as site
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command

from documents.ingestion import pipeline
from documents.models import Chunk, Document, IngestionRun, StagedDocument
from documents.services import Upload, ingest_uploads
from documents.tests.factories import CollectionFactory
from tests.plugin import database_url_of_tests, wait_until

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def run() -> IngestionRun:
    """One file is ready, one has failed, one waits."""
    names = {"ready.txt": b"Some words.", "empty.txt": b"", "waiting.txt": b"More words."}
    uploads = [Upload(name=name, file=ContentFile(data)) for name, data in names.items()]
    run = ingest_uploads(collection=CollectionFactory(slug="notes"), uploads=uploads)
    worked = Document.objects.exclude(key="waiting.txt").values_list("id", flat=True)
    pipeline.embed_documents(pipeline.parse_documents(list(worked)))
    return run


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


def ingesting(folder: Path) -> "subprocess.Popen[bytes]":
    """The command, on this test's database."""
    environment = {**os.environ, "DATABASE_URL": database_url_of_tests()}
    command = [sys.executable, "manage.py", "ingest", str(folder), "--collection", "notes"]
    return subprocess.Popen(
        [*command, "--json"],
        cwd=site.BASE_DIR,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.django_db(transaction=True)
def test_ctrl_c_cancels_the_run_of_a_command_cleanly(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / f"note-{number}.txt").write_text(f"Note {number} tells of topic{number}.")
    process = ingesting(tmp_path)
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
