"""Celery tasks of search, and `request_evaluation`, which queues one."""

from functools import partial
from typing import Any

from django.db import transaction

from common.celery import app, send_or_wait
from documents.models import Collection
from search import log
from search.evaluation import jobs
from search.models import Evaluation


@app.task
def prune_search_log() -> int:
    """Deletes old rows of the search log; returns how many."""
    return log.prune_search_log()


@app.task
def measure_quality(evaluation_id: int) -> bool:
    """Runs a waiting evaluation; False where another worker has it."""
    return jobs.run_evaluation(evaluation_id) is not None


@app.task
def measure_due_quality() -> int:
    """Schedules due evaluations, fails stale ones, runs all waiting; returns how many ran."""
    jobs.fail_stale()
    jobs.schedule_due()
    return sum(jobs.run_evaluation(pk) is not None for pk in jobs.waiting_ids())


def request_evaluation(*, collection: Collection, user: Any) -> Evaluation:
    """Queues an evaluation of the collection; returns its row.

    Raises NoJudgements where no question has a relevant document.
    """
    evaluation = jobs.get_or_create_evaluation(collection=collection, user=user)
    transaction.on_commit(partial(send_or_wait, measure_quality, evaluation.pk))
    return evaluation
