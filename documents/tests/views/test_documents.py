"""A document and its versions: what its page shows, and what is changed there."""

from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import Membership
from documents.ingestion.sources import text_source
from documents.models import Chunk, ChunkEdit, Collection, Document, IngestionRun
from documents.services import ingest_inline
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory, UserFactory
from documents.tests.views.reading import href, parse, words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


def test_a_document_shows_its_text_with_the_passage_marked(
    client: Client, letter: Document
) -> None:
    chunk = letter.chunks.get(ordinal=1)
    tree = parse(client.get(f"/documents/notes/{letter.pk}/", {"chunk": chunk.pk, "q": "well"}))

    assert tree.findtext(".//h1") == "A letter"
    paragraphs = [found.text for found in tree.iterfind(".//article/p")]
    assert paragraphs == ["Dear reader,", "all is well."]
    assert tree.find(".//*[@id='passage']").text_content() == "all is well."
    assert words(tree.find(".//*[@class='steps']")).startswith("2 of 2")


def test_the_way_back_keeps_the_whole_search(client: Client, letter: Document) -> None:
    query = {
        "chunk": 1,
        "words": "well",
        "q": "is well",
        "mode": "lexical",
        "collection": "notes",
        "page": 2,
    }
    tree = parse(client.get(f"/documents/notes/{letter.pk}/", query))

    back = href(tree, "Back to the results")
    assert back == "/?q=is+well&mode=lexical&collection=notes&page=2"
    assert "Back to" not in client.get(f"/documents/notes/{letter.pk}/").text


def test_a_passage_that_is_gone_is_said_to_be(client: Client, letter: Document) -> None:
    tree = parse(client.get(f"/documents/notes/{letter.pk}/", {"chunk": "999999999"}))

    assert "no longer there" in tree.text_content()
    assert tree.find(".//*[@id='passage']") is None


def test_a_long_document_comes_in_parts_and_a_passage_opens_its_own(
    client: Client, notes: Collection
) -> None:
    document = DocumentFactory(collection=notes)
    for number in range(4):
        text = f"Part {number} begins. " + "word " * 8000 + f"Part {number} ends."
        ChunkFactory(document=document, text=text, start=number * 50_000)
    path = f"/documents/notes/{document.pk}/"
    chunk = document.chunks.get(ordinal=2)

    first, third = client.get(path).text, client.get(path, {"chunk": chunk.pk}).text
    assert "Part 1 of 4" in first
    assert "Part 0 ends." in first
    assert "Part 2 ends." not in first
    assert "Part 3 of 4" in third
    assert "Part 2 begins." in words(parse(client.get(path, {"part": "3"})).find(".//article"))
    assert "Part 4 of 4" in client.get(path, {"part": "99"}).text
    assert "Part 1 of 4" in client.get(path, {"part": "x"}).text


def test_headings_of_the_passages_are_the_outline_of_a_plain_text(
    client: Client, notes: Collection
) -> None:
    document = DocumentFactory(collection=notes)
    for path in (["One"], ["One", "A"], ["One", "A"], ["One", "B"], ["Two", "A"]):
        ChunkFactory(document=document, heading_path=path)
    tree = parse(client.get(f"/documents/notes/{document.pk}/"))

    entries = tree.get_element_by_id("outline").iterfind(".//li")
    assert [(entry.get("class"), entry.text_content()) for entry in entries] == [
        ("level1", "One"),
        ("level2", "A"),
        ("level2", "B"),
        ("level1", "Two"),
        ("level2", "A"),
    ]


def test_a_document_in_work_says_that_its_text_will_come(client: Client, notes: Collection) -> None:
    document = DocumentFactory(collection=notes, status=Document.Status.QUEUED)

    assert "is being processed" in client.get(f"/documents/notes/{document.pk}/").text


def test_a_document_belongs_to_the_collection_in_its_address(
    client: Client, alice: Membership, letter: Document
) -> None:
    CollectionFactory(workspace=alice.workspace, slug="other")

    assert client.get(f"/documents/other/{letter.pk}/").status_code == 404
    assert client.get(f"/documents/notes/{10**30}/").status_code == 404


def test_deleting_a_document_shows_what_goes_first(client: Client, letter: Document) -> None:
    path = f"/documents/notes/{letter.pk}/delete/"

    assert "<strong>2</strong> searchable passages" in client.get(path).text
    assert Document.objects.count() == 1
    assert client.post(path).url == "/documents/notes/"
    assert (Document.objects.count(), Chunk.objects.count()) == (0, 0)


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


def ingest(collection: Collection, key: str, text: str, **options: Any) -> None:
    options = {"policy": IngestionRun.Policy.NEW_VERSION, **options}
    ingest_inline(collection=collection, sources=[text_source(key, text)], **options)


