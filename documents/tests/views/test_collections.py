"""The list of collections, one of them, its end, and files that are sent into it."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import Membership, Role
from common.options import option_fields
from documents.admin.collections import CollectionAdmin
from documents.api.serializers import CollectionChangeSerializer, NewCollectionSerializer
from documents.collection_options import CollectionOptions
from documents.forms import CollectionForm
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.tests.factories import DocumentFactory, MembershipFactory, RunFactory
from documents.tests.views.reading import href, parse, rows, words
from reading.chunkers import CHUNKERS
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


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
        ({"name": "!!!"}, "can stand in an address"),
        ({"name": "Other", "chunker": "clever"}, "clever is not one of the available choices"),
        ({"name": "Other", "chunker_options": "large"}, "Names: max_tokens, overlap"),
        ({"name": "Other", "chunker_options": "size=3"}, "has no option “size”"),
        ({"name": "Other", "chunker": "none", "chunker_options": "overlap=3"}, "It has none."),
    ],
)
def test_a_collection_that_cannot_be_says_why_beside_the_field(
    client: Client, notes: Collection, fields: dict[str, str], message: str
) -> None:
    answer = client.post("/documents/", fields)

    assert answer.status_code == 400
    assert message in parse(answer).find(".//*[@class='errorlist']").text_content()
    assert Collection.objects.get() == notes


def test_a_new_collection_is_cut_as_chosen(client: Client, alice: Membership) -> None:
    tree = parse(client.get("/documents/"))
    offered = [words(option) for option in tree.iterfind(".//select[@name='chunker']/option")]
    assert len(offered) == len(CHUNKERS)
    assert offered[0] == "auto: What suits the file: markdown, code or recursive."

    fields = {"name": "Law", "chunker": "window", "chunker_options": "size=4, step = 2"}
    client.post("/documents/", fields)
    made = Collection.objects.get()
    assert (made.chunker, made.chunker_options) == ("window", {"size": 4, "step": 2})


def test_a_collection_is_changed_and_says_what_becomes_of_its_documents(
    client: Client, notes: Collection
) -> None:
    notes.chunker_options = {"max_tokens": 300}
    notes.save()
    form = parse(client.get("/documents/notes/change/")).find(".//form[@class='card narrowcard']")
    assert form.find(".//input[@name='chunker_options']").get("value") == "max_tokens=300"
    assert form.find(".//select[@name='chunker']").value == "auto"

    fields = {"name": "Notes", "language": "de"}
    refused = client.post("/documents/notes/change/", {**fields, "chunker_options": "overlap=900"})
    assert refused.status_code == 400
    assert "overlap 900 does not fit max_tokens 400" in refused.text

    answer = client.post(
        "/documents/notes/change/", {**fields, "chunker": "parent_child"}, follow=True
    )
    assert "until they are ingested again" in answer.text
    assert "Cut: parent_child" in answer.text
    notes.refresh_from_db()
    assert (notes.chunker, notes.chunker_options, notes.default_language) == (
        "parent_child",
        {},
        "de",
    )

    renamed = client.post("/documents/notes/change/", {**fields, "name": "Papers"}, follow=True)
    assert "“Papers” is changed." in renamed.text
    assert "ingested again" not in renamed.text
    notes.refresh_from_db()
    assert notes.chunker == "parent_child"


def test_how_documents_are_read_for_the_graph_is_chosen_and_changed(
    client: Client, alice: Membership
) -> None:
    offered = parse(client.get("/documents/")).findall(".//select[@name='graph']/option")
    assert [option.get("value") for option in offered] == ["rules", "llm", "off"]
    assert offered[0].get("selected") is not None

    client.post("/documents/", {"name": "Law", "graph": "off"})
    assert Collection.objects.get().graph == "off"

    address = "/documents/law/change/"
    assert parse(client.get(address)).find(".//select[@name='graph']/option[@selected]").get(
        "value"
    ) == ("off")
    kept = client.post(address, {"name": "Laws"}, follow=True)
    assert "graph: off" in kept.text
    assert "forgotten" not in kept.text
    changed = client.post(address, {"name": "Laws", "graph": "rules"}, follow=True)
    assert "All its documents are being read for the graph." in changed.text
    assert "graph: by rules" in changed.text
    assert Collection.objects.get().graph == "rules"


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
    assert (
        "No document is in this state" in client.get("/documents/notes/", {"status": "queued"}).text
    )


def test_a_collection_can_be_searched_from_its_page(client: Client, letter: Document) -> None:
    form = parse(client.get("/documents/notes/")).find(".//form[@class='inside']")

    assert form.get("action") == "/"
    assert [(field.get("name"), field.get("value")) for field in form.iterfind(".//input")] == [
        ("collection", "notes"),
        ("q", None),
    ]


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


def test_a_new_collection_says_how_it_is_searched(client: Client) -> None:
    fields = {
        "name": "Case law",
        "reranker": "none",
        "rerank_instruction": " Prefer statutes. ",
        "fusion": "method=weighted vector=0.7 lexical=0.3",
    }
    assert client.post("/documents/", fields).status_code == 302

    made = Collection.objects.get()
    assert (made.reranker, made.rerank_instruction) == ("none", "Prefer statutes.")
    assert made.fusion == {"method": "weighted", "weights": {"vector": 0.7, "lexical": 0.3}}
    page = parse(client.get(f"/documents/{made.slug}/change/"))
    assert page.find(".//input[@name='fusion']").get("value") == fields["fusion"]


def test_every_door_has_all_options_of_a_collection() -> None:
    options = option_fields(CollectionOptions).keys()
    assert NewCollectionSerializer().fields.keys() >= options
    assert CollectionChangeSerializer().fields.keys() >= options
    assert CollectionForm.base_fields.keys() >= options
    assert {*CollectionAdmin.fields, "language"} >= options


def test_people_choose_whether_languages_choose_the_model(
    client: Client, notes: Collection
) -> None:
    page = f"/documents/{notes.slug}/change/"
    for chosen, is_automatic in (("", True), ("False", False), ("", False), ("True", True)):
        assert client.post(page, {"name": "Notes", "automatic_model": chosen}).status_code == 302
        notes.refresh_from_db()
        assert notes.automatic_model is is_automatic
        select = parse(client.get(page)).find(".//select[@name='automatic_model']")
        assert select.value == str(is_automatic)


def paths(letter: Document) -> list[str]:
    run = RunFactory(collection=letter.collection)
    return [
        "/documents/notes/",
        "/documents/notes/upload/",
        "/documents/notes/delete/",
        "/documents/notes/change/",
        f"/documents/notes/{letter.pk}/",
        f"/documents/notes/{letter.pk}/delete/",
        f"/runs/{run.pk}/",
    ]


def test_a_viewer_reads_and_is_offered_no_change(bob: Client, letter: Document) -> None:
    collection, _upload, _delete, _change, document, _delete_document, run = paths(letter)

    for path in ("/documents/", collection, document, "/runs/", run):
        answer = bob.get(path)
        assert answer.status_code == 200, path
        assert "/upload/" not in answer.text, path
        assert "/delete/" not in answer.text, path
        assert "/change/" not in answer.text, path
        assert "New collection" not in answer.text, path


def test_who_may_delete_a_collection_is_told_how_many_documents_go_and_the_names_of_some(
    client: Client, alice: Membership, notes: Collection, letter: Document
) -> None:
    DocumentFactory(collection=notes, title="Secret", access=[f"user:{alice.user_id}"])
    editor = MembershipFactory(workspace=alice.workspace, role=Role.EDITOR)
    other = logged_in(editor)
    path = "/documents/notes/delete/"

    assert "Secret" in client.get(path).text
    assert str(letter) in other.get(path).text
    assert "<strong>2</strong> documents" in other.get(path).text
    assert "Secret" not in other.get(path).text


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
    assert "more than 2 files" in answer.text
    assert not IngestionRun.objects.exists()


def test_an_empty_file_is_no_reason_to_refuse_the_others(client: Client, notes: Collection) -> None:
    upload(client, ("empty.txt", b""), ("a.txt", b"one"))

    assert IngestionRun.objects.get().total == 2
