"""Evaluation jobs as rows: requested, due, leased, measured, stored. Begin with
`run_evaluation`.
"""

import logging
from dataclasses import replace
from datetime import datetime, timedelta
from statistics import fmean
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, Max
from django.db.models.functions import Now
from django.utils import timezone

from common.errors import Conflict, ExplainedError
from common.leases import database_now
from documents.models import Collection, Document
from documents.services import chunk_count
from search.evaluation.datasets import count_answered_questions, golden_set
from search.evaluation.evaluate import ask_questions, latencies, measure_questions
from search.judgements import question_key
from search.models import EvaluatedQuestion, Evaluation, Judgement
from search.ranking import current_tuning

logger = logging.getLogger(__name__)

Cause = Evaluation.Cause
State = Evaluation.State

#: Of a larger golden set always the same ones are asked, so that it takes minutes at most.
MAX_QUESTIONS = 1_000
#: Wait this long after the last judgement, since more usually follow.
QUIET_PERIOD = timedelta(seconds=10)
#: After a failure, such as a model that is away.
RETRY_PAUSE = timedelta(minutes=15)
LEASE = timedelta(minutes=2)
LEASE_RENEWAL_INTERVAL = 20
#: Number of evaluations per collection whose single questions are stored.
DETAILED_EVALUATIONS = 60


class NoJudgements(Conflict):
    """No question of the collection has a relevant document."""

    code = "nothing_judged"


def get_or_create_evaluation(
    *, collection: Collection, user: Any = None, cause: str = Cause.ASKED
) -> Evaluation:
    """The collection's waiting evaluation, created if there is none.

    Raises NoJudgements where no question has a relevant document.
    """
    if not count_answered_questions(collection):
        raise NoJudgements(
            f"No question of “{collection}” has a good answer yet, so that there is nothing to"
            " measure. Search, and say of some hits that they are good."
        )
    waiting = Evaluation.objects.filter(collection=collection, state=State.WAITING)
    if (row := waiting.first()) is not None:
        return row
    try:
        with transaction.atomic():
            return Evaluation.objects.create(
                workspace_id=collection.workspace_id,
                collection=collection,
                user=user if getattr(user, "pk", None) else None,
                cause=cause,
            )
    except IntegrityError:  # somebody was faster
        return waiting.get()


def schedule_due(*, now: datetime | None = None) -> list[Evaluation]:
    """Creates evaluations for collections whose last one is outdated: judgements, weights or
    vectors changed, or it is older than RAGSITE_EVALUATION_HOURS.
    """
    now = now or timezone.now()
    if not settings.EVALUATION_HOURS:
        return []
    judged = _judgement_counts(Judgement.objects.all())
    answered = Judgement.objects.golden().filter(grade__gt=0).order_by()
    collections = Collection.objects.filter(pk__in=answered.values("collection"))
    last = {
        row.collection_id: row
        for row in Evaluation.objects.filter(collection__in=collections)
        .order_by("collection_id", "-id")
        .distinct("collection_id")
    }
    made = []
    for collection in collections:
        cause = _cause(collection, judged[collection.pk], last.get(collection.pk), now)
        if cause:
            made.append(get_or_create_evaluation(collection=collection, cause=cause))
    return made


def _judgement_counts(rows: Any) -> dict[int, tuple[int, datetime | None]]:
    """By collection: number of judgements, and when the newest was given."""
    counted = rows.order_by().values_list("collection").annotate(Count("id"), Max("updated_at"))
    return {collection: (count, newest) for collection, count, newest in counted}


def _cause(
    collection: Collection,
    judged: tuple[int, datetime | None],
    last: Evaluation | None,
    now: datetime,
) -> str | None:
    count, newest = judged
    if last and not last.is_over:
        return None
    if last and last.state == State.FAILED:
        return last.cause if now - last.created_at >= RETRY_PAUSE else None
    if last is None or (last.judgements, last.judged_at) != (count, newest):
        return Cause.JUDGED if newest is None or now - newest >= QUIET_PERIOD else None
    if (last.tuning, last.space) != (_tuning(collection), collection.space_id):
        return Cause.WEIGHTS
    is_old = now - last.created_at >= timedelta(hours=settings.EVALUATION_HOURS)
    return Cause.NIGHTLY if is_old else None


def _tuning(collection: Collection) -> dict[str, Any] | None:
    tuning = current_tuning(collection.tuning, collection.space_id)
    return dict(tuning) if tuning else None


def fail_stale(*, now: datetime | None = None) -> int:
    """Marks evaluations whose worker died as failed; returns how many."""
    now = now or database_now()
    return Evaluation.objects.filter(state=State.RUNNING, leased_until__lt=now).update(
        state=State.FAILED,
        error_code="lost",
        error="The worker that measured ended in the middle. It is measured again by itself.",
        finished_at=now,
    )


