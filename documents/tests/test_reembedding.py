"""Moving chunks to another model: resumable, stoppable, and nothing is ever missing."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from common.errors import Conflict
from documents import lexical_index, services
from documents.ingestion import reembed as ingestion_reembed
from documents.ingestion.sources import content_from_bytes, text_source
from documents.ingestion.vector_indexes import index_states
from documents.models import Chunk, Collection, Document, EmbeddingSpace, Reembedding
from documents.services import ingest_inline
from documents.tasks import recover_reembeddings
from documents.tests.factories import CollectionFactory, DocumentFactory, UserFactory
from inference.backends.hashing import HashingEmbedder
from inference.interfaces import BackendUnavailable, InvalidVector
from tests.kit import act, hashing, logged_in, page_of, use_models
from tests.plugin import WorkerProcess, database_url_of_tests, wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media_root")]

State = Reembedding.State
HASHING = "inference.backends.hashing.HashingEmbedder"
WIDE = {"BACKEND": HASHING, "OPTIONS": {"dimensions": 768}}
DOCUMENTS = 12
#: For a move that takes long.
MANY_DOCUMENTS = 30


@pytest.fixture(autouse=True)
def _embedders(settings: Any) -> None:
    configure(settings, wide=WIDE)


def configure(settings: Any, **embedders: Any) -> None:
    use_models(settings, embedder={"default": hashing(), **embedders}, reranker={})


@pytest.fixture
def collection() -> Collection:
    return filled(CollectionFactory(slug="notes", default_language="en"))


def filled(collection: Collection, documents: int = DOCUMENTS, chunks: int = 12) -> Collection:
    """Documents of so many chunks each."""
    sources = [
        text_source(f"d{number}", "\n\n".join(passage(number, part) for part in range(chunks)))
        for number in range(documents)
    ]
    ingest_inline(collection=collection, sources=sources)
    return collection


def passage(number: int, part: int, filler: int = 190) -> str:
    """Eight words that no other passage has, and some that all have."""
    return " ".join([*(own_word(number, part, n) for n in range(8)), *["filler"] * filler])


def own_word(number: int, part: int, n: int) -> str:
    """One that shares no letters in a row with others, by which the test's model would go."""
    digest = hashlib.sha256(f"{number} {part} {n}".encode()).hexdigest()
    return digest[:12].translate(str.maketrans("0123456789", "ghijklmnop"))


