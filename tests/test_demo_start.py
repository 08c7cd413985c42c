"""The demo of `make run`: left to the workers, read once, its progress in the terminal."""

import re
from pathlib import Path

import pytest
from django.test import Client

from documents import demo_corpus
from documents.ingestion import pipeline
from documents.ingestion.sources import storable_key
from documents.models import Document, IngestionRun
from documents.tests.commands import run_command
from ragsite.management.commands.up import follow_demo

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture(autouse=True)
def firm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A demo of two texts, an empty file and no documentation."""
    folder = tmp_path / "firm"
    folder.mkdir()
    (folder / "bells.md").write_text("# Bells\n\nBells are ordered in March.")
    (folder / "tyres.md").write_text("# Tyres\n\nTyres are checked every Monday.")
    (folder / "empty.md").touch()
    monkeypatch.setattr(demo_corpus, "FIRM", folder)
    monkeypatch.setattr("documents.services.demo.docs_sources", list)
    return folder


def demo() -> str:
    code, said = run_command("demo", "--queue")
    assert code == 0, said
    return said


def link_in(said: str) -> str:
    found = re.search(r"^Link: http://127\.0\.0\.1:8000(/\S+) ", said, re.M)
    assert found, said
    return found[1]


def work(*names: str) -> None:
    """What workers do with these documents."""
    found = [Document.objects.get(key__endswith=f"/{name}").pk for name in names]
    pipeline.embed_documents(pipeline.parse_documents(found))


def followed(work_meanwhile: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What `up` says while workers read these documents between its looks."""
    steps = iter(work_meanwhile)
    monkeypatch.setattr("ragsite.management.commands.up.sleep", lambda _: work(*next(steps)))
    said: list[str] = []
    follow_demo(said.append)
    return said


def test_the_login_and_a_link_are_printed_first_and_once(client: Client) -> None:
    first = demo().splitlines()
    assert first[0] == "Login: demo"
    assert first[1].startswith("Password: ")
    assert first[3] == "The site reads 3 documents of the demo when it runs."
    link = link_in(first[2])
    client.post(link)
    assert client.get("/").status_code == 200

    assert demo().splitlines()[1].startswith("Password: as before")


def test_the_terminal_follows_the_documents_and_names_what_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    demo()
    *progress, failed = followed([["bells.md"], ["empty.md", "tyres.md"]], monkeypatch)
    assert progress == [f"reading the demo: {n} of 3 documents" for n in (0, 1, 3)]
    assert failed.startswith("failed: ")
    assert "empty.md: The file is empty" in failed


def test_where_nothing_waits_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed([], monkeypatch) == []


def test_a_second_start_goes_on_and_a_third_reads_what_changed(firm: Path) -> None:
    (firm / "empty.md").unlink()
    demo()
    work("bells.md")
    assert "reads 1 document " in demo(), "which waits since the first start"
    assert IngestionRun.objects.count() == 1
    work("tyres.md")
    assert IngestionRun.objects.get().state == "succeeded"
    assert "reads" not in demo()

    (firm / "bells.md").write_text("# Bells\n\nBells are ordered in April.")
    assert "reads 1 document " in demo()
    work("bells.md")
    assert [run.total for run in IngestionRun.objects.order_by("pk")] == [2, 1]
    assert Document.objects.filter(status="ready").count() == 2


def test_the_start_page_shows_progress_and_questions_as_documents_arrive(
    client: Client, firm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "When are bells ordered?"
    monkeypatch.setattr(
        "search.presentation.firm_questions",
        lambda: {storable_key(str(firm / "bells.md")): question},
    )
    client.post(link_in(demo()))

    page = client.get("/").text
    assert "0 of 3 files" in page
    assert 'hx-trigger="every 2s"' in page
    assert '<noscript><meta http-equiv="refresh"' in page
    assert question not in page

    work("bells.md")
    part = client.get("/", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert "1 of 3 files" in part
    assert question in part

    work("tyres.md", "empty.md")
    part = client.get("/", headers={"HX-Request": "true"}).text
    assert "hx-trigger" not in part
    assert question in part
