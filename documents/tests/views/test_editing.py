"""Changing passages and documents in pages, what changed between versions, and downloads."""

import pytest
from django.core.files.base import ContentFile
from django.test import Client

from documents.ingestion.sources import text_source
from documents.models import Chunk, ChunkEdit, Collection, Document
from documents.services import ingest_inline
from documents.tests.views.reading import parse, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "Leave is 28 days.\n\nTrains are booked alone."


@pytest.fixture
def note(notes: Collection) -> Document:
    ingest_inline(collection=notes, sources=[text_source("note", TEXT, metadata={"year": 2025})])
    return Document.objects.get(key="note")


def address(document: Document, rest: str = "") -> str:
    return f"/documents/notes/{document.pk}/{rest}"


def test_a_passage_is_changed_shown_and_given_back(client: Client, note: Document) -> None:
    chunk = Chunk.objects.get(document=note)
    form_address = address(note, f"passages/{chunk.pk}/")
    page = parse(client.get(address(note, f"?chunk={chunk.pk}")))
    assert form_address in [link.get("href") for link in page.iterfind(".//a")]
    form = parse(client.get(form_address))
    [area] = form.findall(".//textarea")
    assert area.text.strip() == TEXT
    body = {"text": TEXT.replace("28", "30"), "expected": chunk.content_sha256}
    saved = client.post(form_address, body, follow=True)
    assert saved.redirect_chain == [(address(note, f"?chunk={chunk.pk}#passage"), 302)]
    assert "Leave is 30 days." in words(parse(saved))
    changes = parse(client.get(address(note, "edits/")))
    assert [mark.text for mark in changes.iterfind(".//del")] == ["28"]
    assert [mark.text for mark in changes.iterfind(".//ins")] == ["30"]
    undo = address(note, f"edits/{ChunkEdit.objects.get().pk}/undo/")
    assert "Leave is 28 days." in words(parse(client.post(undo, follow=True)))
    again = client.post(undo, follow=True)
    assert "undone already" in words(parse(again))


def test_a_form_that_is_out_of_date_says_so_and_keeps_what_was_typed(
    client: Client, note: Document
) -> None:
    chunk = Chunk.objects.get(document=note)
    form_address = address(note, f"passages/{chunk.pk}/")
    body = {"text": "Theirs.", "expected": chunk.content_sha256}
    client.post(form_address, body)
    late = client.post(form_address, {**body, "text": "Mine, typed at length."})
    assert late.status_code == 400
    tree = parse(late)
    assert "Somebody changed this passage meanwhile" in words(tree)
    assert tree.find(".//textarea").text.strip() == "Mine, typed at length."
    assert Chunk.objects.get(pk=chunk.pk).text == "Theirs."


def test_title_and_metadata_are_changed_as_lines(client: Client, note: Document) -> None:
    form = parse(client.get(address(note, "change/")))
    assert form.find(".//textarea").text.strip() == "year: 2025"
    body = {"title": "Handbook", "metadata": 'year: 2026\nowner: Ada: HR\ntags: ["a", "b"]'}
    page = client.post(address(note, "change/"), body, follow=True)
    assert parse(page).find(".//h1").text == "Handbook"
    note.refresh_from_db()
    assert note.metadata == {"year": 2026, "owner": "Ada: HR", "tags": ["a", "b"]}
    wrong = client.post(address(note, "change/"), {"title": "Handbook", "metadata": "no colon"})
    assert wrong.status_code == 400
    assert "“no colon” has none" in words(parse(wrong))


def test_viewers_see_no_way_to_change(bob: Client, client: Client, note: Document) -> None:
    chunk = Chunk.objects.get(document=note)
    client.post(
        address(note, f"passages/{chunk.pk}/"),
        {"text": "Changed.", "expected": chunk.content_sha256},
    )
    page = bob.get(address(note, f"?chunk={chunk.pk}")).text
    assert f"passages/{chunk.pk}/" not in page
    assert "change/" not in page


def test_a_change_that_was_not_kept_is_told_until_it_is_dismissed(
    client: Client, note: Document, notes: Collection
) -> None:
    chunk = Chunk.objects.get(document=note)
    body = {"text": TEXT.replace("28", "30"), "expected": chunk.content_sha256}
    client.post(address(note, f"passages/{chunk.pk}/"), body)
    ingest_inline(collection=notes, sources=[text_source("note", "All of it is new.")])
    told = "1 change by hand could not be reapplied"
    assert told in words(parse(client.get(address(note))))
    client.post(address(note, f"edits/{ChunkEdit.objects.get().pk}/dismiss/"))
    assert told not in words(parse(client.get(address(note))))


def test_what_changed_between_versions_is_marked_word_by_word(
    client: Client, note: Document, notes: Collection
) -> None:
    assert client.get(address(note, "compare/")).status_code == 404
    source = text_source("note", TEXT.replace("28", "30"), metadata={"year": 2026})
    ingest_inline(collection=notes, sources=[source], policy="new_version")
    new = Document.objects.get(key="note", is_current=True)
    tree = parse(client.get(address(new, "compare/")))
    assert [mark.text for mark in tree.iterfind(".//del")] == ["2025", "28", "28"]
    assert [mark.text for mark in tree.iterfind(".//ins")] == ["2026", "30", "30"]
    same = parse(client.get(address(note, f"compare/?with={new.pk}")))
    assert [mark.text for mark in same.iterfind(".//ins")] == ["2026", "30", "30"]


def test_the_original_and_the_text_are_downloaded(client: Client, note: Document) -> None:
    assert client.get(address(note, "download/")).status_code == 404
    text = client.get(address(note, "text/"))
    assert text.text == TEXT
    assert text.headers["Content-Disposition"] == 'attachment; filename="note.txt"'
    note.file.save("1", ContentFile(b"\x00<script>"))
    original = client.get(address(note, "download/"))
    assert b"".join(original.streaming_content) == b"\x00<script>"
    assert original.headers["X-Content-Type-Options"] == "nosniff"
    assert original.headers["Content-Security-Policy"].endswith("sandbox")
    assert original.headers["Content-Type"] == "application/octet-stream"
