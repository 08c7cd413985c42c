"""Reading one conversation: taken, read, and what is found stored together with the progress."""

import logging
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from common.clock import database_now
from common.errors import RagsiteError
from memory.extraction import extractors, outages, queue
from memory.extraction.extractors import Reading
from memory.extraction.queue import Claim, Failure, State
from memory.locks import hold_facts
from memory.models import Context, Fact
from memory.scopes import UserScope
from memory.storing.contexts import put_context
from memory.storing.facts import put_fact

logger = logging.getLogger(__name__)

#: Keys that the model may use again; which of them fit into its prompt it decides itself.
KNOWN_KEYS = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """Rows that wait to be embedded, and when the conversation is to be read on or again."""

    contexts: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    due_at: datetime | None = None


def extract(item_id: int) -> Outcome | None:
    """Read what waits of a conversation and keep what it tells of the user.

    None where there is nothing to do: it is not due, somebody else has it, or the model is known
    to be away. Every failure is noted on the row; none is raised.
    """
    if outages.is_paused():
        return None
    claim = queue.claim(item_id)
    if claim is None:
        return None
    try:
        with queue.kept(claim):
            reading = extractors.read(claim.messages, known_keys=_known_keys(claim.scope))
            outages.note_answer()
            return store(claim, reading)
    except Exception as error:  # whatever it is, the queue goes on
        return Outcome(due_at=_note(claim, error))


def _note(claim: Claim, error: Exception) -> datetime | None:
    """Without a word of the conversation: the log keeps this for ever."""
    failure = _failure(error)
    if failure is Failure.OUTAGE:
        outages.note_outage()
    else:
        outages.note_answer()
    logger.warning("conversation %d could not be read: %s", claim.item_id, type(error).__name__)
    return queue.put_back(claim, str(error) or type(error).__name__, failure=failure)


def _failure(error: Exception) -> Failure:
    if extractors.is_outage(error):
        return Failure.OUTAGE
    # A quota that is used up, say.
    return Failure.FINAL if isinstance(error, RagsiteError) else Failure.OWN


def _known_keys(scope: UserScope) -> list[str]:
    rows = Fact.objects.of(scope).current().order_by("-valid_from", "-pk")
    return list(rows.values_list("key", flat=True)[:KNOWN_KEYS])


@transaction.atomic
def store(claim: Claim, reading: Reading) -> Outcome | None:
    """All of it and the progress, or nothing where somebody else has the conversation now."""
    # The order in which a user's memory is erased, too: facts first.
    hold_facts(claim.scope)
    item = queue.held(claim).select_for_update().first()
    if item is None:
        logger.info("conversation %d was taken over by another worker", claim.item_id)
        return None
    contexts = _put_contexts(claim, reading)
    facts = _put_facts(claim, reading)
    now = database_now()
    item.messages = item.messages[len(claim.messages) :]
    # What was due together is read on at once; what came meanwhile waits its time.
    left = claim.waiting > len(claim.messages)
    item.due_at = now if left else queue.next_due(len(item.messages), now=now)
    item.state = State.WAITING if item.messages else State.IDLE
    item.token = item.leased_until = None
    item.attempts = item.outages = 0
    item.error = ""
    item.extracted_at = now
    item.extractor = reading.extractor
    item.facts += len(facts)
    item.contexts += len(contexts)
    item.save()
    return Outcome(tuple(contexts), tuple(facts), item.due_at)


def _put_contexts(claim: Claim, reading: Reading) -> list[int]:
    stored = [
        put_context(
            scope=claim.scope,
            user_message=context.question,
            assistant_response=context.answer,
            conversation=claim.conversation,
            at=claim.messages[context.said_in].at,
            origin=reading.origin,
        )
        for context in reading.found.contexts
    ]
    return [archived.id for archived in stored if archived.is_new]


def _put_facts(claim: Claim, reading: Reading) -> list[int]:
    changes = [
        put_fact(
            scope=claim.scope,
            key=fact.key,
            value=fact.value,
            at=claim.messages[fact.said_in].at,
            source=_turn(claim, fact.said_in),
            origin=reading.origin,
        )
        for fact in reading.found.facts
    ]
    return [change.fact.pk for change in changes if change.changed]


def _turn(claim: Claim, said_in: int) -> Context | None:
    """The turn of this conversation in which that was said, if it is archived as well."""
    turns = Context.objects.of(claim.scope).filter(
        conversation=claim.conversation, user_message=claim.messages[said_in].text
    )
    return turns.only("pk").order_by("-created_at", "-pk").first()
