"""Evaluations: due when something changed, measured once, honest about what they could not do."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import delete_document, ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory, UserFactory
from search.evaluation import jobs
from search.evaluation.datasets import golden_set
from search.evaluation.evaluate import measure, measure_questions
from search.evaluation.jobs import (
    NoJudgements,
    get_or_create_evaluation,
    run_evaluation,
    schedule_due,
)
from search.judgements import Grade, judge, question_key, remove_judgement
from search.models import EvaluatedQuestion, Evaluation
from search.tasks import measure_due_quality
from tests.kit import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXTS = {
    "aspirin": "Aspirin eases pain.",
    "bread": "Bread is baked from flour.",
    "heart": "The heart pumps blood.",
}
PAIN, BAKING = "what eases pain", "how is bread baked"
API = "/api/v1/evaluations/"


@pytest.fixture
def collection() -> Collection:
    collection = CollectionFactory(default_language="en")
    sources = [text_source(key, text) for key, text in TEXTS.items()]
    ingest_inline(collection=collection, sources=sources)
    return collection


def say(collection: Collection, question: str, key: str, grade: int = Grade.GOOD) -> None:
    document = Document.objects.get(collection=collection, key=key)
    judge(collection=collection, question=question, document=document, grade=grade, user=None)


def soon() -> datetime:
    """When it has been quiet for long enough."""
    return timezone.now() + jobs.QUIET_PERIOD


def measured(collection: Collection) -> Evaluation:
    evaluation = run_evaluation(get_or_create_evaluation(collection=collection).pk)
    assert evaluation is not None
    evaluation.refresh_from_db()
    return evaluation


def test_single_questions_add_up_to_the_means_of_trec() -> None:
    judgements = {"1": {"a": 1, "b": 0}, "2": {"c": 2, "d": 1}, "3": {"e": 1}}
    rankings = {"1": ["b", "a"], "2": ["x", "c"], "3": []}
    each = measure_questions(rankings, judgements, k=10)
    means = measure(rankings, judgements, k=10)
    assert means["ndcg@10"] == pytest.approx(sum(m.ndcg for m in each.values()) / 3, abs=1e-4)
    assert means["recall@10"] == pytest.approx(sum(m.recall for m in each.values()) / 3, abs=1e-4)
    assert means["mrr"] == pytest.approx(
        sum(m.reciprocal_rank for m in each.values()) / 3, abs=1e-4
    )
    assert [(m.first_rank, m.found, m.good) for m in each.values()] == [
        (2, 1, 1),
        (2, 1, 2),
        (None, 0, 1),
    ]


def test_what_is_measured_is_kept_with_every_question(collection: Collection) -> None:
    say(collection, PAIN, "aspirin")
    say(collection, BAKING, "heart")
    evaluation = measured(collection)
    assert (evaluation.state, evaluation.questions, evaluation.judgements) == ("done", 2, 2)
    assert (evaluation.documents, evaluation.chunks) == (3, 3)
    rows = {row.question_sha256: row for row in evaluation.rows.all()}
    assert rows[question_key(PAIN)].first_rank == 1
    assert rows[question_key(PAIN)].ndcg == 1.0
    assert (rows[question_key(BAKING)].first_rank or 9) > 1
    mean = sum(row.ndcg for row in rows.values()) / 2
    assert evaluation.ndcg == pytest.approx(mean, abs=1e-3)
    assert evaluation.p95_ms is not None
    assert evaluation.p95_ms > 0


def test_judging_makes_it_due_once_it_is_quiet(collection: Collection) -> None:
    assert schedule_due(now=soon()) == []
    say(collection, PAIN, "aspirin")
    assert schedule_due() == []
    (first,) = schedule_due(now=soon())
    assert first.cause == "judged"
    assert schedule_due(now=soon()) == []
    run_evaluation(first.pk)
    assert schedule_due(now=soon()) == []
    say(collection, BAKING, "bread")
    (second,) = schedule_due(now=soon())
    run_evaluation(second.pk)
    remove_judgement(
        collection=collection,
        question=BAKING,
        document=Document.objects.get(collection=collection, key="bread"),
    )
    assert [each.cause for each in schedule_due(now=soon())] == ["judged"]


def test_other_weights_or_a_day_make_it_due(collection: Collection, settings: Any) -> None:
    say(collection, PAIN, "aspirin")
    measured(collection)
    tomorrow = timezone.now() + timedelta(hours=settings.EVALUATION_HOURS)
    (daily,) = schedule_due(now=tomorrow)
    assert daily.cause == "nightly"
    daily.delete()
    tuning = {"lexical": 0.5, "pull": 0.0, "space": collection.space_id}
    Collection.objects.filter(pk=collection.pk).update(tuning=tuning)
    (tuned,) = schedule_due(now=soon())
    assert tuned.cause == "weights"
    run_evaluation(tuned.pk)
    assert Evaluation.objects.get(pk=tuned.pk).tuning == tuning
    assert schedule_due(now=soon()) == []


def test_a_site_may_measure_only_when_asked(collection: Collection, settings: Any) -> None:
    settings.EVALUATION_HOURS = 0
    say(collection, PAIN, "aspirin")
    assert schedule_due(now=soon()) == []
    asked = get_or_create_evaluation(collection=collection)
    assert measure_due_quality() == 1
    asked.refresh_from_db()
    assert asked.state == "done"


def test_who_asks_twice_gets_the_one_that_waits_and_one_worker_has_it(
    collection: Collection,
) -> None:
    say(collection, PAIN, "aspirin")
    first = get_or_create_evaluation(collection=collection)
    assert get_or_create_evaluation(collection=collection) == first
    assert run_evaluation(first.pk) is not None
    assert run_evaluation(first.pk) is None
    assert get_or_create_evaluation(collection=collection) != first


def test_without_a_good_answer_there_is_nothing_to_measure(collection: Collection) -> None:
    say(collection, PAIN, "bread", grade=Grade.BAD)
    with pytest.raises(NoJudgements, match="say of some hits that they are good"):
        get_or_create_evaluation(collection=collection)
    assert schedule_due(now=soon()) == []


def test_a_model_that_is_away_fails_it_and_does_not_lower_the_curve(
    collection: Collection, model_down: None
) -> None:
    say(collection, PAIN, "aspirin")
    evaluation = measured(collection)
    assert (evaluation.state, evaluation.ndcg, evaluation.degraded) == ("failed", None, ["vector"])
    assert "measured again when it works" in evaluation.error
    assert schedule_due(now=soon()) == []
    assert schedule_due(now=timezone.now() + jobs.RETRY_PAUSE) != []


def test_one_whose_worker_died_is_ended_and_made_again(collection: Collection) -> None:
    say(collection, PAIN, "aspirin")
    lost = get_or_create_evaluation(collection=collection)
    Evaluation.objects.filter(pk=lost.pk).update(
        state="running", leased_until=timezone.now() - timedelta(seconds=1)
    )
    assert jobs.fail_stale() == 1
    lost.refresh_from_db()
    assert (lost.state, lost.error_code) == ("failed", "lost")
    later = timezone.now() + jobs.RETRY_PAUSE
    assert len(schedule_due(now=later)) == 1


def test_a_deleted_document_takes_its_question_along(collection: Collection) -> None:
    say(collection, PAIN, "aspirin")
    evaluation = measured(collection)
    rows = EvaluatedQuestion.objects.filter(evaluation=evaluation).with_question()
    kept = rows.values_list("judged_question", flat=True)
    assert kept.get() == PAIN
    delete_document(document=Document.objects.get(collection=collection, key="aspirin"))
    assert kept.get() is None


def test_questions_of_long_ago_are_forgotten_and_the_curve_stays(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "DETAILED_EVALUATIONS", 1)
    say(collection, PAIN, "aspirin")
    first, second = measured(collection), measured(collection)
    assert not first.rows.exists()
    assert second.rows.count() == 1
    assert Evaluation.objects.done().count() == 2


def test_a_large_golden_set_is_measured_by_the_same_questions(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_QUESTIONS", 2)
    for question in (PAIN, BAKING, "what pumps blood"):
        say(collection, question, "heart")
    asked = [set(measured(collection).rows.values_list("question_sha256")) for _ in range(2)]
    assert len(golden_set(collection).queries) == 3
    assert len(asked[0]) == 2
    assert asked[0] == asked[1]


def test_programs_ask_for_one_and_read_it(
    collection: Collection, django_capture_on_commit_callbacks: Any
) -> None:
    say(collection, PAIN, "aspirin")
    say(collection, BAKING, "heart")
    client = client_of(MembershipFactory(workspace=collection.workspace))
    asked = client.post(API, {"collection": collection.slug})
    assert (asked.status_code, asked.json()["state"]) == (202, "waiting")
    run_evaluation(asked.json()["id"])
    answer = client.get(f"{API}{asked.json()['id']}/").json()
    assert [row["question"] for row in answer["rows"]] == [BAKING, PAIN]
    listed = client.get(API, {"collection": collection.slug}).json()["results"]
    assert [row["ndcg"] for row in listed] == [answer["ndcg"]]


def test_in_the_admin_an_evaluation_goes_with_its_questions(
    collection: Collection, client: Client
) -> None:
    say(collection, PAIN, "aspirin")
    evaluation = measured(collection)
    assert EvaluatedQuestion.objects.filter(evaluation=evaluation).count() == 1
    curator = UserFactory(is_staff=True)  # nobody may delete a question by itself
    curator.user_permissions.set(
        Permission.objects.filter(codename__in=["view_evaluation", "delete_evaluation"])
    )
    client.force_login(curator)
    path = reverse("admin:search_evaluation_delete", args=[evaluation.pk])

    assert "Cannot delete" not in client.get(path).content.decode()
    assert client.post(path, {"post": "yes"}).status_code == 302
    assert not Evaluation.objects.exists()
    assert not EvaluatedQuestion.objects.exists()
