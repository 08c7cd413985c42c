"""Reading documents: taken, read, and what is found recorded together with the progress."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from common.errors import RagsiteError
from documents.models import Collection
from graph.extraction import outages, queue, readers
from graph.extraction.queue import Claim, Due, Failure
from graph.extraction.recording import Reading, record
from graph.extraction.sources import Stored, stored_documents
from inference.base import BackendUnavailable
from inference.remote.errors import ServerRefused

logger = logging.getLogger(__name__)

#: Passages that are read and recorded together.
BATCH_CHUNKS = 1_000
BATCH_DOCUMENTS = 200
#: To get hold of a document that nobody else takes.
TRIES = 5


@dataclass(slots=True)
class Outcome:
    """How many documents were taken, and read; those that wait for the model; and when those that
    could not be read are tried again."""

    taken: int = 0
    read: int = 0
    for_model: list[int] = field(default_factory=list)
    again: dict[int, datetime] = field(default_factory=dict)


def extract(document_ids: Sequence[int]) -> Outcome:
    """Read those of the documents that are due and are read by rules.

    Every failure is noted on the document's row; none is raised, and none stops the others.
    """
    due = queue.due(document_ids)
    outcome = Outcome(for_model=[each.document_id for each in due if _needs_model(each)])
    for batch in batches([each for each in due if not _needs_model(each)]):
        if claim := queue.claim(batch):
            outcome.taken += len(claim.document_ids)
            with queue.kept(claim):
                _read_all(claim, outcome)
    return outcome


def extract_with_model(document_id: int) -> Outcome:
    """Have the chat model read this document, unless it is known to be away."""
    outcome = Outcome()
    due = [each for each in queue.due([document_id]) if _needs_model(each)]
    if not due or outages.is_paused():
        return outcome
    if claim := queue.claim(due):
        outcome.taken = 1
        with queue.kept(claim):
            ask(claim, outcome)
    return outcome


def extract_next() -> Outcome:
    """Have the chat model read the document that is next, if it has time for it."""
    for _ in range(TRIES):
        document_id = queue.next_for_model()
        if document_id is None:
            break
        outcome = extract_with_model(document_id)
        if outcome.taken:  # else somebody else was quicker
            return outcome
    return Outcome()


def _needs_model(due: Due) -> bool:
    return due.mode == Collection.Graph.LLM


def batches(due: Sequence[Due]) -> Iterator[list[Due]]:
    """Of one collection each, and not too large. What was taken before and did not come to an end
    is taken alone, so that a document that kills its worker takes no others with it."""
    yield from ([each] for each in due if each.tries)
    fresh = sorted((each for each in due if not each.tries), key=_place)
    for _, documents in groupby(fresh, key=lambda each: each.collection_id):
        batch: list[Due] = []
        chunks = 0
        for each in documents:
            if batch and (chunks + each.chunks > BATCH_CHUNKS or len(batch) >= BATCH_DOCUMENTS):
                yield batch
                batch, chunks = [], 0
            batch.append(each)
            chunks += each.chunks
        if batch:
            yield batch


def _place(due: Due) -> tuple[int, int]:
    return due.collection_id, due.document_id


def _read_all(claim: Claim, outcome: Outcome) -> None:
    recipe = readers.recipe_of(claim.mode)
    readings = []
    for stored in stored_documents(claim.document_ids):
        try:
            readings.append(Reading(stored, readers.read_by_rules(stored.source), recipe))
        except Exception as error:
            _note(claim, stored.document_id, error, outcome)
    if len(readings) > 1:
        try:
            outcome.read += len(record(claim, readings))
        except Exception as error:  # one of them cannot be stored: the others can
            logger.warning("documents are recorded one by one: %s", type(error).__name__)
        else:
            return
    for reading in readings:
        _record_alone(claim, reading, outcome)


def _record_alone(claim: Claim, reading: Reading, outcome: Outcome) -> None:
    try:
        outcome.read += len(record(claim, [reading]))
    except Exception as error:
        _note(claim, reading.document_id, error, outcome)


def ask(claim: Claim, outcome: Outcome) -> None:
    """Have the chat model read what was taken."""
    for stored in stored_documents(claim.document_ids):
        try:
            _record_alone(claim, _read_by_model(claim, stored), outcome)
        except Exception as error:
            _note(claim, stored.document_id, error, outcome)


def _read_by_model(claim: Claim, stored: Stored) -> Reading:
    extraction, note = readers.read_by_model(stored.source, goes_on=queue.held(claim).exists)
    outages.note_answer()
    return Reading(stored, extraction, readers.recipe_of(claim.mode), note)


def _note(claim: Claim, document_id: int, error: Exception, outcome: Outcome) -> None:
    """Without a word of the document: the log keeps this for ever."""
    failure = _failure(error)
    if failure is Failure.OUTAGE:
        outages.note_outage()
    elif claim.mode == Collection.Graph.LLM:
        outages.note_answer()
    logger.warning("document %d could not be read: %s", document_id, type(error).__name__)
    when = queue.put_back(claim, document_id, str(error) or type(error).__name__, failure=failure)
    if when is not None:
        outcome.again[document_id] = when


def _failure(error: Exception) -> Failure:
    if isinstance(error, ServerRefused | BackendUnavailable):
        return Failure.OWN if readers.is_of_the_passage(error) else Failure.OUTAGE
    # What the site itself refuses, it will refuse again.
    return Failure.FINAL if isinstance(error, RagsiteError) else Failure.OWN
