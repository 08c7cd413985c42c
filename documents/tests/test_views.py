"""Pages of collections, documents, uploads and runs."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from lxml import html as lxml_html

from accounts.models import Membership, Role
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
HTMX = {"HX-Request": "true"}


def logged_in(member: Membership) -> Client:
    client = Client()
    client.force_login(member.user)
    return client


@pytest.fixture
def alice() -> Membership:
    """The owner."""
    return MembershipFactory()


@pytest.fixture
def client(alice: Membership) -> Client:
    return logged_in(alice)


@pytest.fixture
def bob(alice: Membership) -> Client:
    """A viewer."""
    return logged_in(MembershipFactory(workspace=alice.workspace, role=Role.VIEWER))


@pytest.fixture
def charlie() -> Client:
    """The owner of another workspace."""
    return logged_in(MembershipFactory())


@pytest.fixture
def notes(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, slug="notes", name="Notes")


@pytest.fixture
def letter(notes: Collection) -> Document:
    """Two paragraphs, a passage each."""
    document = DocumentFactory(collection=notes, title="A letter", key="letters/a.txt")
    ChunkFactory(document=document, text="Dear reader,", start=0, end=12)
    ChunkFactory(document=document, text="all is well.", start=14, end=26)
    return document


def parse(answer: Any) -> lxml_html.HtmlElement:
    return lxml_html.document_fromstring(answer.text)


def words(element: lxml_html.HtmlElement) -> str:
    """The text as a reader hears it."""
    return " ".join(" ".join(element.itertext()).split())


def rows(tree: lxml_html.HtmlElement) -> list[str]:
    """The first line of each row's name."""
    return [next(row.find("th").itertext()).strip() for row in tree.iterfind(".//tbody/tr")]


def href(tree: lxml_html.HtmlElement, text: str) -> str:
    """The address of the first link with this text."""
    found = (link for link in tree.iterfind(".//a") if link.text_content().strip() == text)
    return str(next(found).get("href"))


# --- who may what ------------------------------------------------------------------------------


def paths(letter: Document) -> list[str]:
    run = RunFactory(collection=letter.collection)
    return [
        "/documents/notes/",
        "/documents/notes/upload/",
        "/documents/notes/delete/",
        f"/documents/notes/{letter.pk}/",
        f"/documents/notes/{letter.pk}/delete/",
        f"/runs/{run.pk}/",
    ]


def test_an_outsider_finds_no_page_of_it(charlie: Client, letter: Document) -> None:
    for path in paths(letter):
        assert charlie.get(path).status_code == 404, path
    for path in ("/documents/", "/runs/"):
        assert "Notes" not in charlie.get(path).text, path


def test_a_viewer_reads_and_is_offered_no_change(bob: Client, letter: Document) -> None:
    collection, _upload, _delete, document, _delete_document, run = paths(letter)

    for path in ("/documents/", collection, document, "/runs/", run):
        answer = bob.get(path)
        assert answer.status_code == 200, path
        assert "/upload/" not in answer.text, path
        assert "/delete/" not in answer.text, path
        assert "New collection" not in answer.text, path


def test_a_viewer_changes_nothing(bob: Client, letter: Document) -> None:
    file = SimpleUploadedFile("a.txt", b"text")
    attempts = [
        bob.post("/documents/", {"name": "Mine"}),
        bob.post("/documents/notes/upload/", {"files": [file]}),
        bob.post("/documents/notes/delete/", {"name": "Notes"}),
        bob.post(f"/documents/notes/{letter.pk}/delete/"),
    ]

    assert [answer.status_code for answer in attempts] == [403] * 4
    assert "Ask an owner" in attempts[0].text
    assert (Collection.objects.count(), Document.objects.count()) == (1, 1)
    assert not IngestionRun.objects.exists()


def test_an_outsider_changes_nothing(charlie: Client, letter: Document) -> None:
    file = SimpleUploadedFile("a.txt", b"text")

    assert charlie.post("/documents/notes/upload/", {"files": [file]}).status_code == 404
    assert charlie.post("/documents/notes/delete/", {"name": "Notes"}).status_code == 404
    assert charlie.post(f"/documents/notes/{letter.pk}/delete/").status_code == 404
    assert Document.objects.count() == 1


