"""Extraction of one conversation: claim it, extract by chat model or rules, store facts and
progress.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from common.errors import RagsiteError
from common.leases import database_now
from common.queues import Failure
from inference.chat_models import chosen_models
from inference.remote.retry import is_outage
from memory.extraction import rules
from memory.extraction.chat_model import extraction_messages, parse_reply
from memory.extraction.endings import Ending, ended_keys, named_ending, withdrawn_keys
from memory.extraction.messages import Extracted, UserMessage
from memory.extraction.outdated import mark_outdated
from memory.extraction.queue import QUEUE, Claim, State, claim, claimed_row, next_due
from memory.models import Context, Fact, Origin
from memory.scopes import UserScope, account_pk
from memory.store import end_value, lock_facts, put_context, put_fact
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat


def extract_messages(
    messages: Sequence[UserMessage], *, known_keys: Sequence[str], scope: UserScope
) -> tuple[Extracted, Origin, str]:
    """Facts and contexts in the messages, their origin, and the extractor: the name of the chat
    model of the workspace, or “rules”. Raises InferenceError, UnreadableReply, and TooManyRequests
    where the tokens of the workspace or the user are used up.
    """
    workspace_id, user_id = scope.workspace_id, account_pk(scope)
    model = metered_chat(workspace_id=workspace_id, user_id=user_id, purpose=Purpose.MEMORY)
    if model is None:
        return rules.extract_by_rules(messages), Origin.RULES, rules.RULES_EXTRACTOR
    require_tokens(workspace_id=workspace_id, user_id=user_id)
    answer = model.complete(
        extraction_messages(messages, known_keys=known_keys),
        max_tokens=settings.MEMORY_EXTRACTION_MAX_TOKENS,
        temperature=settings.MEMORY_EXTRACTION_TEMPERATURE,
        timeout=settings.MEMORY_EXTRACTION_SECONDS,
    )
    facts, contexts, ended = parse_reply(answer.content)
    texts = [message.text.casefold() for message in messages]

    def message_index(value: str) -> int:
        """Index of the last message that contains the value literally, else of the last message."""
        holding = [at for at, text in enumerate(texts) if value.casefold() in text]
        return max(holding, default=len(texts) - 1)

    found = Extracted(
        tuple((key, value, message_index(value)) for key, value in facts.items()),
        tuple((q, a, message_index(a)) for q, a in contexts),
        # First of all, so that they end nothing that is stated now.
        tuple((named_ending(text, known_keys), len(texts) - 1, 0) for text in ended),
    )
    return found, Origin.MODEL, model.model_name[:200]


logger = logging.getLogger(__name__)

#: Keys that the model may use again; which of them fit into its prompt it decides itself.
KNOWN_KEYS = 100


@dataclass(frozen=True, slots=True)
class ExtractionOutcome:
    """Ids of rows to embed, and when the conversation is due again."""

    contexts: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()
    due_at: datetime | None = None


def extract_conversation(item_id: int) -> ExtractionOutcome | None:
    """Extract facts from the waiting messages of a conversation and store them.

    None where there is nothing to do: it is not due, another worker has it, or the model is paused.
    Failures are recorded on the row; none is raised.
    """
    workspaces = QUEUE.rows.filter(pk=item_id).values_list("workspace", flat=True)
    model_id = chosen_models().get(workspaces.first() or 0)
    if QUEUE.is_paused(model_id):
        return None
    claimed = claim(item_id)
    if claimed is None:
        return None
    try:
        with QUEUE.renew_lease(claimed_row(claimed)):
            rows = Fact.objects.of(claimed.scope).current().order_by("-valid_from", "-pk")
            known_keys = list(rows.values_list("key", flat=True)[:KNOWN_KEYS])
            extraction = extract_messages(
                claimed.messages, known_keys=known_keys, scope=claimed.scope
            )
            QUEUE.record_answer(model_id)
            return store_extraction(claimed, *extraction)
    except Exception as error:  # whatever it is, the queue goes on
        # Record the failure without text of the conversation, since the log is kept for long.
        wait = error.retry_after if isinstance(error, RagsiteError) else None
        failure = Failure.OWN
        if is_outage(error):
            failure = Failure.OUTAGE
            QUEUE.record_outage(model_id)
        elif wait is None:  # else a limit of tokens, which passes
            # Final is a quota that is used up, say.
            failure = Failure.FINAL if isinstance(error, RagsiteError) else Failure.OWN
            QUEUE.record_answer(model_id)
        logger.warning("conversation %d could not be read: %s", item_id, type(error).__name__)
        due_at = QUEUE.retry_later(
            claimed_row(claimed), str(error) or type(error).__name__, failure=failure, wait=wait
        )
        return ExtractionOutcome(due_at=due_at)


@transaction.atomic
def store_extraction(
    claim: Claim, found: Extracted, origin: Origin, extractor: str
) -> ExtractionOutcome | None:
    """Store results and progress, or nothing where another worker has claimed the conversation."""
    # The order in which a user's memory is erased, too: facts first.
    lock_facts(claim.scope)
    item = claimed_row(claim).select_for_update().first()
    if item is None:
        logger.info("conversation %d was taken over by another worker", claim.item_id)
        return None
    stored = [
        put_context(
            scope=claim.scope,
            user_message=question,
            assistant_response=answer,
            conversation=claim.conversation,
            at=claim.messages[at].at,
            origin=origin,
        )
        for question, answer, at in found.contexts
    ]
    contexts = [archived.id for archived in stored if archived.is_new]
    facts, item.last_keys = _store_facts(claim, item.last_keys, found, origin)
    now = database_now()
    item.messages = item.messages[len(claim.messages) :]
    # Messages that were due together are read at once; those that came meanwhile wait.
    left = claim.waiting > len(claim.messages)
    item.due_at = now if left else next_due(len(item.messages), now=now)
    item.state = State.WAITING if item.messages else State.IDLE
    item.token = item.leased_until = None
    item.attempts = item.outages = 0
    item.error = ""
    item.extracted_at = now
    item.extractor = extractor
    item.facts += len(facts)
    item.contexts += len(contexts)
    item.save()
    return ExtractionOutcome(tuple(contexts), tuple(facts), item.due_at)


def _store_facts(
    claim: Claim, last_keys: list[str], found: Extracted, origin: Origin
) -> tuple[list[int], list[str]]:
    """Store facts and endings in the order in which they were said; returns the ids of new facts,
    and the keys that the last message states. `last_keys` are those of the message before.
    """
    turns = Context.objects.of(claim.scope).filter(conversation=claim.conversation)
    turns = turns.only("pk").order_by("-created_at", "-pk")
    # Keys that each message states, for a later one to withdraw.
    stated = {-1: last_keys}

    def put(key: str, value: str, at: int) -> None:
        message = claim.messages[at]
        change = put_fact(
            scope=claim.scope,
            key=key,
            value=value,
            at=message.at,
            # the archived turn that it was learnt from, if there is one
            source=turns.filter(user_message=message.text).first(),
            origin=origin,
        )
        if change.superseded is not None:
            mark_outdated(change.superseded)
        if change.changed:
            changed.append(change.fact.pk)
        # Of a statement with a question, “forget that” may mean the question.
        if "?" not in message.text:
            stated.setdefault(at, []).append(change.fact.key)

    def end(ending: Ending, at: int) -> None:
        moment = claim.messages[at].at
        known = dict(Fact.objects.of(claim.scope).as_of(moment).values_list("key", "value"))
        if ending.keys:
            keys = ended_keys(ending, known)
        else:
            keys = withdrawn_keys(ending, stated.get(at - 1, ()), known)
        for key in keys:
            if ending.replacement:
                put(key, ending.replacement, at)
            elif (ended := end_value(scope=claim.scope, key=key, at=moment)) is not None:
                mark_outdated(ended)

    changed: list[int] = []
    endings = list(found.endings)
    for place, fact in enumerate(found.facts):
        while endings and endings[0][2] <= place:
            end(*endings.pop(0)[:2])
        put(*fact)
    for ending, at, _ in endings:
        end(ending, at)
    return list(dict.fromkeys(changed)), stated.get(len(claim.messages) - 1, [])
