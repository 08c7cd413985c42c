"""Whatever way documents come in, their languages choose the model before one is embedded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from accounts.models import Membership
from documents import services
from documents.ingestion.items import Item
from documents.models import Chunk, Collection, EmbeddingSpace, Reembedding
from inference.backends.hashing import HashingEmbedder
from search.evaluation.datasets import Dataset, Entry
from search.evaluation.evaluate import ingested_collection
from search.stores import Store
from sources import runs
from sources import services as sources
from tests.kit import client_of, logged_in, process_documents
from tests.plugin import WorkerProcess, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

HASHING = "inference.backends.hashing.HashingEmbedder"
MODELS = {
    "default": {"BACKEND": HASHING, "LANGUAGES": ["en"]},
    "many": {"BACKEND": HASHING, "OPTIONS": {"dimensions": 768}, "LANGUAGES": ["*"]},
}
#: Of no more than a few sentences each, as people have them.
TEXTS = {
    "faehre": "Die Wartung der Fähre beginnt am Montag um neun Uhr. Der Hafenmeister hat den"
    " Schlüssel, und die Werkstatt bleibt bis zum Abend geschlossen.",
    "anleger": "Am Anleger wird in diesem Winter das Holz erneuert. Bis zum Frühjahr legen die"
    " Boote auf der anderen Seite des Hafens an.",
    "karte": "Eine Fahrkarte gilt für den ganzen Tag und für alle Linien. Kinder unter sechs Jahren"
    " fahren kostenlos mit, Hunde brauchen eine eigene Karte.",
}


@pytest.fixture(autouse=True)
def _models(settings: Any) -> None:
    settings.INFERENCE = {"embedder": MODELS, "reranker": {}}


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The dimensions of every text that a model embeds from here on."""
    dimensions: list[int] = []
    embed = HashingEmbedder.embed_documents

    def noted(self: HashingEmbedder, texts: Any) -> Any:
        dimensions.extend([self.dimensions] * len(texts))
        return embed(self, texts)

    monkeypatch.setattr(HashingEmbedder, "embed_documents", noted)
    return dimensions


@pytest.fixture
def harbour(alice: Membership) -> Collection:
    """Made without a word on languages."""
    collection = services.create_collection(workspace=alice.workspace, name="Harbour")
    assert collection.space.model_name == "hashing-384"
    return collection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def uploads() -> list[SimpleUploadedFile]:
    return [SimpleUploadedFile(f"{name}.txt", text.encode()) for name, text in TEXTS.items()]


def by_command(command: str) -> Callable[[Collection, Membership, Path], None]:
    def run(collection: Collection, alice: Membership, folder: Path) -> None:
        where = ["--collection", collection.slug, "--workspace", alice.workspace.slug]
        call_command(command, str(folder), *where, "--json")

    return run


def by_page(collection: Collection, alice: Membership, folder: Path) -> None:
    client = logged_in(alice)
    address = reverse("upload", args=[collection.slug])
    assert client.post(address, {"files": uploads()}).status_code == 302
    process_documents()


def by_api(collection: Collection, alice: Membership, folder: Path) -> None:
    given = {"collection": collection.slug, "files": uploads()}
    answer = client_of(alice).post("/api/v1/documents/", given, format="multipart")
    assert answer.status_code == 202, answer.json()
    process_documents()


def by_items_of_the_api(collection: Collection, alice: Membership, folder: Path) -> None:
    address = reverse("api:store-items", args=[collection.slug])
    items = [{"id": name, "text": text} for name, text in TEXTS.items()]
    answer = client_of(alice).post(address, {"items": items}, format="json")
    assert answer.status_code in (200, 201), answer.json()


def by_store(collection: Collection, alice: Membership, folder: Path) -> None:
    Store(collection).index_many({"id": name, "text": text} for name, text in TEXTS.items())


def by_source(collection: Collection, alice: Membership, folder: Path) -> None:
    source = sources.create_source(
        collection=collection, name="Team", connector="folder", options={"path": str(folder)}
    )
    sources.start_run(source=source, enqueue=False)
    assert runs.work_on(source.pk, seconds=None) is not None
    process_documents()


def by_import(collection: Collection, alice: Membership, folder: Path) -> None:
    """What another site, whose one model is unknown, exported."""
    file = folder / "export.jsonl"
    other = services.create_collection(workspace=alice.workspace, name="Other")
    services.update_collection(collection=other, automatic_model=False)
    by_store(other, alice, folder)
    with file.open("wb") as out:
        services.export_collection(collection=other, file=out, with_vectors=True)
    services.delete_collection(collection=other)
    with file.open("rb") as given:
        services.import_collection(workspace=alice.workspace, slug=collection.slug, file=given)


DOORS = {
    "ingest": by_command("ingest"),
    "sync": by_command("sync"),
    "page": by_page,
    "api": by_api,
    "items": by_items_of_the_api,
    "store": by_store,
    "source": by_source,
    "import": by_import,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_first_upload_in_german_is_embedded_once_by_a_model_for_german(
    door: str,
    harbour: Collection,
    alice: Membership,
    folder: Path,
    embedded: list[int],
    settings: Any,
) -> None:
    settings.INGEST_ROOTS = [folder]
    DOORS[door](harbour, alice, folder)
    harbour.refresh_from_db()
    assert harbour.space.model_name == "hashing-768"
    chunks = Chunk.objects.filter(collection=harbour)
    assert chunks.count() == len(TEXTS)
    assert {len(chunk.embedding) for chunk in chunks} == {768}
    if door != "import":  # which has another collection embedded to export it
        assert embedded == [768] * len(TEXTS)
    assert harbour.former_spaces == []
    assert harbour.automatic_model
    assert not Reembedding.objects.exists()


def test_an_evaluation_needs_no_hint_of_the_language(embedded: list[int]) -> None:
    corpus = tuple(Entry(name, "", text, {}) for name, text in TEXTS.items())
    dataset = Dataset("fahrplan", corpus, (), {})
    with ingested_collection(dataset) as (collection, _):
        assert collection.space.model_name == "hashing-768"
    assert embedded == [768] * len(TEXTS)


def test_workers_of_a_running_site_do_it(
    unstarted_worker_process: WorkerProcess, harbour: Collection
) -> None:
    unstarted_worker_process.environment |= {
        "EMBEDDER_BACKEND": HASHING,
        "EMBEDDER_LANGUAGES": "en",
        "EMBEDDERS": json.dumps({"many": MODELS["many"]}),
    }
    unstarted_worker_process.start()
    given = [
        services.Upload(name=f"{name}.txt", file=SimpleUploadedFile(name, text.encode()))
        for name, text in TEXTS.items()
    ]
    run = services.ingest_uploads(collection=harbour, uploads=given)

    def is_done() -> bool:
        run.refresh_from_db()
        return run.is_finished

    wait_until(is_done, what="the documents are there")
    assert {len(chunk.embedding) for chunk in Chunk.objects.all()} == {768}
    assert EmbeddingSpace.objects.get(collections=harbour).model_name == "hashing-768"

    english = "The ferry leaves at nine. The workshop is closed until the evening, and cold."
    other = services.create_collection(workspace=harbour.workspace, name="Ferry")
    services.store_items(collection=other, items=[Item(id="ferry", text=english)])
    file = SimpleUploadedFile("karte.txt", TEXTS["karte"].encode())
    given = [services.Upload(name="karte.txt", file=file)]
    services.ingest_uploads(collection=other, uploads=given)
    wait_until(lambda: Reembedding.objects.filter(state="done").exists(), what="it has moved")
    assert {len(chunk.embedding) for chunk in Chunk.objects.all()} == {768}