def test_a_document_with_an_access_list_is_there_for_those_on_it(
    client: Client, bob: Client, alice: Membership, notes: Collection
) -> None:
    secret = DocumentFactory(collection=notes, title="Secret", access=[f"user:{alice.user_id}"])
    ChunkFactory(document=secret, text="Confidential.")
    path = f"/documents/notes/{secret.pk}/"

    assert "Confidential." in client.get(path).text
    assert bob.get(path).status_code == 404
    assert "Secret" not in bob.get("/documents/notes/").text


def test_every_change_needs_its_token(alice: Membership, letter: Document) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice.user)

    assert client.post("/documents/", {"name": "Mine"}).status_code == 403
    assert client.post("/documents/notes/delete/", {"name": "Notes"}).status_code == 403
    assert client.post(f"/documents/notes/{letter.pk}/delete/").status_code == 403
    assert Document.objects.count() == 1


def test_reading_pages_take_no_other_method(client: Client, letter: Document) -> None:
    for path in ("/documents/notes/", f"/documents/notes/{letter.pk}/", "/runs/"):
        assert client.post(path).status_code == 405


# --- collections -------------------------------------------------------------------------------


def test_the_list_counts_documents_and_failures(client: Client, letter: Document) -> None:
    DocumentFactory(collection=letter.collection, status=Document.Status.FAILED)
    cells = [words(cell) for cell in parse(client.get("/documents/")).iterfind(".//tbody/tr/*")]

    assert cells[:2] == ["Notes", "2 1 failed"]


def test_without_collections_the_form_for_the_first_is_open(client: Client) -> None:
    tree = parse(client.get("/documents/"))

    assert "No collections yet" in tree.text_content()
    assert tree.find(".//details[@id='new']").get("open") is not None


def test_a_new_collection_leads_to_its_upload(client: Client, alice: Membership) -> None:
    answer = client.post("/documents/", {"name": "Case law", "language": "de"})

    made = Collection.objects.get()
    assert answer.url == "/documents/case-law/upload/"
    assert (made.workspace, made.name, made.default_language) == (alice.workspace, "Case law", "de")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "This field is required."),
        ({"name": "Notes"}, "There is a collection “notes” already."),
        ({"name": "Other", "language": "xx"}, "no language code"),
        ({"name": "Other", "slug": "Not A Slug"}, "letters, numbers"),
        ({"name": "!!!"}, "stands in the address"),
    ],
)
def test_a_collection_that_cannot_be_says_why_beside_the_field(
    client: Client, notes: Collection, fields: dict[str, str], message: str
) -> None:
    answer = client.post("/documents/", fields)

    assert answer.status_code == 400
    assert message in parse(answer).find(".//*[@class='errorlist']").text_content()
    assert Collection.objects.get() == notes


def test_a_collection_shows_its_documents_newest_first_in_pages(
    client: Client, notes: Collection
) -> None:
    DocumentFactory.create_batch(120, collection=notes)
    names = [document.title for document in Document.objects.order_by("-id")]

    first = parse(client.get("/documents/notes/"))
    second = parse(client.get("/documents/notes/" + href(first, "Older")))
    third = parse(client.get("/documents/notes/" + href(second, "Older")))
    back = parse(client.get("/documents/notes/" + href(third, "Newer")))

    assert [*rows(first), *rows(second), *rows(third)] == names
    assert rows(back) == rows(second)
    assert not [link for link in third.iterfind(".//a") if link.text_content() == "Older"]
    assert not [link for link in first.iterfind(".//a") if link.text_content() == "Newer"]


def test_a_page_of_documents_stays_while_others_are_added(
    client: Client, notes: Collection
) -> None:
    DocumentFactory.create_batch(60, collection=notes)
    older = "/documents/notes/" + href(parse(client.get("/documents/notes/")), "Older")
    before = rows(parse(client.get(older)))

    DocumentFactory.create_batch(5, collection=notes)

    assert rows(parse(client.get(older))) == before


@pytest.mark.parametrize("params", [{"before": "x"}, {"after": "9" * 40}, {"before": "-1"}])
def test_a_strange_place_in_the_list_is_not_an_error(
    client: Client, letter: Document, params: dict[str, str]
) -> None:
    assert rows(parse(client.get("/documents/notes/", params))) == ["A letter"]


