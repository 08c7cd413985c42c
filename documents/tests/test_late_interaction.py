"""Tokens of passages: encoded once they are searchable, and compared with those of a question."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.core.cache import cache
from django.db.models.functions import Now

from common.rls import workspace_context
from documents import late_interaction, services, tasks
from documents.ingestion import pipeline, token_encoding
from documents.ingestion.token_encoding import encode_batch
from documents.late_interaction import ComparedPassage, compare_passages, knows
from documents.models import Chunk, ChunkTokens, Collection, Document, StagedDocument
from documents.tests.commands import run_command
from documents.tests.factories import ChunkFactory, DocumentFactory
from inference.interfaces import BackendUnavailable, InferenceError
from inference.model_registry import token_encoders
from inference.tests.serving import LetterStates
from tests.kit import queue_file

pytestmark = pytest.mark.django_db


class Encoder(LetterStates):
    """Keeps what it was asked, refuses the text “poison”, and fails with `error`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.questions: list[str] = []
        self.error: Exception | None = None

    def encode_documents(self, texts: Any) -> Any:
        self.asked.append(list(texts))
        if self.error is not None:
            raise self.error
        if any("poison" in text for text in texts):
            raise InferenceError("a text is poison")
        return super().encode_documents(texts)

    def encode_query(self, text: str) -> Any:
        self.questions.append(text)
        if self.error is not None:
            raise self.error
        return super().encode_query(text)


ENTRY = {"BACKEND": "documents.tests.test_late_interaction.Encoder", "LANGUAGES": ["en"]}


@pytest.fixture(autouse=True)
def encoder(settings: Any) -> Iterator[Encoder]:
    settings.INFERENCE = {**settings.INFERENCE, "token_encoder": {"default": ENTRY}}
    late_interaction._question_states.cache_clear()
    cache.clear()
    found = token_encoders["default"]
    assert isinstance(found, Encoder)
    yield found
    late_interaction._question_states.cache_clear()


def chunks_of(document: Document, *texts: str, **values: Any) -> list[Chunk]:
    return [ChunkFactory(document=document, text=text, **values) for text in texts]


def encode_all() -> int:
    done = 0
    while (batch := encode_batch()) is not None:
        done += batch
    return done


def passage(chunk: Chunk) -> ComparedPassage:
    return ComparedPassage(chunk.pk, chunk.document.title, chunk.text)


# --- the pass ------------------------------------------------------------------------------------


def test_title_headings_and_text_are_read_and_places_are_those_of_the_text(
    encoder: Encoder,
) -> None:
    document = DocumentFactory(title="Harbour  fees")
    path = ["Harbour  fees", "Small\nboats"]
    [chunk] = chunks_of(document, "Boats pay.", heading_path=path)
    assert encode_all() == 1
    assert encoder.asked == [["Harbour fees > Small boats\nBoats pay."]]
    row = ChunkTokens.objects.get(chunk=chunk)
    assert (row.model, row.workspace_id) == ("letters", chunk.workspace_id)
    assert np.frombuffer(row.starts, "<i4").tolist() == [-1, -1, -1, -1, 0, 6]
    assert np.frombuffer(row.ends, "<i4").tolist() == [-1, -1, -1, -1, 5, 9]
    assert len(row.bits) == 6 * 32 // 8
    document.refresh_from_db()
    assert document.tokens_model == "letters"


def test_no_passage_is_encoded_twice(encoder: Encoder) -> None:
    document = DocumentFactory()
    chunks_of(document, *(f"Passage {number}" for number in range(40)))
    assert encode_batch() == token_encoding.BATCH_PASSAGES
    assert encode_all() == 40 - token_encoding.BATCH_PASSAGES
    assert sum(map(len, encoder.asked)) == ChunkTokens.objects.count() == 40
    assert encode_batch() is None
    assert sum(map(len, encoder.asked)) == 40


