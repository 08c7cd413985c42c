"""A passage changed by a person: what changes with it, what does not, and what becomes of it."""

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accounts.models import Change
from common.errors import Conflict, InvalidInput
from documents import lexical_index, services
from documents.ingestion import embedding, jobs, loader
from documents.ingestion.concurrency import Stopwatch
from documents.ingestion.items import Item
from documents.ingestion.preparation import prepare_for, recipe_for
from documents.ingestion.registration import register_documents
from documents.ingestion.sources import text_source
from documents.models import Chunk, ChunkEdit, Collection, Document, IngestionRun
from documents.services import document_text, edit_chunk, ingest_inline, undo_edit
from documents.services.chunk_edits import StaleText
from documents.tests.factories import CollectionFactory, UserFactory
from documents.tests.words import chunk_counts
from documents.validation import validate
from inference.backends.hashing import HashingEmbedder
from tests.kit import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root", "embedder")]

State = ChunkEdit.State
FILLER = [" ".join(f"word{n}x{place}" for place in range(20)) for n in range(16)]
PARAGRAPHS = [f"{FILLER[n]} speaks of topic{n} and {FILLER[n + 8]}." for n in range(8)]
TEXT = "\n\n".join(PARAGRAPHS)


class Recording(HashingEmbedder):
    """Remembers what it embedded."""

    texts: ClassVar[list[str]] = []

    def embed_documents(self, texts: Any) -> NDArray[np.float32]:
        self.texts.extend(texts)
        return super().embed_documents(texts)


@pytest.fixture
def embedder(settings: Any) -> None:
    name = f"{Recording.__module__}.Recording"
    settings.INFERENCE = {"embedder": {"default": {"BACKEND": name}}, "reranker": {}}
    Recording.texts.clear()


@pytest.fixture
def collection() -> Collection:
    options = {"max_tokens": 60, "overlap": 20}
    return CollectionFactory(
        chunker="fixed", chunker_options=options, default_language="en", graph="rules"
    )


def ingest(collection: Collection, text: str = TEXT, **options: Any) -> Document:
    ingest_inline(collection=collection, sources=[text_source("guide", text)], **options)
    Recording.texts.clear()
    return Document.objects.get(collection=collection, key="guide", is_current=True)


def chunks_of(document: Document) -> list[Chunk]:
    return list(Chunk.objects.filter(document=document).order_by("ordinal"))


def passage_about(document: Document, words: str) -> Chunk:
    return next(chunk for chunk in chunks_of(document) if words in chunk.text)


def vectors(document: Document) -> dict[int, tuple[float, ...]]:
    return {chunk.pk: tuple(chunk.embedding) for chunk in chunks_of(document)}


def assert_whole(document: Document, text: str) -> None:
    """The document says `text`, each passage is a part of it, and nothing is amiss."""
    whole = document_text(Document.objects.get(pk=document.pk))
    assert whole.text.split() == text.split()
    assert all(whole.text[chunk.start : chunk.end] == chunk.text for chunk in whole.chunks)
    report = validate(collection_id=document.collection_id)
    assert [finding.check.name for finding in report.findings] == []


def test_only_what_changes_is_embedded_and_all_others_keep_their_vectors(
    collection: Collection,
) -> None:
    document = ingest(collection)
    before = vectors(document)
    chunk = passage_about(document, "topic3")
    new = chunk.text.replace("topic3", "subject3")
    edited = edit_chunk(chunk=chunk, text=new)
    changed = [each for each in chunks_of(document) if "subject3" in each.text]
    assert edited.chunk.pk == chunk.pk
    assert edited.chunk.text == new
    # its neighbours share words with it, and no other passage was given to the model
    assert len(changed) == edited.embedded == len(Recording.texts)
    assert {each.pk for each in changed} < set(before)
    after = vectors(document)
    assert {pk for pk, vector in after.items() if vector != before[pk]} == {
        each.pk for each in changed
    }
    [wanted] = HashingEmbedder().embed_documents([f"{edited.chunk.context}\n{new}"])
    assert np.allclose(after[chunk.pk], wanted, atol=1e-6)


