"""The admin of documents. Every page of every model: tests/test_admin_pages.py."""

import html
from typing import Any

import pytest
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from common import admin as common_admin
from documents import lexical_index
from documents.models import (
    Chunk,
    ChunkEdit,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
    Lexeme,
    LexicalSegment,
    Posting,
)
from documents.services import edit_chunk
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    ItemFactory,
    MembershipFactory,
    RunFactory,
    UserFactory,
    WorkspaceFactory,
)
from tests.kit import act, logged_in, page_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


# --- speed -------------------------------------------------------------------------------------


def test_a_chunk_shows_its_text_and_never_its_vector(client: Client) -> None:
    chunk = ChunkFactory(text="Nausea is common.", metadata={"year": 2025})
    with CaptureQueriesContext(connection) as captured:
        page = client.get(page_of(chunk, "change")).content.decode()
    assert "Nausea is common." in page
    assert "2025" in page
    assert page_of(chunk.document, "change") in page
    assert not [each for each in captured if '."embedding",' in each["sql"]]


def test_an_edit_is_undone_in_the_list(client: Client) -> None:
    chunk = ChunkFactory(text="Nausea is common.")
    edit_chunk(chunk=chunk, text="Nausea is very common.")
    act(client, "undo", ChunkEdit.objects.get(state=ChunkEdit.State.APPLIED))
    assert Chunk.objects.get(pk=chunk.pk).text == "Nausea is common."


