"""Summaries written by a chat model, in a worker: leased, call by call, cancelled by deleting the
row. Begin with `write_summary`.

The cost is bounded before the first call: a row names the passages that are read, at most
RAGSITE_RAG_SUMMARY_TOKENS of them, each once, and one more call joins the notes.
"""

import logging
from datetime import timedelta
from functools import partial
from threading import Event

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.translation import gettext

from common.leases import heartbeat, lease_expired
from common.sql import release_connection
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import ChatMessage, ChatModel
from memory.injection import estimated_tokens
from model_servers.usage import Purpose, metered_chat
from rag.answering.citations import CitationScanner
from rag.answering.model_context import RULES_TOKENS, prompt_tokens
from rag.answering.prompt import truncate_to_tokens
from rag.answering.summary_prompt import (
    MAX_ANSWER_TOKENS,
    NOTES_TASK,
    TASKS,
    batches,
    notes_prompt,
    passages_prompt,
)
from rag.errors import NoChatModel, failure_event
from rag.events import Citation, Passage
from rag.models import Summary
from rag.services.conversations import lock_documents
from rag.tools.summaries import read_passages

logger = logging.getLogger(__name__)

State = Summary.State
LEASE = timedelta(minutes=2)
#: A cancelled summary ends this soon.
HEARTBEAT_SECONDS = 2.0


def waiting_ids() -> list[int]:
    """Ids of summaries that wait for a worker, oldest first."""
    return list(
        Summary.objects.filter(state=State.WAITING).order_by("pk").values_list("pk", flat=True)
    )


def fail_stale_summaries() -> int:
    """Mark summaries whose worker died as failed; returns how many."""
    stale = Summary.objects.filter(lease_expired("leased_until", lease=LEASE), state=State.RUNNING)
    return stale.update(
        state=State.FAILED,
        error_code="interrupted",
        error="The site was restarted while it was written. Ask for it again.",
    )


def write_summary(summary_id: int) -> bool:
    """Have the row's model write it; False where another worker has it, or it is gone."""
    rows = Summary.objects.filter(pk=summary_id)
    if not rows.filter(state=State.WAITING).update(state=State.RUNNING, leased_until=Now() + LEASE):
        return False
    row = rows.first()
    if row is None:
        return False
    cancelled = Event()

    def renew() -> None:
        running = rows.filter(state=State.RUNNING)
        if not running.update(leased_until=Now() + LEASE):
            cancelled.set()

    try:
        with cancellation(cancelled), heartbeat(renew, seconds=HEARTBEAT_SECONDS):
            text, passages = _write(row, _model_of(row), cancelled)
        _finish(row, text, passages)
    except Cancelled:
        logger.info("summary %s was cancelled", summary_id)
    except Exception as error:
        failed = failure_event(error)
        rows.update(state=State.FAILED, error_code=failed.code[:40], error=failed.detail)
    return True


def _model_of(row: Summary) -> ChatModel:
    """The model that the row names, which may be the site's own under its maker's name."""
    find = partial(
        metered_chat,
        workspace_id=row.workspace_id,
        user_id=row.user_id,
        purpose=Purpose.SUMMARY,
    )
    model = find()
    if model is None or model.model_name != row.model:
        model = find(row.model)
    if model is None:
        raise NoChatModel(gettext("A written summary"))
    return model


def _write(row: Summary, model: ChatModel, cancelled: Event) -> tuple[str, list[Passage]]:
    passages = read_passages(row.chunks)
    most = settings.RAG_CONTEXT_TOKENS
    fits = prompt_tokens(model, most=most + RULES_TOKENS, answer_tokens=MAX_ANSWER_TOKENS)
    most = max(fits - RULES_TOKENS, 1)
    parts = batches(passages, most)
    calls = len(parts) + (len(parts) > 1)
    rows = Summary.objects.filter(pk=row.pk)
    row.calls_total = calls
    rows.update(calls_total=calls)
    # Released before each call: the model may be slow.
    release_connection()

    def ask(messages: list[ChatMessage]) -> str:
        if cancelled.is_set():
            raise Cancelled
        answer = model.complete(
            messages, max_tokens=MAX_ANSWER_TOKENS, timeout=settings.RAG_ANSWER_SECONDS
        )
        return answer.content.strip()

    task = TASKS[row.kind]
    if len(parts) <= 1:
        return ask(passages_prompt(passages, task)), passages
    notes: list[str] = []
    room = most // len(parts)
    for done, part in enumerate(parts, 1):
        said = ask(passages_prompt(part, NOTES_TASK))
        notes.append(truncate_to_tokens(said, room, estimated_tokens))
        rows.update(calls_done=done)
        release_connection()
    return ask(notes_prompt([each for each in notes if each], task)), passages


def _finish(row: Summary, written: str, passages: list[Passage]) -> None:
    """Store the text with the citations that resolve, unless a document has gone meanwhile."""
    scanner = CitationScanner({passage.number: passage for passage in passages})
    pieces = [*scanner.feed(written), *scanner.finish()]
    row.text = "".join(piece for piece in pieces if isinstance(piece, str)).replace("\0", "")
    row.citations = [dict(piece.data()) for piece in pieces if isinstance(piece, Citation)]
    row.state, row.leased_until = State.DONE, None
    row.calls_done = row.calls_total
    with transaction.atomic():
        complete = len(lock_documents(row.documents)) == len(row.documents)
        # Saving a row that was deleted meanwhile would bring it back.
        there = Summary.objects.select_for_update().filter(pk=row.pk).exists()
        if complete and there:
            row.save()
