"""A document: its text with the passage, and its end."""

import pytest
from django.test import Client

from accounts.models import Membership
from documents.models import Chunk, Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
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