def test_offsets_behind_the_change_stay_true(collection: Collection) -> None:
    document = ingest(collection)
    chunk = passage_about(document, "topic1")
    new = chunk.text.replace("topic1", "a much longer topic than the one before", 1)
    edit_chunk(chunk=chunk, text=new)
    whole = document_text(document).text
    assert_whole(document, TEXT.replace("topic1", "a much longer topic than the one before", 1))
    assert "topic7" in whole


def test_what_is_no_other_text_or_none_that_can_be_changes_nothing(collection: Collection) -> None:
    document = ingest(collection)
    chunk = chunks_of(document)[1]
    as_a_form_sends_it = "  " + chunk.text.replace("\n", "\r\n") + "\r\n\r\n"
    assert edit_chunk(chunk=chunk, text=as_a_form_sends_it).embedded == 0
    for text in ("", " \n\t", "\x00"):
        with pytest.raises(InvalidInput, match="needs a text"):
            edit_chunk(chunk=chunk, text=text)
    with pytest.raises(InvalidInput, match="Shorten it"):  # more than the model reads
        edit_chunk(chunk=chunk, text="word " * 2_000)
    assert not ChunkEdit.objects.exists()
    assert_whole(document, TEXT)


def test_who_changed_what_is_kept_without_a_word_in_the_history(collection: Collection) -> None:
    document = ingest(collection)
    chunk = passage_about(document, "topic2")
    user = UserFactory()
    edited = edit_chunk(chunk=chunk, text=chunk.text.replace("topic2", "zeppelin"), user=user)
    edit = ChunkEdit.objects.get()
    assert edited.edit == edit
    assert (edit.user, edit.chunk, edit.state) == (user, chunk.pk, State.APPLIED)
    assert (edit.before, edit.after) == (chunk.text, edited.chunk.text)
    change = Change.objects.get(kind="chunk")
    assert (change.thing, change.document, change.details) == (
        chunk.pk,
        document.pk,
        {"fields": ["text"]},
    )


def test_what_somebody_else_changed_meanwhile_is_not_written_over(collection: Collection) -> None:
    document = ingest(collection)
    seen = passage_about(document, "topic2")
    edit_chunk(chunk=Chunk.objects.get(pk=seen.pk), text=seen.text.replace("topic2", "theirs"))
    with pytest.raises(StaleText, match="Reload it"):
        edit_chunk(chunk=seen, text=seen.text.replace("topic2", "mine"))
    assert "mine" not in document_text(document).text


def test_a_superseded_version_is_not_changed(collection: Collection) -> None:
    old = ingest(collection)
    ingest(collection, TEXT.replace("topic1", "new1"), policy=IngestionRun.Policy.NEW_VERSION)
    with pytest.raises(Conflict, match="superseded"):
        edit_chunk(chunk=chunks_of(old)[0], text="Something else.")


def test_undoing_gives_back_the_text_and_the_vectors(collection: Collection) -> None:
    document = ingest(collection)
    before = vectors(document)
    chunk = passage_about(document, "topic4")
    edited = edit_chunk(chunk=chunk, text=chunk.text.replace("topic4", "zeppelin"))
    assert edited.edit is not None
    undo_edit(edit=edited.edit, user=UserFactory())
    assert_whole(document, TEXT)
    after = vectors(document)
    assert after.keys() == before.keys()
    assert all(np.allclose(after[pk], before[pk], atol=1e-6) for pk in before)
    assert ChunkEdit.objects.get().state == State.UNDONE
    with pytest.raises(Conflict):
        undo_edit(edit=edited.edit)


def test_of_two_changes_of_a_passage_the_later_is_undone_first(collection: Collection) -> None:
    document = ingest(collection)
    chunk = passage_about(document, "topic4")
    first = edit_chunk(chunk=chunk, text="One thing.")
    second = edit_chunk(chunk=first.chunk, text="Another thing.")
    assert first.edit
    assert second.edit
    with pytest.raises(Conflict, match="later change first"):
        undo_edit(edit=first.edit)
    undo_edit(edit=second.edit)
    undo_edit(edit=first.edit)
    assert_whole(document, TEXT)