def test_documents_can_be_narrowed_to_a_state_and_say_why_they_failed(
    client: Client, letter: Document
) -> None:
    DocumentFactory(
        collection=letter.collection,
        title="Broken",
        status=Document.Status.FAILED,
        error="The PDF is encrypted. Remove its password.",
    )
    answer = client.get("/documents/notes/", {"status": "failed"})

    assert words(parse(answer).find(".//tbody//th")) == (
        "Broken The PDF is encrypted. Remove its password."
    )
    assert "No document is queued" in client.get("/documents/notes/", {"status": "queued"}).text


def test_a_collection_can_be_searched_from_its_page(client: Client, letter: Document) -> None:
    form = parse(client.get("/documents/notes/")).find(".//form[@class='inside']")

    assert form.get("action") == "/"
    assert [(field.get("name"), field.get("value")) for field in form.iterfind(".//input")] == [
        ("collection", "notes"),
        ("q", None),
    ]


def test_an_unknown_collection_names_the_known_ones(client: Client, notes: Collection) -> None:
    answer = client.get("/documents/nope/")

    assert answer.status_code == 404
    assert "There are: notes." in answer.text


def test_deleting_a_collection_shows_what_goes_and_takes_its_name(
    client: Client, letter: Document
) -> None:
    RunFactory(collection=letter.collection)
    shown = parse(client.get("/documents/notes/delete/")).find(".//form[@class='card narrowcard']")
    told = words(shown)

    for part in ("1 document with", "2 searchable passages", "1 run", "A letter"):
        assert part in told

    refused = client.post("/documents/notes/delete/", {"name": "notes"})
    assert refused.status_code == 400
    assert "Type “Notes”" in refused.text
    assert Chunk.objects.count() == 2

    assert client.post("/documents/notes/delete/", {"name": "Notes"}).url == "/documents/"
    assert not Collection.objects.exists()
    assert not Chunk.objects.exists()


# --- documents ---------------------------------------------------------------------------------


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
    query = {"chunk": 1, "q": "is well", "mode": "lexical", "collection": "notes", "page": 2}
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


def test_what_a_document_says_of_itself_is_shown_and_never_run(
    client: Client, notes: Collection
) -> None:
    evil = "</title><script>alert(1)</script><img src=x onerror=alert(1)>"
    document = DocumentFactory(
        collection=notes,
        title=evil,
        key=evil,
        rendering="markdown",
        metadata={evil: [evil, {"deep": evil}]},
        error=evil,
    )
    ChunkFactory(document=document, text=evil, heading_path=[evil], start=0)
    item = ItemFactory(run__collection=notes, name=evil, error=evil, document=document)

    for path in (
        "/documents/notes/",
        f"/documents/notes/{document.pk}/?q={evil}&chunk={evil}",
        f"/documents/notes/{document.pk}/delete/",
        "/documents/notes/delete/",
        f"/runs/{item.run_id}/",
        "/",
    ):
        tree = parse(client.get(path))
        assert all(script.get("src") for script in tree.iterfind(".//script")), path
        assert tree.find(".//img[@onerror]") is None, path


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


# --- uploads -----------------------------------------------------------------------------------


def upload(client: Client, *files: tuple[str, bytes], **fields: Any) -> Any:
    sent = [SimpleUploadedFile(name, data) for name, data in files]
    return client.post("/documents/notes/upload/", {"files": sent, **fields})


def test_uploaded_files_become_a_run_to_watch(client: Client, notes: Collection) -> None:
    answer = upload(client, ("a.txt", b"one"), ("b.md", b"# two"))

    run = IngestionRun.objects.get()
    assert answer.url == f"/runs/{run.pk}/"
    assert (run.collection, run.total) == (notes, 2)
    assert run.user is not None
    assert sorted(run.items.values_list("name", flat=True)) == ["a.txt", "b.md"]
    assert {document.status for document in Document.objects.all()} == {"queued"}


