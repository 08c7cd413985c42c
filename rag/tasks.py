"""Celery tasks: end answers and runs whose process died, delete old traces, write summaries.
`request_summary` queues one."""

from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from common.celery import app, send_or_wait
from rag.models import Summary
from rag.services import conversations, traces, written_summaries
from rag.services.summaries import create_written_summary
from rag.tools.summaries import TextToSummarize


@app.task
def end_lost_answers() -> int:
    """Mark answers whose process died as failed; returns how many."""
    return conversations.fail_stale_answers()


@app.task
def end_lost_runs() -> int:
    """Mark pipeline runs whose process died as failed; returns how many."""
    return traces.fail_stale_runs()


@app.task
def prune_traces() -> int:
    """Delete old traces; returns how many."""
    return traces.prune_traces()


@app.task
def write_summary(summary_id: int) -> bool:
    """Write a waiting summary; False where another worker has it."""
    return written_summaries.write_summary(summary_id)


@app.task
def write_due_summaries() -> int:
    """Fail summaries whose worker died, write those that wait; returns how many were written."""
    written_summaries.fail_stale_summaries()
    return sum(map(written_summaries.write_summary, written_summaries.waiting_ids()))


def request_summary(
    text: TextToSummarize, kind: str, *, user: Any = None, model: str = ""
) -> Summary:
    """Have a chat model summarise the text in a worker; returns the row, which tells how far it
    is. Raises NoChatModel, InvalidInput and TooManyRequests."""
    most = settings.RAG_SUMMARY_TOKENS
    row = create_written_summary(text, kind, user=user, model=model, max_tokens=most)
    if row.pk and row.state == Summary.State.WAITING:
        transaction.on_commit(partial(send_or_wait, write_summary, row.pk))
    return row