# --- ingested again ------------------------------------------------------------------------------


def changed_about(document: Document, words: str, new: str) -> ChunkEdit:
    chunk = passage_about(document, words)
    edited = edit_chunk(chunk=chunk, text=chunk.text.replace(words, new))
    Recording.texts.clear()
    assert edited.edit is not None
    return edited.edit


def test_an_unchanged_source_keeps_the_change(collection: Collection) -> None:
    document = ingest(collection)
    changed_about(document, "topic5", "zeppelin")
    ids = [chunk.pk for chunk in chunks_of(document)]
    ingest_inline(collection=collection, sources=[text_source("guide", TEXT)])
    overwrite = IngestionRun.Policy.OVERWRITE
    ingest_inline(collection=collection, sources=[text_source("guide", TEXT)], policy=overwrite)
    assert Recording.texts == []
    assert [chunk.pk for chunk in chunks_of(document)] == ids
    assert "zeppelin" in document_text(document).text
    assert ChunkEdit.objects.get().state == State.APPLIED


LONGER = "A beginning that was not there.\n\n" + TEXT.replace("topic1", "news1")
CORRECTED = TEXT.replace("topic5", "zeppelin")


@pytest.mark.parametrize(
    ("source", "whole", "state"),
    [
        (LONGER, LONGER.replace("topic5", "zeppelin"), State.APPLIED),
        (CORRECTED, CORRECTED, State.CLOSED),
    ],
    ids=["changed elsewhere", "says so itself"],
)
def test_a_source_that_changed_keeps_the_change_unless_it_says_so_itself(
    collection: Collection, source: str, whole: str, state: str
) -> None:
    changed_about(ingest(collection), "topic5", "zeppelin")
    assert_whole(ingest(collection, source), whole)
    assert ChunkEdit.objects.get().state == state


def test_a_source_that_changed_there_is_believed_and_the_change_is_a_conflict(
    collection: Collection,
) -> None:
    document = ingest(collection)
    edit = changed_about(document, "topic5", "zeppelin")
    rewritten = TEXT.replace(PARAGRAPHS[5], "All that was said here is gone.")
    document = ingest(collection, rewritten)
    assert_whole(document, rewritten)
    edit.refresh_from_db()
    assert edit.state == State.CONFLICT
    services.dismiss_edit(edit=edit, user=UserFactory())
    edit.refresh_from_db()
    assert edit.state == State.CLOSED


def test_a_conflict_is_none_any_more_when_the_source_says_it_again(collection: Collection) -> None:
    document = ingest(collection)
    changed_about(document, "topic5", "zeppelin")
    ingest(collection, "Something else altogether.")
    assert ChunkEdit.objects.get().state == State.CONFLICT
    document = ingest(collection)
    assert_whole(document, TEXT.replace("topic5", "zeppelin"))
    assert ChunkEdit.objects.get().state == State.APPLIED


def test_another_way_of_cutting_keeps_the_change(collection: Collection) -> None:
    document = ingest(collection)
    changed_about(document, "topic5", "zeppelin")
    services.update_collection(
        collection=collection, chunker="sentence", chunker_options={"max_tokens": 40, "overlap": 0}
    )
    document = ingest(collection)
    assert_whole(document, TEXT.replace("topic5", "zeppelin"))
    assert ChunkEdit.objects.get().state == State.APPLIED


def test_a_new_version_takes_the_changes_over_and_the_old_one_keeps_its_own(
    collection: Collection,
) -> None:
    old = ingest(collection)
    changed_about(old, "topic5", "zeppelin")
    new_text = TEXT.replace("topic1", "news1")
    new = ingest(collection, new_text, policy=IngestionRun.Policy.NEW_VERSION)
    assert new.pk != old.pk
    assert_whole(new, new_text.replace("topic5", "zeppelin"))
    assert [edit.state for edit in new.edits.all()] == [State.APPLIED]
    assert [edit.state for edit in old.edits.all()] == [State.APPLIED]
    assert "zeppelin" in document_text(old).text


