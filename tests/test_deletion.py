"""After a deletion no table, no stored file and no cache holds the text, the title or the name."""

import zlib
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.cache import cache
from django.core.files.base import ContentFile
from django.db import connection
from django.urls import reverse

from documents import lexical_index, services
from documents.ingestion import pipeline
from documents.ingestion.items import Item
from documents.ingestion.sources import text_source
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
    ScannedPage,
    StagedDocument,
)
from documents.services import Upload, ingest_inline, ingest_text, ingest_uploads, store_items
from documents.tests.factories import CollectionFactory, MembershipFactory, UserFactory
from search.query_options import site_scope
from search.services import search

pytestmark = pytest.mark.django_db

#: In the text, in the file's name, in the title, and as English stems them.
WORDS = ("zanzibarit", "quokkasnam", "wombattitl")
NAME = "folder/quokkasname.txt"
TEXT = "The xylophonist keeps zanzibarite. " * 30
TITLED = f"# Wombattitle\n\n{TEXT}"


@pytest.fixture
def collection(media_root: Path) -> Collection:
    return CollectionFactory()


@pytest.fixture
def committed(django_capture_on_commit_callbacks: Any) -> Any:
    """Run what a service does once its transaction has committed."""

    def run(service: Any, **arguments: Any) -> Any:
        with django_capture_on_commit_callbacks(execute=True):
            return service(**arguments)

    return run


def upload(collection: Collection, content: bytes, name: str = NAME, **options: Any) -> Document:
    """Queue a file, without any worker; the row that its text goes into."""
    run = ingest_uploads(
        collection=collection,
        uploads=[Upload(name=name, file=ContentFile(content, name=name))],
        **options,
    )
    document = run.items.get().document
    assert document is not None
    return document


def work(document: Document) -> None:
    """What a worker does, up to the index of words."""
    pipeline.embed_documents(pipeline.parse_documents([document.pk]))
    lexical_index.index_pending(document.collection_id)
    document.refresh_from_db()


def places_with_words(media_root: Path) -> set[str]:
    """Tables in which some row holds one of the words in some column, whatever its type; files
    whose content or path does; the cache."""
    found = {f"media: {path.name}" for path in media_root.rglob("*") if path.is_file()}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(
                f'SELECT EXISTS (SELECT FROM "{table}" AS row WHERE row::text ~* %s)',
                ["|".join(WORDS)],
            )
            if cursor.fetchone()[0]:
                found.add(table)
    for staged in StagedDocument.objects.all():
        if holds_a_word(zlib.decompress(bytes(staged.payload))):
            found.add("documents_stageddocument: payload")
    client = cache._cache.get_client()  # type: ignore[attr-defined]  # of Django's Redis cache
    keys = list(client.scan_iter())
    held = [key for key in keys if holds_a_word(key) or holds_a_word(client.dump(key) or b"")]
    return found | {f"cache: {key!r}" for key in held}


def holds_a_word(data: bytes) -> bool:
    return any(word.encode() in data.lower() for word in WORDS)