def test_passages_are_encoded_after_they_are_searchable_and_again_when_they_change(
    encoder: Encoder, collection: Collection, media_root: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(
        tasks, "send_or_wait", lambda task, *args, **options: sent.append(task.name) or True
    )
    document = queue_file(
        collection, "a.txt", b"The ferry to the island leaves at eight in the morning. " * 5
    )
    staged = pipeline.parse_documents([document.pk])
    assert encode_batch() is None
    assert StagedDocument.objects.exists()
    tasks.embed_documents(staged)
    assert sent == ["documents.tasks.encode_passages"]
    assert not ChunkTokens.objects.exists()
    assert Chunk.objects.filter(document=document).exists()
    tasks.encode_passages()
    [chunk] = Chunk.objects.filter(document=document)
    before = ChunkTokens.objects.get(chunk=chunk)
    assert len(before.bits) > 0

    services.edit_chunk(chunk=chunk, text="The ferry is gone.")
    chunk.refresh_from_db()
    found = compare_passages("ferry", [passage(chunk)])
    assert found is not None
    assert found[chunk.pk].ends.max() == len("The ferry is gone")  # not of the former text
    assert encode_all() == 1
    after = ChunkTokens.objects.get(chunk=chunk)
    assert bytes(after.bits) != bytes(before.bits)
    assert after.content_sha256 == chunk.content_sha256


def test_a_new_title_has_passages_encoded_again(encoder: Encoder, media_root: Any) -> None:
    document = DocumentFactory(title="Fees")
    [chunk] = chunks_of(document, "Boats pay.")
    encode_all()
    services.update_document(document=document, title="Harbour fees")
    assert encode_all() == 1
    assert encoder.asked[-1] == ["Harbour fees\nBoats pay."]
    assert ChunkTokens.objects.get(chunk=chunk).leased_until is None


def test_tokens_go_with_their_document() -> None:
    document = DocumentFactory()
    chunks_of(document, "One", "Two")
    encode_all()
    assert ChunkTokens.objects.count() == 2
    services.delete_document(document=document)
    assert not ChunkTokens.objects.exists()


def test_passages_of_another_model_are_encoded_again(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks_of(DocumentFactory(), "One")
    encode_all()
    monkeypatch.setattr(encoder, "model_name", "another", raising=False)
    assert encode_all() == 1
    assert ChunkTokens.objects.get().model == "another"
    assert Document.objects.get().tokens_model == "another"


def test_other_languages_and_former_versions_are_left_out(encoder: Encoder) -> None:
    german = DocumentFactory(language="de")
    chunks_of(german, "Die Fähre", language="german")
    chunks_of(german, "Within it the ferry", language="english")
    chunks_of(DocumentFactory(language="zh"), "渡轮", language="simple")
    chunks_of(DocumentFactory(language=""), "404", language="simple")
    chunks_of(DocumentFactory(is_current=False), "Before", is_current=False)
    encode_all()
    read = [text.partition("\n")[2] for texts in encoder.asked for text in texts]
    assert sorted(read) == ["404", "Within it the ferry"]
    current = Document.objects.filter(is_current=True)
    assert set(current.values_list("tokens_model", flat=True)) == {"letters"}


def test_nothing_is_encoded_while_documents_wait_to_be_embedded(encoder: Encoder) -> None:
    document = DocumentFactory()
    chunks_of(document, "One")
    waiting = StagedDocument.objects.create(
        workspace=document.workspace, document=DocumentFactory(), payload=b"x"
    )
    assert encode_batch() is None
    assert encoder.asked == []
    waiting.delete()
    assert encode_all() == 1


def test_what_another_worker_encodes_is_left_to_it_until_its_lease_ends(encoder: Encoder) -> None:
    chunk, _ = chunks_of(DocumentFactory(), "One", "Two")
    ChunkTokens.objects.create(
        chunk=chunk,
        workspace=chunk.workspace,
        model="letters",
        content_sha256=chunk.content_sha256,
        attempts=1,
        leased_until=Now() + timedelta(minutes=1),
    )
    assert encode_all() == 1
    assert [text[-3:] for texts in encoder.asked for text in texts] == ["Two"]
    assert Document.objects.get().tokens_model == ""
    ChunkTokens.objects.filter(chunk=chunk).update(leased_until=Now() - timedelta(minutes=1))
    assert encode_all() == 1
    assert Document.objects.get().tokens_model == "letters"


def test_a_passage_that_kills_its_workers_is_given_up(encoder: Encoder) -> None:
    [chunk] = chunks_of(DocumentFactory(), "One")
    encoder.error = MemoryError()
    for _ in range(token_encoding.MAX_ATTEMPTS):
        with pytest.raises(MemoryError):
            encode_batch()
        assert encode_batch() is None  # the lease has not ended
        ChunkTokens.objects.update(leased_until=Now() - timedelta(minutes=1))
    assert encode_all() == 0
    assert len(encoder.asked) == token_encoding.MAX_ATTEMPTS
    assert Document.objects.get().tokens_model == "letters"
    assert not ChunkTokens.objects.get(chunk=chunk).bits
    encoder.error = None
    assert compare_passages("one", [passage(chunk)]) == {}
    assert len(encoder.asked) == token_encoding.MAX_ATTEMPTS


def test_a_passage_that_the_model_refuses_harms_no_other(
    encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad = chunks_of(DocumentFactory(), "fine", "poison")
    encode_all()
    assert ChunkTokens.objects.get(chunk=good).bits
    assert not ChunkTokens.objects.get(chunk=bad).bits
    assert f"passage {bad.pk} gets no tokens: a text is poison" in caplog.text
    asked = len(encoder.asked)
    assert encode_batch() is None
    assert len(encoder.asked) == asked
    assert "with tokens   2 chunks" in run_command("stats")[1]


def test_while_the_model_is_down_passages_wait(encoder: Encoder) -> None:
    chunks_of(DocumentFactory(), "One")
    encoder.error = BackendUnavailable("no worker")
    for _ in range(token_encoding.MAX_ATTEMPTS + 1):
        assert encode_batch() is None
    assert not ChunkTokens.objects.exists()
    encoder.error = None
    assert encode_all() == 1


def test_one_message_waits_at_a_time_and_recovery_sends_a_lost_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[str] = []
    monkeypatch.setattr(
        tasks, "send_or_wait", lambda task, *args, **options: sent.append(task.name) or True
    )
    tasks.recover_encoding()
    assert sent == []
    chunks_of(DocumentFactory(), "One")
    tasks.recover_encoding()
    tasks.recover_encoding()
    assert sent == ["documents.tasks.encode_passages"]
    assert tasks.encode_passages() == 1
    assert len(sent) == 1  # nothing is left


def test_without_a_token_encoder_nothing_is_done(settings: Any) -> None:
    chunks_of(DocumentFactory(), "One")
    settings.INFERENCE = {**settings.INFERENCE, "token_encoder": {}}
    assert encode_batch() is None
    assert compare_passages("one", []) is None
    assert not knows("en")


# --- comparing -----------------------------------------------------------------------------------


def test_a_question_is_compared_with_stored_tokens(
    encoder: Encoder, django_assert_num_queries: Any
) -> None:
    document = DocumentFactory(title="Fees")
    one, two = chunks_of(document, "abc xyz", "nothing")
    encode_all()
    encoder.asked.clear()
    with django_assert_num_queries(1):
        found = compare_passages("abc", [passage(one), passage(two)])
    assert found is not None
    assert set(found) == {one.pk, two.pk}
    matches = found[one.pk]
    assert matches.similarities.dtype == np.float32
    assert matches.similarities.shape == (1, 3)
    assert (matches.starts.tolist(), matches.ends.tolist()) == ([-1, 0, 4], [-1, 3, 7])
    assert np.argmax(matches.similarities[0]) == 1
    assert matches.similarities[0, 1] == pytest.approx(1)
    assert found[two.pk].similarities.max() < 1
    assert encoder.asked == []
    compare_passages("abc", [passage(one)])
    assert encoder.questions == ["abc"]


def test_the_first_passages_without_tokens_are_encoded_now_and_not_kept(encoder: Encoder) -> None:
    chunks = chunks_of(DocumentFactory(), *(f"Passage {number}" for number in range(12)))
    passages = [passage(chunk) for chunk in chunks]
    found = compare_passages("passage", passages)
    assert found is not None
    assert list(found) == [chunk.pk for chunk in chunks[: late_interaction.MAX_ENCODED_NOW]]
    assert not ChunkTokens.objects.exists()
    encode_all()
    stored = compare_passages("passage", passages)
    assert stored is not None
    assert len(stored) == 12
    for pk, matches in found.items():
        np.testing.assert_array_equal(matches.similarities, stored[pk].similarities)
        np.testing.assert_array_equal(matches.starts, stored[pk].starts)
        np.testing.assert_array_equal(matches.ends, stored[pk].ends)


def test_a_failing_encoder_is_no_error_to_who_asks(
    encoder: Encoder, caplog: pytest.LogCaptureFixture
) -> None:
    [chunk] = chunks_of(DocumentFactory(), "One")
    encoder.error = BackendUnavailable("no worker is there")
    with caplog.at_level(logging.WARNING):
        assert compare_passages("one", [passage(chunk)]) is None
    assert "not compared token by token: no worker is there" in caplog.text


def test_tokens_of_other_workspaces_are_not_seen() -> None:
    one, other = ChunkFactory(), ChunkFactory()
    assert one.workspace != other.workspace
    encode_all()
    assert ChunkTokens.objects.count() == 2
    with workspace_context(one.workspace_id):
        assert list(ChunkTokens.objects.values_list("pk", flat=True)) == [one.pk]
    limited = workspace_context(one.workspace_id, collections=frozenset([other.collection_id]))
    with limited:
        encoder = token_encoders["default"]
        assert late_interaction._stored_tokens([one.pk, other.pk], encoder) == {}


def test_the_languages_of_the_encoder_are_known() -> None:
    assert knows("en")
    assert knows("")
    assert not knows("de")