def test_what_a_program_stores_is_the_last_word(collection: Collection) -> None:
    document = ingest(collection)
    edit = changed_about(document, "topic5", "zeppelin")
    services.store_items(collection=collection, items=[Item(id="guide", text=TEXT)])
    assert "zeppelin" not in document_text(document).text
    edit.refresh_from_db()
    assert edit.state == State.CONFLICT


def test_a_change_while_the_text_is_embedded_anew_is_kept(collection: Collection) -> None:
    """It lands between the model's work and the loading."""
    document = ingest(collection)

    source = text_source("guide", TEXT.replace("topic1", "news1"))
    run = IngestionRun.objects.create(workspace=collection.workspace, collection=collection)
    register_documents(collection, [source], run=run, state="embedding")
    token, [held] = jobs.claim([document.pk])
    prepared = prepare_for(
        collection, source.read(), name="guide", declared=source.declared, watch=Stopwatch()
    )
    job = loader.LoadJob(held, prepared, recipe_for(collection).digest(source.declared), "0" * 64)
    made = embedding.texts_to_embed([(held.pk, prepared)], collection=held.collection)
    changed_about(document, "topic5", "zeppelin")
    vectors = embedding.embed_texts(made, embedder=HashingEmbedder())
    loader.load_documents([job], vectors, token=token)
    assert "zeppelin" in document_text(document).text
    assert "news1" in document_text(document).text


# --- shared, moved, deleted ----------------------------------------------------------------------


def test_documents_that_are_stored_once_share_the_change_and_take_it_with_them(
    collection: Collection,
) -> None:
    document = ingest(collection)
    ingest_inline(collection=collection, sources=[text_source("copy", TEXT)], store_once=True)
    copy = Document.objects.get(key="copy")
    assert copy.is_link
    changed_about(document, "topic5", "zeppelin")
    assert "zeppelin" in document_text(copy).text
    services.delete_document(document=document)
    copy.refresh_from_db()
    assert "zeppelin" in document_text(copy).text
    assert [edit.state for edit in copy.edits.all()] == [State.APPLIED]
    overwrite = IngestionRun.Policy.OVERWRITE
    ingest_inline(collection=collection, sources=[text_source("copy", TEXT)], policy=overwrite)
    assert "zeppelin" in document_text(copy).text


@hypothesis_settings(
    max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.data())
def test_any_row_of_changes_leaves_a_whole_document_that_survives(
    collection: Collection, data: st.DataObject
) -> None:
    Document.objects.filter(collection=collection).delete()
    document = ingest(collection, "\n\n".join(PARAGRAPHS[:3]))
    for _ in range(data.draw(st.integers(1, 4))):
        chunk = data.draw(st.sampled_from(chunks_of(document)))
        words = chunk.text.split()
        first = data.draw(st.integers(0, len(words) - 1))
        last = data.draw(st.integers(first, len(words)))
        new = data.draw(st.lists(st.sampled_from(["red", "green", "blue"]), max_size=6))
        text = " ".join([*words[:first], *new, *words[last:]])
        if text.split():
            edit_chunk(chunk=chunk, text=text)
    text = document_text(document).text
    assert_whole(document, text)
    counted = chunk_counts(collection)
    lexical_index.rebuild_lexical_index(collection.pk)
    assert chunk_counts(collection) == counted


@pytest.mark.django_db(transaction=True)
def test_changes_of_neighbours_at_the_same_time_are_both_kept(collection: Collection) -> None:
    document = ingest(collection)
    parts = [(passage_about(document, f"topic{n}"), f"topic{n}") for n in (0, 2, 4, 6)]
    changes = [
        partial(edit_chunk, chunk=chunk, text=chunk.text.replace(words, f"changed{words}"))
        for chunk, words in parts
    ]
    at_once(*changes)
    text = document_text(document).text
    assert all(f"changed{words}" in text for _, words in parts)