@pytest.fixture
def versions(notes: Collection) -> list[Document]:
    """Three versions of a note, oldest first."""
    for text in ("The first text.", "The second text.", "The third text."):
        ingest(notes, "note", text)
    return list(Document.objects.order_by("version"))


def test_a_superseded_version_says_so_and_leads_to_the_current_one(
    client: Client, versions: list[Document]
) -> None:
    tree = parse(client.get(f"/documents/notes/{versions[1].pk}/"))
    said = words(tree)
    assert "version 2 of 3" in said
    assert "Version 2 is superseded. It can be read here but is not searched." in said
    assert "The second text." in said
    assert href(tree, "Read the current version 3") == f"/documents/notes/{versions[2].pk}/"
    assert href(tree, "Version 1") == f"/documents/notes/{versions[0].pk}/"


def test_the_current_version_leads_to_the_others(client: Client, versions: list[Document]) -> None:
    said = words(parse(client.get(f"/documents/notes/{versions[2].pk}/")))
    assert "version 3 of 3" in said
    assert "superseded" not in said


def test_lists_and_counts_know_the_current_version_only(
    client: Client, versions: list[Document]
) -> None:
    listed = parse(client.get("/documents/notes/")).findall(".//tbody/tr")
    assert len(listed) == 1
    assert client.get("/api/v1/collections/notes/").json()["document_count"] == 1
    answer = client.get("/api/v1/documents/?collection=notes").json()
    assert [row["version"] for row in answer["results"]] == [3]


def test_the_api_lists_and_opens_all_versions(client: Client, versions: list[Document]) -> None:
    answer = client.get("/api/v1/documents/?collection=notes&key=note&versions=all").json()
    assert [(row["version"], row["is_current"]) for row in answer["results"]] == [
        (3, True),
        (2, False),
        (1, False),
    ]
    (chunk,) = client.get(f"/api/v1/documents/{versions[0].pk}/chunks/").json()["results"]
    assert chunk["text"] == "The first text."


def test_a_link_shows_the_text_of_its_original(client: Client, notes: Collection) -> None:
    ingest(notes, "first.txt", "Dear reader, all is well.")
    ingest(notes, "second.txt", "Dear reader, all is well.", store_once=True)
    first, second = Document.objects.order_by("pk")
    tree = parse(client.get(f"/documents/notes/{second.pk}/"))
    assert "Dear reader, all is well." in words(tree)
    assert "stored and found only there" in words(tree)
    assert href(tree, "First") == f"/documents/notes/{first.pk}/"
    shown = client.get(f"/api/v1/documents/{second.pk}/").json()
    assert (shown["duplicate_of"], shown["chunk_count"], shown["is_searchable"]) == (
        *(first.pk, 0),
        True,
    )
    (chunk,) = client.get(f"/api/v1/documents/{second.pk}/chunks/").json()["results"]
    assert chunk["text"] == "Dear reader, all is well."


def test_an_original_that_one_may_not_see_is_not_named(client: Client, notes: Collection) -> None:
    ingest(notes, "first.txt", "Dear reader, all is well.")
    ingest(notes, "second.txt", "Dear reader, all is well.")
    first, second = Document.objects.order_by("pk")
    assert "The same file as First" in words(parse(client.get(f"/documents/notes/{second.pk}/")))
    Document.objects.filter(pk=first.pk).update(access=["user:0"])
    assert "First" not in words(parse(client.get(f"/documents/notes/{second.pk}/")))


def test_deletion_tells_of_all_versions_and_deletes_them(
    client: Client, versions: list[Document]
) -> None:
    path = f"/documents/notes/{versions[2].pk}/delete/"
    said = words(parse(client.get(path)))
    assert "all 3 versions" in said
    assert "3 passages" in said
    client.post(path)
    assert not Document.objects.exists()


def test_the_upload_form_keeps_versions_and_stores_once(client: Client, notes: Collection) -> None:
    client.post(
        "/documents/notes/upload/",
        {
            "files": SimpleUploadedFile("note.txt", b"Some text."),
            "versions": "on",
            "store_once": "on",
        },
    )
    run = IngestionRun.objects.get()
    assert (run.policy, run.store_once) == ("new_version", True)


def test_the_admin_lists_current_documents_and_prunes_versions(
    client: Client, versions: list[Document]
) -> None:
    client.force_login(UserFactory(is_superuser=True))
    path = reverse("admin:documents_document_changelist")
    counts = {
        asked: client.get(path, {"versions": asked} if asked else {}).context["cl"].result_count
        for asked in ("", "superseded", "all")
    }
    assert counts == {"": 1, "superseded": 2, "all": 3}
    client.post(path, {"action": "prune_versions", "_selected_action": [versions[2].pk]})
    assert list(Document.objects.all()) == [versions[2]]
