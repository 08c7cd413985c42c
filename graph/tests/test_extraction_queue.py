"""The queue of documents: what is due, what is taken together, and how it comes back."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from documents.models import Collection, Document
from graph.extraction import queue, worker
from graph.models import Extraction, Mention
from graph.services.extraction import extract_waiting, extraction_state, retry_extractions
from graph.tests.factories_extraction import row_of, waiting

pytestmark = pytest.mark.django_db

State = Extraction.State


def claim(*documents: Document) -> queue.Claim:
    taken = queue.claim(queue.due_documents([document.pk for document in documents]))
    assert taken is not None
    return taken


def test_a_document_is_taken_once() -> None:
    first, second = waiting("Ada", "Eve")
    taken = claim(first)
    assert taken.document_ids == (first.pk,)
    assert [due.document_id for due in queue.due_documents([first.pk, second.pk])] == [second.pk]
    due = queue.DueDocument(first.workspace_id, first.pk, first.collection_id, "rules", 1, 0)
    assert queue.claim([due]) is None
    assert row_of(first).attempts == 1


def test_what_a_dead_worker_had_is_due_when_its_lease_is_over() -> None:
    [document] = waiting("Ada")
    taken = claim(document)
    assert queue.sweep_due() == []
    Extraction.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert queue.sweep_due() == [document.pk]
    assert queue.sweep_due() == []
    assert not queue.claimed_rows(taken).exists()
    assert worker.extract([document.pk]).read == 1


def test_a_document_whose_worker_dies_each_time_is_given_up_and_can_be_tried_again(
    settings: Any,
) -> None:
    [document] = waiting("Ada Lovelace met Grace Hopper.")
    for _ in range(settings.GRAPH_EXTRACTION_MAX_ATTEMPTS):
        claim(document)
        Extraction.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert queue.claim(queue.due_documents([document.pk])) is None
    row = row_of(document)
    assert (row.state, row.token) == (State.DEAD, None)
    assert "The worker died each time" in row.error
    assert extraction_state(collection=document.collection).dead == 1
    assert retry_extractions(extraction_ids=[row.pk]) == 1
    assert retry_extractions(extraction_ids=[row.pk]) == 0
    assert extract_waiting(collection=document.collection) == 1
    assert row_of(document).state == State.DONE


def test_a_collection_that_is_off_is_not_read() -> None:
    [document] = waiting("Ada", graph="off")
    assert queue.due_documents([document.pk]) == []
    assert queue.sweep_due() == []
    assert extraction_state(collection=document.collection).waiting == 1


def test_a_mode_that_changed_since_is_not_taken_for_the_other() -> None:
    [document] = waiting("Ada")
    due = queue.due_documents([document.pk])
    Collection.objects.update(graph="llm")
    assert queue.claim(due) is None


def test_a_poisonous_document_holds_up_no_other() -> None:
    first, poison, third = waiting("Ada Lovelace", "poison", "Grace Hopper")
    # no metadata of any document looks like this
    Document.objects.filter(pk=poison.pk).update(metadata=["poison"])
    outcome = worker.extract([first.pk, poison.pk, third.pk])
    assert (outcome.read, list(outcome.again)) == (2, [poison.pk])
    row = row_of(poison)
    assert (row.state, row.attempts) == (State.WAITING, 1)
    assert "has no attribute" in row.error
    assert {row_of(first).state, row_of(third).state} == {State.DONE}


def test_what_cannot_be_recorded_together_is_recorded_one_by_one() -> None:
    first, poison, third = waiting("Ada Lovelace", "Eve Poison", "Grace Hopper")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE graph_node ADD CHECK (name <> 'Eve Poison')")
    assert worker.extract([first.pk, poison.pk, third.pk]).read == 2
    assert row_of(poison).state == State.WAITING
    assert not Mention.objects.filter(chunk__document=poison).exists()
    assert Mention.objects.filter(chunk__document=third).exists()


def test_documents_of_one_collection_go_together_and_what_failed_before_alone() -> None:
    def due(
        number: int, *, collection: int = 1, chunks: int = 1, tries: int = 0
    ) -> queue.DueDocument:
        return queue.DueDocument(1, number, collection, "rules", chunks, tries)

    documents = [
        due(1),
        due(2, collection=2),
        due(3, tries=1),
        due(4, chunks=worker.MAX_BATCH_CHUNKS),
        due(5),
        *(due(number) for number in range(10, 10 + worker.MAX_BATCH_DOCUMENTS)),
    ]
    taken = [[each.document_id for each in batch] for batch in worker.batches(documents)]
    assert taken[:3] == [[3], [1], [4]]
    assert taken[3] == [5, *range(10, 9 + worker.MAX_BATCH_DOCUMENTS)]
    assert taken[4:] == [[9 + worker.MAX_BATCH_DOCUMENTS], [2]]


def test_the_model_reads_one_after_the_other(settings: Any) -> None:
    first, second, third = waiting("Ada", "Eve", "Grace", graph="llm")
    assert queue.sweep_due() == []
    Extraction.objects.filter(document=first).update(due_at=timezone.now())
    assert queue.next_for_model() == second.pk
    claim(second)
    assert queue.next_for_model() is None
    settings.GRAPH_EXTRACTION_PARALLEL = 2
    assert queue.next_for_model() == third.pk
    Extraction.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    settings.GRAPH_EXTRACTION_PARALLEL = 1
    assert queue.next_for_model() == second.pk


def test_a_document_without_passages_is_done() -> None:
    [document] = waiting("Ada")
    document.chunks.all().delete()
    assert worker.extract([document.pk]).read == 1
    assert row_of(document).mentions == 0