def test_twenty_rows_cost_as_many_queries_as_two(client: Client) -> None:
    def queries(url: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(url)
        return len(captured)

    def grow(number: int) -> None:
        for _ in range(number):
            document = DocumentFactory(collection=CollectionFactory())
            ChunkFactory(document=document)
            ItemFactory(document=document, run=RunFactory(collection=document.collection))

    shown = [Collection, Document, Chunk, IngestionItem]
    grow(2)
    before = [queries(page_of(model)) for model in shown]
    grow(20)
    assert [queries(page_of(model)) for model in shown] == before


def test_a_large_table_is_estimated_and_a_large_selection_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(common_admin, "COUNTED_ROWS", 10)
    collection = CollectionFactory()
    LexicalSegment.objects.bulk_create(
        LexicalSegment(
            workspace=collection.workspace,
            collection=collection,
            language="simple",
            is_current=True,
            chunk_count=number,
            wordless_count=0,
            total_length=0,
        )
        for number in range(30)
    )

    def count(rows: models.QuerySet[Any]) -> int:
        return common_admin.EstimatedPaginator(rows.order_by("-id"), 50).count

    everything = LexicalSegment.objects.order_by("-id")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE documents_lexicalsegment")
    assert count(everything) == 30
    assert count(everything.filter(chunk_count__gt=10)) == 10
    assert count(everything.filter(chunk_count=1)) == 1
    assert count(everything.none()) == 0

    last = common_admin.EstimatedPaginator(everything, 7).page(5)
    assert list(last) == list(everything)[28:]
    assert not last.has_next()


def test_a_table_that_was_never_analysed_still_has_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that is too low must not turn paging off and load the whole table."""
    monkeypatch.setattr(common_admin, "COUNTED_ROWS", 10)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET reltuples = -1 WHERE oid = 'documents_document'::regclass"
        )
    collection = CollectionFactory()
    for _ in range(12):
        DocumentFactory(collection=collection)
    assert common_admin.EstimatedPaginator(Document.objects.order_by("id"), 5).count == 11


# --- finding -----------------------------------------------------------------------------------


def test_chunks_are_found_by_words_in_their_language(client: Client) -> None:
    document = DocumentFactory()
    english = ChunkFactory(document=document, text="Many children were running.")
    german = ChunkFactory(document=document, text="Viele Häuser brannten.", language="german")

    def found(words: str) -> list[int]:
        rows = client.get(page_of(Chunk), {"q": words}).context["cl"].result_list
        return sorted(chunk.pk for chunk in rows)

    assert found("run children") == [english.pk]
    assert found("Haus") == [german.pk]
    assert found('"running children"') == []
    assert found("children -running") == []


# --- writing -----------------------------------------------------------------------------------


def test_a_row_leads_to_the_page_on_which_it_is_edited() -> None:
    member = MembershipFactory(user__is_superuser=True)
    other = WorkspaceFactory(name="Other firm")
    client = logged_in(member)
    for workspace, led in (
        (member.workspace, 'href="{page}"'),
        (MembershipFactory(user=member.user).workspace, 'name="next" value="{page}"'),
        (other, "Members of Other firm edit this on its page"),
    ):
        collection = CollectionFactory(workspace=workspace)
        document = DocumentFactory(collection=collection)
        chunk = ChunkFactory(document=document)
        for row, page in (
            (collection, reverse("collection_change", args=[collection.slug])),
            (document, reverse("document_change", args=[collection.slug, document.pk])),
            (chunk, reverse("passage_edit", args=[collection.slug, document.pk, chunk.pk])),
        ):
            shown = client.get(page_of(row, "change")).content.decode()
            assert led.format(page=page) in shown
            assert client.post(page_of(row, "change"), {}).status_code == 403
            if workspace != other:
                choice = {"workspace": workspace.slug, "next": page}
                answer = client.post(reverse("workspace_choose"), choice, follow=True)
                assert answer.redirect_chain == [(page, 302)]
                assert answer.status_code == 200
                client.post(reverse("workspace_choose"), {"workspace": member.workspace.slug})


def test_a_collection_says_what_it_learnt_and_how_to_forget_it(client: Client) -> None:
    collection = CollectionFactory(slug="leaflets")
    url = page_of(collection, "change")
    assert "--judgements --tune" in client.get(url).content.decode()
    collection.tuning = {
        "lexical": 0.3,
        "pull": 0.25,
        "questions": 120,
        "ndcg_default": 0.81,
        "ndcg_tuned": 0.84,
        "space": collection.space_id,
    }
    collection.save()
    page = client.get(url).content.decode()
    assert "Words 0.30, meaning 0.70; learnt from 120 judged questions" in page
    assert "0.810 → 0.840" in page
    assert "--collection leaflets --forget" in page
    collection.tuning["space"] += 1
    collection.save()
    assert "learnt with another model" in client.get(url).content.decode()


@pytest.fixture
def stored() -> Document:
    """A document with a stored file, a chunk and word counts."""
    from django.core.files.base import ContentFile

    document = DocumentFactory()
    document.file.save("1", ContentFile(b"text"), save=True)
    ChunkFactory(document=document, text="unicorn")
    lexical_index.index_pending(document.collection_id)
    return document


@pytest.mark.parametrize("how", ["page", "action"])
@pytest.mark.parametrize("what", [Document, Collection])
def test_deleting_leaves_neither_chunks_nor_files_nor_words(
    client: Client,
    stored: Document,
    what: type[models.Model],
    how: str,
    django_capture_on_commit_callbacks: Any,
) -> None:
    row = stored if what is Document else stored.collection
    url = page_of(row, "delete") if how == "page" else page_of(what)
    form: dict[str, Any] = {"post": "yes"}
    if how == "action":
        form |= {"action": "delete_selected", "_selected_action": [row.pk]}
    preview = client.post(url, {name: form[name] for name in form if name != "post"})
    if how == "page":
        preview = client.get(url)
    assert "Chunks: 1" in preview.content.decode()

    storage, name = stored.file.storage, stored.file.name
    assert storage.exists(name)
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(url, form).status_code == 302
    assert not what.objects.exists()
    assert not Chunk.objects.exists()
    for model in (Posting, Lexeme):
        assert not model.objects.filter(lexeme="unicorn").exists()
    assert not storage.exists(name)


def test_a_workspace_with_collections_is_not_deleted_by_a_click(client: Client) -> None:
    collection = CollectionFactory()
    url = page_of(collection.workspace, "delete")
    assert client.post(url, {"post": "yes"}).status_code == 403
    assert Collection.objects.exists()


@pytest.mark.parametrize(
    ("action", "told"), [("cancel", "is cancelled"), ("retry", "has failed. Nothing is left")]
)
def test_runs_are_cancelled_and_retried_in_the_list(client: Client, action: str, told: str) -> None:
    run = RunFactory()
    form = {"action": action, "_selected_action": [run.pk]}
    answer = client.post(page_of(IngestionRun), form, follow=True)
    assert told in html.unescape(answer.content.decode())
    run.refresh_from_db()
    assert run.state == ("cancelled" if action == "cancel" else "running")


def test_what_searches_look_at_of_an_index_is_changed_in_the_admin(client: Client) -> None:
    space = EmbeddingSpace.objects.get()
    page = page_of(space, "change")
    shown = client.get(page).content.decode()
    assert 'name="ef_search"' in shown
    assert 'name="probes"' not in shown
    assert client.post(page, {"query_instruction": "", "ef_search": "300"}).status_code == 302
    space.refresh_from_db()
    assert space.index_options["ef_search"] == 300
    refused = client.post(page, {"query_instruction": "", "ef_search": "1001"})
    assert "less than or equal to 1000" in refused.content.decode()
    assert client.post(page, {"query_instruction": "", "ef_search": ""}).status_code == 302
    space.refresh_from_db()
    assert "ef_search" not in space.index_options
