"""A file becomes searchable chunks once, cut as its collection says, true to its source."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from celery import current_app
from django.utils import timezone

from documents import lexical_differences, services
from documents.ingestion import jobs, loader, pipeline, preparation
from documents.ingestion.items import Item
from documents.ingestion.sources import Source, SourceError, discover, text_source
from documents.models import Chunk, Collection, Document, IngestionRun, StagedDocument
from documents.models.chunk import embedding_text
from documents.services import document_text, ingest_inline, store_items, update_collection
from documents.tests.factories import CollectionFactory
from documents.tests.words import chunk_counts, counted_chunks, scores
from inference.backends.hashing import HashingEmbedder
from inference.model_registry import embedders
from tests.kit import queue_file, work_on

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

PARAGRAPHS = [f"Paragraph {n} speaks of topic{n} at some length. " * 25 for n in range(12)]


def ingest(collection: Collection, *sources: Source, **options: Any) -> IngestionRun:
    return ingest_inline(collection=collection, sources=sources, **options)


def chunk_ids(document: Document) -> dict[str, int]:
    return dict(document.chunks.values_list("content_sha256", "id"))


def test_a_text_becomes_ready_chunks_that_cover_it(collection: Collection) -> None:
    text = "\n\n".join(PARAGRAPHS)
    run = ingest(collection, text_source("guide", text, title="The guide"))
    document = Document.objects.get(collection=collection)
    assert (run.state, run.ready, run.total) == ("succeeded", 1, 1)
    assert (document.status, document.title, document.language) == ("ready", "The guide", "en")
    assert run.chunks == document.chunk_count == document.chunks.count() > 3
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in document.chunks.all())
    assert services.document_text(document).text.split() == text.split()


def test_vectors_are_those_of_context_and_text(collection: Collection) -> None:
    ingest(collection, text_source("note", "Aspirin thins the blood.", title="Medicines"))
    chunk = Chunk.objects.get()
    expected = HashingEmbedder().embed_documents(["Medicines\nAspirin thins the blood."])[0]
    assert np.allclose(np.asarray(chunk.embedding), expected, atol=1e-6)


def test_of_rows_of_identifiers_the_model_reads_the_words_and_the_first_four() -> None:
    keys = [f"{n:04d}ab{n:04d}cd" for n in range(200)]
    text = f"marker {','.join(keys[:150])} lighthouse {','.join(keys[150:])}"
    assert embedding_text("Keys", text) == f"Keys\nmarker {','.join(keys[:4])},lighthouse "
    prose = (
        f"The part {keys[0]} replaces {keys[1]} in every machine that was built before {keys[2]}."
    )
    for kept in (prose * 20, "123456789012 " * 50, "lighthouses " * 50):
        assert embedding_text("", kept) == kept


def test_a_chunk_too_long_to_be_indexed_is_cut_into_parts_and_others_stay(
    collection: Collection, tmp_path: Path
) -> None:
    many = " ".join(f"{n:06x}wort{n}" for n in range(20_000))
    records = [f"BEGIN lighthouse {many} END harbourmaster", "The second one names the ferryman."]
    fields = [
        {"chunk_id": f"big_chunk_{n}", "source_document": "big", "chunk_text": text}
        for n, text in enumerate(records, 1)
    ]
    (tmp_path / "big_chunk_1.json").write_text(json.dumps(fields))
    run = ingest(collection, *discover([tmp_path]))  # type: ignore[arg-type]
    assert (run.state, run.ready) == ("succeeded", 1)
    document = Document.objects.get()
    chunks = list(document.chunks.order_by("ordinal"))
    assert (chunks[-1].key, chunks[-1].text) == ("big_chunk_2", records[1])
    assert [chunk.key for chunk in chunks[:2]] == ["big_chunk_1:1", "big_chunk_1:2"]
    whole = services.document_text(document).text
    assert all(chunk.text == whole[chunk.start : chunk.end] for chunk in chunks)
    for word in ("lighthouse", "harbourmaster", "ferryman"):
        assert len(scores(collection, word)) == 1


def test_an_unchanged_document_is_skipped(collection: Collection) -> None:
    source = text_source("note", PARAGRAPHS[0])
    ingest(collection, source)
    before = chunk_ids(Document.objects.get())
    run = ingest(collection, source)
    assert (run.state, run.skipped, run.ready, run.embedded) == ("succeeded", 1, 0, 0)
    assert chunk_ids(Document.objects.get()) == before


def test_overwrite_looks_again_and_embeds_nothing_that_is_the_same(collection: Collection) -> None:
    source = text_source("note", PARAGRAPHS[0])
    ingest(collection, source)
    run = ingest(collection, source, policy=IngestionRun.Policy.OVERWRITE)
    assert (run.ready, run.skipped, run.embedded) == (1, 0, 0)


def test_a_key_that_comes_twice_at_once_ends_with_its_last_text(collection: Collection) -> None:
    sources = [text_source("twice", "The first text."), text_source("other", "Another text.")]
    sources.append(text_source("twice", "The second text."))
    run = ingest_inline(collection=collection, sources=sources)
    assert (run.state, run.total, run.ready) == (IngestionRun.State.SUCCEEDED, 3, 3)
    assert sorted(Chunk.objects.values_list("text", flat=True)) == [
        "Another text.",
        "The second text.",
    ]
    assert lexical_differences.find_differences(collection.pk) == []


def test_paragraphs_that_changed_places_are_moved(collection: Collection) -> None:
    records = [
        {
            "chunk_id": f"doc_chunk_{n:03}",
            "source_document": "doc",
            "chunk_text": f"Prefix. Text number {n} of the document.",
            "token_count": 7,
            "metadata": {"chapter_title": "One", "section_title": "Two"},
        }
        for n in range(4)
    ]

    def bundle(order: list[int]) -> Source:
        named = [
            {**records[old], "chunk_id": f"doc_chunk_{new:03}"} for new, old in enumerate(order)
        ]
        data = "\n".join(map(json.dumps, named)).encode()
        return Source("doc", "doc.chunks.jsonl", len(data), lambda: data)

    ingest(collection, bundle([0, 1, 2, 3]))
    before = dict(Chunk.objects.values_list("text", "id"))
    run = ingest(collection, bundle([3, 1, 0, 2]))
    assert run.embedded == 0
    assert dict(Chunk.objects.values_list("text", "id")) == before
    ordered = Chunk.objects.order_by("ordinal").values_list("text", flat=True)
    assert [text.split("number ")[1][0] for text in ordered] == ["3", "1", "0", "2"]


def test_a_broken_file_is_named_and_the_others_are_ingested(
    collection: Collection, tmp_path: Path
) -> None:
    (tmp_path / "good.md").write_text("# Title\n\nSome good text.")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "picture.txt").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (tmp_path / "cut.pdf").write_bytes(b"%PDF-1.7\n1 0 obj\n<<")
    run = ingest(collection, *discover([tmp_path]))  # type: ignore[arg-type]
    failures = dict(run.items.filter(state="failed").values_list("name", "error_code"))
    assert (run.state, run.ready, run.failed) == ("partial", 1, 3)
    assert set(failures) == {"empty.txt", "picture.txt", "cut.pdf"}
    assert failures["empty.txt"] == "empty"
    assert all(run.items.filter(state="failed").values_list("error", flat=True))


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere does not exist"):
        list(discover([tmp_path / "nowhere"]))


def test_the_queues_make_an_upload_ready(collection: Collection) -> None:
    document = queue_file(collection, "folder/note.txt", b"Ibuprofen eases pain.")
    assert document.status == "queued"
    work_on(document)
    run = IngestionRun.objects.get()
    assert document.status == "ready"
    assert Chunk.objects.get().text == "Ibuprofen eases pain."
    assert (run.state, run.ready, run.chunks, run.embedded) == ("succeeded", 1, 1, 1)
    assert not StagedDocument.objects.exists()
    assert document.file.name
    assert "note" not in document.file.name


def test_a_message_delivered_twice_changes_nothing(collection: Collection) -> None:
    document = queue_file(collection, "note.txt", b"Ibuprofen eases pain.")
    work_on(document)
    before = chunk_ids(document)
    work_on(document)
    pipeline.embed_documents([document.id])
    assert chunk_ids(document) == before
    assert IngestionRun.objects.get().ready == 1


def test_a_claimed_document_is_nobody_elses(collection: Collection) -> None:
    document = queue_file(collection, "note.txt", b"Ibuprofen eases pain.")
    _, mine = jobs.claim([document.id])
    _, theirs = jobs.claim([document.id])
    assert [entry.id for entry in mine] == [document.id]
    assert theirs == []


def test_a_claim_that_ended_can_be_taken_and_its_first_holder_loads_nothing(
    collection: Collection,
) -> None:
    document = queue_file(collection, "note.txt", b"Ibuprofen eases pain.")
    pipeline.parse_documents([document.id])
    token, (held,) = jobs.claim([document.id])
    job = loader.LoadJob(
        document=held,
        prepared=preparation.unpack_document(bytes(held.staged.payload)),
        digest="",
        source_sha256="",
    )
    Document.objects.update(claimed_until=timezone.now() - timezone.timedelta(seconds=1))
    jobs.claim([document.id])
    list(loader.load_groups([[job]], token=token))
    assert not Chunk.objects.exists()


def test_a_newer_upload_of_the_same_key_wins(collection: Collection) -> None:
    document = queue_file(collection, "note.txt", b"The old text.")
    token, _ = jobs.claim([document.id])
    document = queue_file(collection, "note.txt", b"The new text.")
    with jobs.lease_renewal(token):
        pass
    work_on(document)
    assert list(Chunk.objects.values_list("text", flat=True)) == ["The new text."]
    assert list(IngestionRun.objects.values_list("state", flat=True)) == ["succeeded"] * 2


def test_a_document_whose_workers_die_is_given_up(collection: Collection, settings: Any) -> None:
    document = queue_file(collection, "note.txt", b"Some text.")
    for _ in range(settings.INGESTION_MAX_ATTEMPTS):
        jobs.claim([document.id])
        Document.objects.update(claimed_until=timezone.now() - timezone.timedelta(seconds=1))
    work_on(document)
    assert (document.status, document.error_code) == ("failed", "attempts")
    assert IngestionRun.objects.get().state == "failed"


def test_a_failed_update_leaves_the_earlier_text_searchable(collection: Collection) -> None:
    document = queue_file(collection, "note.txt", b"The earlier text.")
    work_on(document)
    document = queue_file(collection, "note.txt", b"\x89PNG\r\n\x1a\n" + bytes(300))
    work_on(document)
    assert document.status == "failed"
    assert document.is_searchable
    assert Chunk.objects.get().text == "The earlier text."


class _NaNForPoison(HashingEmbedder):
    """A model that answers one text with nonsense."""

    def embed_documents(self, texts: Any) -> Any:
        vectors = super().embed_documents(texts)
        for row, text in enumerate(texts):
            if "poison" in text:
                vectors[row] = np.nan
        return vectors


def test_an_unusable_vector_fails_its_own_document_only(
    collection: Collection, settings: Any
) -> None:
    path = f"{__name__}._NaNForPoison"
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": path}}, "reranker": {}}
    assert isinstance(embedders["default"], _NaNForPoison)
    run = ingest(collection, text_source("good", "Good text."), text_source("bad", "Bad poison."))
    assert (run.ready, run.failed) == (1, 1)
    assert run.items.get(state="failed").error_code == "invalid_vector"
    assert Chunk.objects.get().text == "Good text."


def test_words_are_counted_by_collection_and_language(collection: Collection) -> None:
    german = "Die Häuser der Stadt stehen seit langer Zeit an einem breiten Fluss im Norden. " * 2
    english = "The houses of the town have been standing by a broad river for a long time. " * 2
    ingest(collection, text_source("de", german), text_source("en", english))
    counted = chunk_counts(collection)
    assert (counted["german", "haus"], counted["english", "hous"]) == (1, 1)
    assert counted_chunks(collection) == {"german": 1, "english": 1}


def test_an_overlong_or_unprintable_name_is_no_surprise(
    collection: Collection, tmp_path: Path
) -> None:
    (tmp_path / "caf\udce9.txt").write_text("A name that is no UTF-8.")
    run = ingest(collection, *discover([tmp_path]), text_source("k" * 1025, "text"))  # type: ignore[arg-type]
    assert (run.ready, run.failed) == (1, 1)
    assert Document.objects.get().source == "caf\ufffd.txt"
    assert "Shorten" in run.items.get(state="failed").error


def test_an_upload_is_kept_while_the_broker_is_down(
    collection: Collection, django_capture_on_commit_callbacks: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(current_app.conf, "broker_url", "redis://127.0.0.1:1/0")
    monkeypatch.setattr(current_app, "_pool", None)
    monkeypatch.setattr(current_app.amqp, "_producer_pool", None)
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        document = queue_file(collection, "note.txt", b"Some text.")
    assert callbacks
    assert document.status == "queued"


def test_a_newer_upload_wins_over_a_text_that_already_waits_for_its_vectors(
    collection: Collection,
) -> None:
    document = queue_file(collection, "note.txt", b"The old text.")
    pipeline.parse_documents([document.id])
    queue_file(collection, "note.txt", b"The new text.")
    pipeline.embed_documents([document.id])  # the message for the old one
    work_on(document)
    assert list(Chunk.objects.values_list("text", flat=True)) == ["The new text."]
    assert list(IngestionRun.objects.values_list("state", flat=True)) == ["succeeded"] * 2


def test_a_worker_whose_document_was_replaced_does_not_fail_the_new_one(
    collection: Collection,
) -> None:
    document = queue_file(collection, "note.txt", b"The old text.")
    token, _ = jobs.claim([document.id])
    queue_file(collection, "note.txt", b"The new text.")
    jobs.fail_documents(
        [document.id], code="truncated", message="The old file is gone.", token=token
    )
    work_on(document)
    assert (document.status, document.error) == ("ready", "")
    assert list(Chunk.objects.values_list("text", flat=True)) == ["The new text."]


TOPICS = ("The heart pumps blood through its valves.", "Income tax is paid each year.")
TOPICAL = "\n\n".join(" ".join(f"{sentence} ({n})." for n in range(12)) for sentence in TOPICS * 3)


def ingest_doc(collection: Collection, text: str = TOPICAL) -> IngestionRun:
    return ingest_inline(collection=collection, sources=[text_source("doc", text)])


def chunks(collection: Collection) -> list[Chunk]:
    return list(Chunk.objects.filter(collection=collection).order_by("ordinal"))


def counts(run: IngestionRun) -> tuple[int, int, int]:
    return run.ready, run.skipped, run.failed


def test_a_change_of_the_chunker_cuts_unchanged_files_anew() -> None:
    collection = CollectionFactory()
    assert counts(ingest_doc(collection)) == (1, 0, 0)
    before = chunks(collection)
    assert counts(ingest_doc(collection)) == (0, 1, 0)

    update_collection(
        collection=collection, chunker="window", chunker_options={"size": 4, "step": 4}
    )
    assert chunks(collection) == before, "nothing is cut before it is ingested"
    assert counts(ingest_doc(collection)) == (1, 0, 0)
    after = chunks(collection)
    assert len(after) > len(before)
    assert document_text(after[0].document).text.split() == TOPICAL.split()
    assert counts(ingest_doc(collection)) == (0, 1, 0)


def test_a_change_that_cuts_alike_embeds_nothing_and_keeps_the_chunks() -> None:
    collection = CollectionFactory()
    ingest_doc(collection)
    before = chunks(collection)
    update_collection(collection=collection, chunker="recursive")
    run = ingest_doc(collection)
    assert (run.ready, run.embedded) == (1, 0)
    assert chunks(collection) == before


def test_parts_of_a_passage_share_a_number_that_moves_with_them() -> None:
    options = {"max_tokens": 40, "parent_tokens": 160}
    collection = CollectionFactory(chunker="parent_child", chunker_options=options)
    ingest_doc(collection)
    before = chunks(collection)
    families = [list(family) for _, family in groupby(before, key=lambda chunk: chunk.parent)]
    assert [family[0].parent for family in families] == list(range(len(families)))
    assert len(families) > 2
    assert all(sum(chunk.token_count for chunk in family) <= 160 for family in families)

    preface = " ".join(f"A preface is put before it, number {n}." for n in range(30))
    run = ingest_doc(collection, f"{preface}\n\n{TOPICAL}")
    parents = {chunk.pk: chunk.parent for chunk in chunks(collection)}
    kept = [chunk for chunk in before if chunk.pk in parents]
    assert kept
    assert run.embedded == len(parents) - len(kept)
    assert parents[kept[-1].pk] > kept[-1].parent
    assert list(parents.values()) == sorted(parents.values())


@pytest.mark.parametrize("as_items", [False, True], ids=["ingested", "stored"])
def test_texts_are_cut_by_meaning_with_the_models_help(as_items: bool) -> None:
    collection = CollectionFactory(chunker="semantic", chunker_options={"min_tokens": 30})
    if as_items:
        store_items(collection=collection, items=[Item(id="doc", text=TOPICAL)])
    else:
        ingest_doc(collection)
    found = chunks(collection)
    assert len(found) >= len(TOPICS * 3)
    assert not [chunk for chunk in found if all(topic[:10] in chunk.text for topic in TOPICS)]