def waiting_ids() -> list[int]:
    """Ids of waiting evaluations, oldest first."""
    rows = Evaluation.objects.filter(state=State.WAITING).order_by("id")
    return list(rows.values_list("pk", flat=True))


def run_evaluation(evaluation_id: int) -> Evaluation | None:
    """Runs a waiting evaluation; None where another worker has it or it was deleted."""
    taken = Evaluation.objects.filter(pk=evaluation_id, state=State.WAITING).update(
        state=State.RUNNING, leased_until=Now() + LEASE
    )
    row = Evaluation.objects.select_related("collection__workspace").filter(pk=evaluation_id)
    if not taken or (evaluation := row.first()) is None:
        return None
    try:
        _measure(evaluation)
    except ExplainedError as error:
        _fail(evaluation, code=getattr(error, "code", "inference"), message=str(error))
    except Exception:
        logger.exception("evaluation %s failed", evaluation_id)
        _fail(
            evaluation,
            code="error",
            message="Measuring failed. The worker's log says why; measure again when it is mended.",
        )
    return evaluation


def _fail(evaluation: Evaluation, *, code: str, message: str) -> None:
    failed: dict[str, Any] = {
        "state": State.FAILED,
        "error_code": code,
        "error": message,
        "finished_at": timezone.now(),
    }
    for name, value in failed.items():
        setattr(evaluation, name, value)
    for name in ("degraded", "judgements", "judged_at", "tuning", "space"):
        failed[name] = getattr(evaluation, name)
    # By a statement: what was deleted meanwhile must not come back.
    Evaluation.objects.filter(pk=evaluation.pk).update(**failed)


def _measure(evaluation: Evaluation) -> None:
    collection = evaluation.collection
    judged = _judgement_counts(Judgement.objects.filter(collection=collection))
    # Read before the questions are asked: what is judged meanwhile makes the next one due.
    evaluation.judgements, evaluation.judged_at = judged.get(collection.pk, (0, None))
    evaluation.tuning, evaluation.space = _tuning(collection), collection.space_id
    dataset = golden_set(collection)
    # The first questions by hash: as good as a random sample, and the same each time.
    dataset = replace(dataset, queries=dataset.queries[:MAX_QUESTIONS])

    def renew_lease(mode: str, done: int, total: int) -> None:
        if done % LEASE_RENEWAL_INTERVAL == 0:
            Evaluation.objects.filter(pk=evaluation.pk).update(leased_until=Now() + LEASE)

    rankings, milliseconds, evaluation.degraded = ask_questions(
        collection, dataset, mode="hybrid", on_progress=renew_lease
    )
    if evaluation.degraded:
        raise Conflict(
            f"Not everything works just now ({', '.join(evaluation.degraded)}), and what the"
            " answers are worth without it would mislead. It is measured again when it works."
        )
    measured = measure_questions(rankings, dataset.judgements, k=evaluation.k)
    for query in dataset.queries:
        measured[query.id].question_sha256 = question_key(query.text)
    _store(evaluation, list(measured.values()), latencies(milliseconds))


@transaction.atomic
def _store(
    evaluation: Evaluation, questions: list[EvaluatedQuestion], times: dict[str, float]
) -> None:
    if not Evaluation.objects.select_for_update().filter(pk=evaluation.pk).exists():
        return  # deleted with its collection meanwhile
    collection = evaluation.collection
    evaluation.state = State.DONE
    evaluation.questions = len(questions)
    evaluation.documents = Document.objects.filter(collection=collection).current().count()
    evaluation.chunks = chunk_count(collection=collection)
    evaluation.ndcg = round(fmean(each.ndcg for each in questions), 4)
    evaluation.recall = round(fmean(each.recall for each in questions), 4)
    evaluation.mrr = round(fmean(each.reciprocal_rank for each in questions), 4)
    evaluation.p50_ms, evaluation.p95_ms = times["p50_ms"], times["p95_ms"]
    evaluation.finished_at = timezone.now()
    evaluation.leased_until = None
    evaluation.save()
    for each in questions:
        each.workspace_id, each.evaluation = evaluation.workspace_id, evaluation
        each.ndcg, each.recall = round(each.ndcg, 4), round(each.recall, 4)
    EvaluatedQuestion.objects.bulk_create(questions)
    # Deletes the single questions of old evaluations; their means stay.
    newest = Evaluation.objects.filter(collection=collection).order_by("-id")
    kept = list(newest.values_list("pk", flat=True)[:DETAILED_EVALUATIONS])
    EvaluatedQuestion.objects.filter(
        evaluation__collection=collection, evaluation__lt=min(kept)
    ).delete()