def test_the_folders_of_a_file_are_kept_in_its_key(client: Client, notes: Collection) -> None:
    paths = ["law/2024/a.txt", "law/2025/a.txt"]
    upload(client, ("a.txt", b"one"), ("a.txt", b"two"), paths=json.dumps(paths))

    assert sorted(Document.objects.values_list("key", flat=True)) == paths


@pytest.mark.parametrize("sent", ["not json", "{}", '["one"]', "[1, 2, 3]", "null", ""])
def test_paths_that_do_not_fit_the_files_are_left_out(
    client: Client, notes: Collection, sent: str
) -> None:
    upload(client, ("a.txt", b"one"), ("b.txt", b"two"), paths=sent)

    assert sorted(Document.objects.values_list("key", flat=True)) == ["a.txt", "b.txt"]


def test_a_name_decides_nothing_about_where_a_file_is_stored(
    client: Client, notes: Collection, media_root: Any
) -> None:
    upload(client, ("a.txt", b"one"), paths=json.dumps(["../../../../etc/passwd\x00"]))

    document = Document.objects.get()
    stored = media_root / document.file.name
    assert stored.read_bytes() == b"one"
    assert stored.resolve().is_relative_to(media_root)
    assert "passwd" not in document.file.name


def test_unchanged_files_are_skipped_unless_asked_for_again(
    client: Client, notes: Collection
) -> None:
    upload(client, ("a.txt", b"one"))
    upload(client, ("a.txt", b"one"), again="on")

    policies = IngestionRun.objects.order_by("id").values_list("policy", flat=True)
    assert list(policies) == ["skip_if_unchanged", "overwrite"]


def test_nothing_sent_is_said(client: Client, notes: Collection) -> None:
    answer = upload(client)

    assert answer.status_code == 400
    assert "Choose at least one" in parse(answer).get_element_by_id("upload-errors").text_content()


def test_a_file_that_is_too_large_is_named_and_nothing_is_stored(
    client: Client, notes: Collection, settings: Any
) -> None:
    settings.MAX_UPLOAD_BYTES = 10
    answer = upload(client, ("small.txt", b"one"), ("large.txt", b"x" * 11))

    assert answer.status_code == 400
    assert "large.txt (11\xa0bytes)" in answer.text
    assert "small.txt" not in parse(answer).get_element_by_id("upload-errors").text_content()
    assert not IngestionRun.objects.exists()


def test_too_many_files_are_refused_with_the_limit(
    client: Client, notes: Collection, settings: Any
) -> None:
    settings.MAX_UPLOAD_FILES = settings.DATA_UPLOAD_MAX_NUMBER_FILES = 2
    answer = upload(client, *[(f"{number}.txt", b"x") for number in range(3)])

    assert answer.status_code == 400
    assert "More than 2 files" in answer.text
    assert not IngestionRun.objects.exists()


def test_an_empty_file_is_no_reason_to_refuse_the_others(client: Client, notes: Collection) -> None:
    upload(client, ("empty.txt", b""), ("a.txt", b"one"))

    assert IngestionRun.objects.get().total == 2


# --- runs --------------------------------------------------------------------------------------


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


def test_a_run_tells_its_pace_and_what_is_left(client: Client, run: IngestionRun) -> None:
    text = client.get(f"/runs/{run.pk}/").text

    assert "about 10 s left" in text
    assert "12 files a minute" in text
    assert "30 passages a minute" in text


def test_a_run_is_followed_until_it_ends(client: Client, run: IngestionRun) -> None:
    path = f"/runs/{run.pk}/"
    part = client.get(path, headers=HTMX)
    assert f'hx-get="{path}"' in part.text
    assert "<html" not in part.text
    assert "<noscript>" in client.get(path).text

    run.finished_at, run.state = timezone.now(), IngestionRun.State.PARTIAL
    run.save()

    ended = client.get(path, headers=HTMX)
    assert "hx-get" not in ended.text
    assert "The run has ended: 1 ready, 0 unchanged, 1 failed." in ended.text
    assert "htmx" not in client.get(path).text


def test_the_part_of_a_page_is_never_kept_for_the_page(client: Client, run: IngestionRun) -> None:
    answer = client.get(f"/runs/{run.pk}/", headers=HTMX)

    assert "HX-Request" in answer["Vary"]
    assert answer["Cache-Control"] == "no-store"


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