def large(collection: Collection, chunks: int) -> Collection:
    """The same with many short chunks, put where ingestion would put them."""
    embedder = HashingEmbedder()
    for number in range(MANY_DOCUMENTS):
        document = DocumentFactory(collection=collection, key=f"d{number}", title="")
        texts = [passage(number, part, filler=0) for part in range(chunks // MANY_DOCUMENTS)]
        Chunk.objects.bulk_create(
            Chunk(
                workspace=collection.workspace,
                collection=collection,
                document=document,
                space=collection.space,
                ordinal=ordinal,
                text=text,
                start=100 * ordinal,
                end=100 * ordinal + len(text),
                language="english",
                embedding=vector,
                content_sha256=content_from_bytes(text.encode()).sha256,
            )
            for ordinal, (text, vector) in enumerate(
                zip(texts, embedder.embed_documents(texts), strict=True)
            )
        )
    lexical_index.index_pending(collection.pk)
    return collection


@pytest.fixture
def wide(settings: Any) -> EmbeddingSpace:
    return services.add_space(name="wide", embedder="wide")[0]


def spaces_of(collection: Collection) -> set[str]:
    return set(Chunk.objects.filter(collection=collection).values_list("space__name", flat=True))


def start_and_move_one_batch(target: EmbeddingSpace) -> Reembedding:
    row = ingestion_reembed.start_reembedding(target=target)
    ingestion_reembed.move_batch(row, token=ingestion_reembed.take_over(row))
    return row


def test_everything_moves_and_the_old_index_goes(
    collection: Collection, wide: EmbeddingSpace
) -> None:
    old = EmbeddingSpace.objects.get(is_default=True)
    before = list(Chunk.objects.order_by("id").values_list("id", "text"))
    seen: list[int] = []
    row = services.reembed_inline(target=wide, on_progress=lambda row: seen.append(row.done))
    assert (row.state, row.done, row.total) == (State.DONE, len(before), len(before))
    assert len(seen) >= 3
    assert seen == sorted(seen)
    assert list(Chunk.objects.order_by("id").values_list("id", "text")) == before
    assert spaces_of(collection) == {"wide"}
    assert {len(chunk.embedding) for chunk in Chunk.objects.all()} == {768}
    collection.refresh_from_db()
    assert (collection.space, collection.former_spaces) == (wide, [])
    old.refresh_from_db()
    wide.refresh_from_db()
    assert (old.state, old.is_default) == ("retired", False)
    assert (wide.state, wide.is_default) == ("live", True)
    states = index_states([old, wide])
    assert states.keys() == {wide.pk}
    assert states[wide.pk].valid
    assert services.default_space() == wide
    chunk = Chunk.objects.order_by("id")[3]
    (expected,) = HashingEmbedder(768).embed_documents([f"{chunk.context}\n{chunk.text}".strip()])
    assert chunk.embedding @ expected == pytest.approx(1, abs=1e-5)
    sources = [text_source(document.key, text(document)) for document in Document.objects.all()]
    run = ingest_inline(collection=Collection.objects.get(pk=collection.pk), sources=sources)
    assert (run.skipped, run.embedded) == (DOCUMENTS, 0)


def text(document: Document) -> str:
    return services.document_text(document).text


def test_it_is_stopped_and_goes_on_where_it_was(
    collection: Collection, wide: EmbeddingSpace
) -> None:
    row = start_and_move_one_batch(wide)
    with pytest.raises(Conflict, match="reembed --cancel --to wide"):
        services.reembed_inline(target=EmbeddingSpace.objects.get(name="minilm-384"))
    assert services.cancel_reembedding() == [row]
    moved = Chunk.objects.filter(space=wide).count()
    assert moved == ingestion_reembed.FIRST_BATCH_CHUNKS
    with pytest.raises(ingestion_reembed.TakenOver):
        ingestion_reembed.move_batch(row, token=row.token)
    assert Chunk.objects.filter(space=wide).count() == moved
    assert spaces_of(collection) == {"minilm-384", "wide"}
    again = services.reembed_inline(target=wide)
    assert again.pk == row.pk
    assert (again.state, again.total) == (State.DONE, Chunk.objects.count() - moved)
    assert spaces_of(collection) == {"wide"}


def test_one_can_go_back_and_what_was_stopped_takes_nothing_from_that(
    collection: Collection, wide: EmbeddingSpace
) -> None:
    row = start_and_move_one_batch(wide)
    token = row.token
    services.cancel_reembedding()
    old = EmbeddingSpace.objects.get(name="minilm-384")
    back = ingestion_reembed.start_reembedding(target=old)
    with pytest.raises(ingestion_reembed.TakenOver):
        ingestion_reembed.move_batch(row, token=token)
    collection.refresh_from_db()
    assert (collection.space, collection.former_spaces) == (old, [wide.pk])
    assert back.total == ingestion_reembed.FIRST_BATCH_CHUNKS
    assert services.reembed_inline(target=old).state == State.DONE
    assert spaces_of(collection) == {"minilm-384"}
    assert index_states([old, wide]).keys() == {old.pk}
    wide.refresh_from_db()
    assert wide.state == "retired"


def test_one_collection_may_have_a_model_of_its_own_and_the_default_is_retired_with_the_last(
    collection: Collection, wide: EmbeddingSpace
) -> None:
    other = filled(CollectionFactory(workspace=collection.workspace), documents=2)
    services.reembed_inline(target=wide, collection=collection)
    assert (spaces_of(collection), spaces_of(other)) == ({"wide"}, {"minilm-384"})
    old = EmbeddingSpace.objects.get(name="minilm-384")
    assert (old.state, old.is_default) == ("live", True)
    assert index_states([old])[old.pk].valid
    services.reembed_inline(target=wide, collection=other)
    old.refresh_from_db()
    assert (old.state, old.is_default) == ("live", True)  # new collections would go there
    services.reembed_inline(target=wide)
    old.refresh_from_db()
    assert (old.state, old.is_default) == ("retired", False)


def test_changed_documents_keep_what_did_not_change_and_new_ones_go_where_the_others_move(
    collection: Collection, wide: EmbeddingSpace
) -> None:
    start_and_move_one_batch(wide)
    collection.refresh_from_db()
    document = Document.objects.order_by("id").last()
    assert document
    kept = set(document.chunks.values_list("id", flat=True))
    assert set(document.chunks.values_list("space__name", flat=True)) == {"minilm-384"}
    changed = text(document) + "\n\n" + "One more paragraph. " * 60
    run = ingest_inline(collection=collection, sources=[text_source(document.key, changed)])
    assert run.embedded <= 3
    assert len(kept & set(document.chunks.values_list("id", flat=True))) >= len(kept) - 1
    ingest_inline(collection=collection, sources=[text_source("late", "A late arrival.")])
    assert Chunk.objects.get(document__key="late").space == wide
    new = services.create_collection(workspace=collection.workspace, name="New")
    assert new.space == wide


class Switching(HashingEmbedder):
    """Starts a re-embedding while a document is being embedded for the old space."""

    def embed_documents(self, texts: Any) -> Any:
        target = EmbeddingSpace.objects.filter(name="wide", is_default=False).first()
        if target and Collection.objects.filter(space__name="minilm-384").exists():
            ingestion_reembed.start_reembedding(target=target)
        return super().embed_documents(texts)


def test_a_load_for_a_space_that_was_left_meanwhile_is_embedded_anew(
    collection: Collection, wide: EmbeddingSpace, settings: Any
) -> None:
    switching = {"BACKEND": f"{__name__}.Switching"}
    use_models(settings, embedder={"default": switching, "wide": WIDE}, reranker={})
    run = ingest_inline(collection=collection, sources=[text_source("late", "A late arrival.")])
    assert run.ready == 1
    late = Chunk.objects.get(document__key="late")
    assert (late.space, len(late.embedding)) == (wide, 768)
    run = ingest_inline(
        collection=Collection.objects.get(pk=collection.pk),
        sources=[text_source("late", "A late arrival.")],
    )
    assert run.skipped == 1


class Choosy(HashingEmbedder):
    """Has no vector for one text."""

    def embed_documents(self, texts: Any) -> Any:
        if any(own_word(3, 7, 0) in text for text in texts):
            raise InvalidVector("the vector of a text is NaN.")
        return super().embed_documents(texts)


def test_a_text_that_the_new_model_refuses_stays_searchable_and_is_named(
    collection: Collection, wide: EmbeddingSpace, settings: Any
) -> None:
    configure(settings, wide={**WIDE, "BACKEND": f"{__name__}.Choosy"})
    row = services.reembed_inline(target=wide)
    assert row.state == State.FAILED
    assert "no usable vector for 1 of the passages" in row.error
    (left,) = Chunk.objects.exclude(space=wide)
    assert own_word(3, 7, 0) in left.text
    assert f"document {left.document_id}." in row.error
    collection.refresh_from_db()
    assert collection.former_spaces == [left.space_id]
    configure(settings, wide=WIDE)
    assert services.reembed_inline(target=wide).state == State.DONE
    assert spaces_of(collection) == {"wide"}


class Down(HashingEmbedder):
    """A model host that does not answer."""

    def embed_documents(self, texts: Any) -> Any:
        raise BackendUnavailable("the model host does not answer; start it.")


def test_a_model_that_is_down_is_said_and_loses_nothing(
    collection: Collection, wide: EmbeddingSpace, settings: Any
) -> None:
    configure(settings, wide={**WIDE, "BACKEND": f"{__name__}.Down"})
    with pytest.raises(CommandError, match="start it"):
        call_command("reembed", "--to", "wide")
    assert Reembedding.objects.get().state == State.FAILED
    assert spaces_of(collection) == {"minilm-384"}


def test_what_a_dead_process_left_is_taken_up_by_the_workers(
    collection: Collection, wide: EmbeddingSpace, settings: Any
) -> None:
    row = start_and_move_one_batch(wide)
    assert recover_reembeddings() == 0  # it showed signs of life a moment ago
    settings.INGESTION_LEASE_SECONDS = -1
    assert recover_reembeddings() == 1
    assert Reembedding.objects.get().token != row.token


# --- with real processes -------------------------------------------------------------------------


def environment(**more: str) -> dict[str, str]:
    """For a process that uses this test's database, and the embedders `default` and `wide`."""
    return {
        **os.environ,
        "DATABASE_URL": database_url_of_tests(),
        "MEDIA_ROOT": str(django_settings.MEDIA_ROOT),
        "EMBEDDERS": json.dumps({"wide": WIDE}),
        **more,
    }


def reembed(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "manage.py", "reembed", "--to", "wide", "--json", *words],
        cwd=Path(django_settings.BASE_DIR),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Searcher(Thread):
    """Asks for one document after the other, by words, by meaning and by both."""

    def __init__(self, ask: Callable[[int, str], list[str]]) -> None:
        super().__init__(daemon=True)
        self.ask = ask
        self.asked = 0
        self.faults: list[str] = []
        self.done = Event()

    def run(self) -> None:
        modes = ("vector", "hybrid", "lexical")
        try:
            while not self.done.wait(0.02):
                number = self.asked * 7 % MANY_DOCUMENTS
                mode = modes[self.asked % 3]
                found = self.ask(number, mode)
                if found[:1] != [f"d{number}"]:
                    self.faults.append(f"d{number} by {mode}: {found}")
                self.asked += 1
        except Exception as error:
            self.faults.append(repr(error))
        finally:
            connection.close()


@pytest.fixture
def ask(settings: Any) -> Callable[[Collection], Callable[[int, str], list[str]]]:
    def make(collection: Collection) -> Callable[[int, str], list[str]]:
        from importlib import import_module

        search = import_module("search.services")  # only this test looks upward
        scope = import_module("search.query_options").site_scope(workspace=collection.workspace)

        def ask(number: int, mode: str) -> list[str]:
            words = " ".join(own_word(number, 5, n) for n in range(8))
            result = search.search(words, scope=scope, mode=mode, k=3)
            assert not result.degraded
            return [hit.document_key for hit in result.hits]

        return ask

    return make


@pytest.mark.nightly
def test_many_chunks_move_under_a_searcher_and_a_kill(
    wide: EmbeddingSpace, ask: Callable[..., Any]
) -> None:
    total = 1740  # in batches of 64, 128 and so on: killed after 448 at least, with two to go
    collection = large(CollectionFactory(slug="large"), total)
    searcher = Searcher(ask(collection))
    searcher.start()
    process = reembed()
    wait_until(
        lambda: Chunk.objects.filter(space=wide).count() > total // 4, what="some of it has moved"
    )
    process.send_signal(signal.SIGKILL)
    process.communicate()
    moved = Chunk.objects.filter(space=wide).count()
    assert total // 4 < moved < total
    before = searcher.asked
    wait_until(lambda: searcher.asked >= before + 9, what="both spaces were searched")
    process = reembed()
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    report = json.loads(out)
    assert (report["state"], report["total"], report["done"]) == (
        "done",
        total - moved,
        total - moved,
    )
    before = searcher.asked
    wait_until(lambda: searcher.asked >= before + 9, what="the new space was searched")
    searcher.done.set()
    searcher.join()
    assert searcher.faults == []
    assert Chunk.objects.count() == total
    assert spaces_of(collection) == {"wide"}
    old = EmbeddingSpace.objects.get(name="minilm-384")
    assert index_states([old, wide]).keys() == {wide.pk}


def test_the_workers_move_it_batch_by_batch(
    collection: Collection, wide: EmbeddingSpace, unstarted_worker_process: WorkerProcess
) -> None:
    worker = unstarted_worker_process
    worker.environment["EMBEDDERS"] = json.dumps({"wide": WIDE})
    worker.start()
    row = services.queue_reembedding(target=wide)
    wait_until(
        lambda: Reembedding.objects.get(pk=row.pk).state == State.DONE, what="it is all moved"
    )
    assert spaces_of(collection) == {"wide"}


# --- in the admin --------------------------------------------------------------------------------


def test_a_curator_adds_a_space_moves_everything_and_stops_it(collection: Collection) -> None:
    client = logged_in(UserFactory(is_superuser=True))
    answer = client.post(
        reverse("admin:documents_embeddingspace_add"),
        {"name": "wide", "embedder": "wide", "metric": "cosine", "index_type": "hnsw"},
    )
    assert answer.status_code == 302, answer.content.decode()
    space = services.get_space("wide")
    assert (space.dimensions, space.precision) == (768, "half")
    assert "have started" in act(client, "reembed", space)
    row = Reembedding.objects.get()
    assert (row.state, row.target) == (State.RUNNING, space)
    assert "0 of" in client.get(page_of(row, "change")).content.decode()
    assert "neither stopped nor failed" in act(client, "go_on", row)
    act(client, "stop", row)
    row.refresh_from_db()
    assert row.state == State.STOPPED
    assert "It is not running" in act(client, "stop", row)
    act(client, "go_on", row)
    row.refresh_from_db()
    assert row.state == State.RUNNING


def test_a_space_that_cannot_be_is_refused_in_the_form(settings: Any) -> None:
    huge = {"BACKEND": HASHING, "OPTIONS": {"dimensions": 3072}}
    configure(settings, huge=huge)
    client = logged_in(UserFactory(is_superuser=True))
    form = {"name": "huge", "embedder": "huge", "metric": "cosine", "index_type": "hnsw"}
    address = reverse("admin:documents_embeddingspace_add")
    answer = client.post(address, {**form, "precision": "full"})
    assert "at most 2,000 dimensions" in answer.content.decode()
    assert client.post(address, form).status_code == 302
    assert services.get_space("huge").precision == "half"