def test_the_search_for_words_finds_them_everywhere(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    """What the other tests rest on: before a deletion the words are in all these places."""
    document = upload(collection, TITLED.encode())
    pipeline.parse_documents([document.pk])
    assert "documents_stageddocument: payload" in places_with_words(media_root)
    pipeline.embed_documents([document.pk])
    lexical_index.index_pending(collection.pk)
    places = places_with_words(media_root)
    assert places >= {
        "documents_chunk",
        "documents_document",
        "documents_ingestionitem",
        "documents_ingestionrun",
        "documents_lexeme",
        "documents_posting",
    }
    assert any(place.startswith("media: ") for place in places)


def test_nothing_of_a_document_is_left(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    document = upload(collection, TITLED.encode())
    work(document)
    search("what does the musician keep?", scope=site_scope(workspace=collection.workspace))
    committed(services.delete_document, document=document)
    assert places_with_words(media_root) == set()
    item = IngestionItem.objects.get()
    assert (item.name, item.state) == ("deleted document", "ready")


def test_nothing_is_left_of_what_a_person_changed(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    document = upload(collection, b"A plain text.")
    work(document)
    chunk = Chunk.objects.get(document=document)
    committed(services.edit_chunk, chunk=chunk, text=TEXT)
    changed = Chunk.objects.get(document=document)
    committed(services.edit_chunk, chunk=changed, text="A plain text again.")
    committed(services.update_document, document=document, metadata={"about": TEXT})
    there = {"documents_chunkedit", "documents_document", "documents_chunk"}
    assert places_with_words(media_root) >= there
    committed(services.delete_document, document=document)
    assert places_with_words(media_root) == set()


def test_nothing_is_left_of_what_was_read_on_its_pages(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    document = upload(collection, b"A plain text.")
    work(document)
    ScannedPage.objects.create(
        workspace=document.workspace,
        document=document,
        source_sha256=document.source_sha256,
        page=1,
        engine="PP-OCRv6",
        text=TEXT,
        lines=[{"box": [0, 0, 1, 1], "confidence": 1, "words": [[TEXT, 0, 0, 1, 1]]}],
        confidence=1,
    )
    assert "documents_scannedpage" in places_with_words(media_root)
    committed(services.delete_document, document=document)
    assert places_with_words(media_root) == set()


def test_nothing_of_any_version_is_left(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    for number in range(3):
        document = upload(collection, f"{TITLED} {number}".encode(), policy="new_version")
        work(document)
    upload(collection, f"{TITLED} waits".encode(), policy="new_version")
    committed(services.delete_document, document=Document.objects.get(version=2))
    assert places_with_words(media_root) == set()
    assert not Document.objects.exists()


def test_nothing_of_a_deleted_version_is_left(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    for text in (TEXT, "Something harmless."):
        work(upload(collection, text.encode(), name="harmless.txt", policy="new_version"))
    committed(services.delete_version, document=Document.objects.get(version=1))
    left = {place for place in places_with_words(media_root) if "media" not in place}
    assert left == set()
    assert len([path for path in media_root.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("stage", ["queued", "staged", "failed"])
def test_nothing_of_an_unfinished_document_is_left(
    collection: Collection, media_root: Path, committed: Any, stage: str
) -> None:
    content = TITLED.encode() if stage != "failed" else b"%PDF-1.7 zanzibarite"
    name = NAME if stage != "failed" else NAME.replace(".txt", ".pdf")
    document = upload(collection, content, name=name)
    if stage != "queued":
        pipeline.parse_documents([document.pk])
    committed(services.delete_document, document=document)
    assert places_with_words(media_root) == set()
    run = IngestionRun.objects.get()
    assert run.is_finished
    assert run.failed == 1
    assert run.items.get().name == "deleted document"


def test_a_failure_before_the_document_was_known_is_forgotten_with_it(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    broken = text_source(NAME, " ")
    ingest_inline(collection=collection, sources=[broken])
    assert IngestionItem.objects.get().document is None
    ingest_inline(collection=collection, sources=[text_source(NAME, TEXT)])
    committed(services.delete_document, document=Document.objects.get())
    assert places_with_words(media_root) == set()


def test_nothing_of_a_given_text_is_left(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    run = ingest_text(
        collection=collection,
        key="quokkasname",
        title="Wombattitle",
        text=TEXT,
        metadata={"about": "zanzibarite"},
    )
    document = run.items.get().document
    assert document is not None
    work(document)
    committed(services.delete_document, document=document)
    assert places_with_words(media_root) == set()


def test_nothing_of_a_stores_item_is_left(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    store_items(
        collection=collection,
        items=[Item(id="quokkasname", text=TEXT, title="Wombattitle", metadata={"a": WORDS[0]})],
    )
    committed(services.delete_items, collection=collection, keys=["quokkasname"])
    assert places_with_words(media_root) == set()


def test_a_duplicate_keeps_the_text_and_not_the_name(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    work(upload(collection, TEXT.encode()))
    upload(collection, TEXT.encode(), name="other.txt", store_once=True)
    committed(services.delete_document, document=Document.objects.get(key=NAME))
    other = Document.objects.get()
    assert "zanzibarite" in services.document_text(other).text
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT count(*) FROM \"{table}\" AS r WHERE r::text ~* 'quokkas'")
            assert cursor.fetchone()[0] == 0, table
    committed(services.delete_document, document=other)
    assert places_with_words(media_root) == set()


def test_a_shortened_document_leaves_nothing_behind(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    plain = "\n\n".join(f"Paragraph {n} of the common text. " * 20 for n in range(6))
    for text in (f"{plain}\n\n{TEXT}", plain):
        work(committed(upload, collection=collection, content=text.encode(), name="plain.txt"))
    left = {place for place in places_with_words(media_root) if "media" not in place}
    assert left == set()
    stored = [path.read_bytes() for path in media_root.rglob("*") if path.is_file()]
    assert stored == [plain.encode()]


def test_a_deleted_collection_leaves_nothing(
    collection: Collection, media_root: Path, committed: Any
) -> None:
    for text in (TITLED, f"{TITLED} changed"):
        work(upload(collection, text.encode(), policy="new_version"))
    upload(collection, b"zanzibarite", name="waits.txt")
    committed(services.delete_collection, collection=collection)
    assert places_with_words(media_root) == set()


def test_the_admins_log_does_not_keep_the_name(
    collection: Collection, media_root: Path, committed: Any, client: Any
) -> None:
    document = upload(collection, TITLED.encode())
    work(document)
    client.force_login(UserFactory(is_superuser=True))
    address = reverse("admin:documents_document_delete", args=[document.pk])
    committed(client.post, path=address, data={"post": "yes"})
    assert not Document.objects.exists()
    assert LogEntry.objects.count() == 1
    assert places_with_words(media_root) == set()


def test_an_answer_that_is_kept_for_the_same_request_forgets_the_name(
    collection: Collection, media_root: Path, committed: Any, client: Any
) -> None:
    client.force_login(MembershipFactory(workspace=collection.workspace).user)
    body = {"collection": collection.slug, "key": "quokkasname", "text": "Some zanzibarite."}

    def send() -> Any:
        return client.post(
            "/api/v1/documents/",
            body,
            content_type="application/json",
            headers={"Idempotency-Key": "one"},
        )

    first = send()
    assert "accounts_idempotencyrecord" in places_with_words(media_root)
    committed(services.delete_document, document=Document.objects.get())
    assert places_with_words(media_root) == set()
    again = send()
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == {**first.json(), "source": "deleted document"}
    assert not Document.objects.exists()


def test_the_api_deletes_all_versions_or_one(
    collection: Collection, media_root: Path, committed: Any, client: Any
) -> None:
    client.force_login(MembershipFactory(workspace=collection.workspace).user)
    for number in range(3):
        work(upload(collection, f"{TITLED} {number}".encode(), policy="new_version"))
    first, second, third = Document.objects.order_by("version")
    one = committed(client.delete, path=f"/api/v1/documents/{second.pk}/?versions=this")
    assert one.status_code == 204
    assert set(Document.objects.all()) == {first, third}
    refused = client.delete(f"/api/v1/documents/{third.pk}/?versions=this")
    assert refused.status_code == 400
    assert committed(client.delete, path=f"/api/v1/documents/{first.pk}/").status_code == 204
    assert places_with_words(media_root) == set()
