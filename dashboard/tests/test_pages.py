"""The pages of the dashboard and of quality: what they say to whom, and when there is nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership, Role
from dashboard.quality import ANSWER_DAYS, answer_quality, compare, judged_collection
from documents.models import Collection, Document
from documents.tests.factories import CollectionFactory, DocumentFactory, MembershipFactory
from search.judgements import judge, question_key
from search.models import EvaluatedQuestion, Evaluation, SearchLog
from tests.kit import logged_in

pytestmark = pytest.mark.django_db

PAGE = "/dashboard/"
QUALITY = "/dashboard/quality/"


@pytest.fixture
def collection(alice: Membership) -> Collection:
    return CollectionFactory(workspace=alice.workspace, slug="leaflets", name="Leaflets")


def text(client: Client, path: str, **options: Any) -> str:
    answer = client.get(path, **options)
    assert answer.status_code == 200
    return answer.content.decode()


def searched(member: Membership, query: str, milliseconds: float = 1.0) -> None:
    """In vain."""
    SearchLog.objects.create(
        workspace=member.workspace,
        user=member.user,
        query=query,
        mode="hybrid",
        total=0,
        milliseconds=milliseconds,
        source="web",
    )


def evaluation(collection: Collection, **ndcgs: float) -> Evaluation:
    """With one row for each question, and the mean of these."""
    mean = sum(ndcgs.values()) / len(ndcgs)
    made = Evaluation.objects.create(
        workspace=collection.workspace,
        collection=collection,
        state="done",
        questions=len(ndcgs),
        ndcg=mean,
        recall=mean,
        mrr=mean,
        finished_at=timezone.now(),
    )
    for question, ndcg in ndcgs.items():
        EvaluatedQuestion.objects.create(
            workspace=collection.workspace,
            evaluation=made,
            question_sha256=question_key(question),
            ndcg=ndcg,
            recall=ndcg,
            first_rank=1 if ndcg else None,
            good=1,
            found=1 if ndcg else 0,
        )
    return made


def judged(collection: Collection, *questions: str) -> None:
    document = DocumentFactory(collection=collection)
    for question in questions:
        judge(collection=collection, question=question, document=document, grade=1, user=None)


def test_an_empty_workspace_is_told_what_will_be_there(alice: Membership) -> None:
    page = text(logged_in(alice), PAGE)
    assert page.count('class="void"') == 9
    assert "Upload some documents. Their number over time appears here." in page
    assert "Questions without hits, or without an answer in the chat, appear here" in page


def test_every_chart_has_a_name_and_a_table(alice: Membership, collection: Collection) -> None:
    DocumentFactory(collection=collection, status="ready", chunk_count=3)
    searched(alice, "in vain", milliseconds=20)
    page = text(logged_in(alice), PAGE, data={"range": "24h"})
    drawn = page.count('role="img"')
    assert drawn == page.count('<details id="figures-') == 5
    assert 'aria-label="Searches: 1 in 24 hours, 1 found nothing."' in page
    assert "<td>20 ms</td>" in page
    assert f'href="{reverse("search")}?q=in%20vain"' in page
    assert " style=" not in page


def test_a_script_gets_the_figures_alone(alice: Membership) -> None:
    part = text(logged_in(alice), PAGE, headers={"X-Part": "figures"})
    assert "<html" not in part
    assert 'id="chart-documents"' in part


def test_viewers_learn_how_many_and_not_what(alice: Membership) -> None:
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    searched(alice, "a secret of alice")
    assert "a secret of alice" in text(logged_in(alice), PAGE)
    page = text(logged_in(bob), PAGE)
    assert "a secret of alice" not in page
    assert "1 search found nothing" in page
    assert "a secret of alice" not in text(logged_in(MembershipFactory()), PAGE)


def test_a_strange_range_is_the_default(alice: Membership) -> None:
    for name in ("1y", "", "24h\x00"):
        assert "7 days" in text(logged_in(alice), PAGE, data={"range": name})


def test_without_judgements_quality_tells_how_to_begin(alice: Membership) -> None:
    assert "No judgements yet" in text(logged_in(alice), QUALITY)


def answered(document: Document, question: str, confidence: str, **fields: Any) -> None:
    SearchLog.objects.create(
        workspace=document.workspace,
        query=question,
        mode="hybrid",
        documents=[document.pk],
        total=1,
        milliseconds=1.0,
        source="chat",
        confidence=confidence,
        **fields,
    )


def test_answers_are_counted_by_degree_and_compared_with_ratings(collection: Collection) -> None:
    good, bad = (DocumentFactory(collection=collection) for _ in range(2))
    for question, document, grade in (
        ("one", good, 1),
        ("two", bad, 0),
        ("three", bad, 0),
        ("four", good, 2),
    ):
        judge(collection=collection, question=question, document=document, grade=grade, user=None)
    answered(good, "One", "high")
    answered(bad, "two", "high")
    answered(good, "two", "high")
    answered(good, "never rated", "high")
    answered(good, " one ", "low")
    answered(bad, "three", "none")
    answered(bad, "four", "none")
    found = {each.degree.value: each for each in answer_quality(workspace=collection.workspace)}
    counts = {name: (each.answers, each.rated, each.right) for name, each in found.items()}
    assert counts == {"high": (4, 2, 1), "low": (1, 1, 1), "none": (2, 2, 1)}
    assert found["high"].share == 0.5


def test_searches_and_answers_of_others_or_long_ago_are_not_counted(
    collection: Collection, alice: Membership
) -> None:
    document = DocumentFactory(collection=collection)
    elsewhere = DocumentFactory(collection=CollectionFactory())
    answered(elsewhere, "one", "high")
    answered(document, "one", "high")
    long_ago = timezone.now() - timedelta(days=ANSWER_DAYS + 1)
    SearchLog.objects.filter(workspace=alice.workspace).update(created_at=long_ago)
    SearchLog.objects.create(
        workspace=alice.workspace, query="one", mode="hybrid", total=1, milliseconds=1, source="web"
    )
    assert answer_quality(workspace=alice.workspace) == []
    assert "by how sure the answer was" not in text(logged_in(alice), QUALITY)


def test_quality_shows_how_often_each_degree_was_right(
    collection: Collection, alice: Membership
) -> None:
    document = DocumentFactory(collection=collection)
    judge(collection=collection, question="one", document=document, grade=1, user=None)
    answered(document, "one", "low")
    page = text(logged_in(alice), QUALITY)
    assert "by how sure the answer was" in page
    assert '<th scope="row">Not sure</th>' in page
    assert "1 of 1" in page


def test_quality_is_compared_by_the_questions_that_both_asked(collection: Collection) -> None:
    judged(collection, "old", "worse", "new")
    evaluation(collection, old=0.5, worse=0.9)
    evaluation(collection, old=0.9, worse=0.8, new=0.1)
    comparison = compare(judged_collection(collection))
    assert comparison is not None
    assert comparison.common == 2
    assert {each.question: each.change for each in comparison.questions} == {
        "old": "better",
        "worse": "worse",
        "new": "new",
    }
    # The mean fell from 0.7 to 0.6 because of the new question; the search got better.
    assert comparison.measures[0].now == pytest.approx(0.6)
    assert comparison.measures[0].change == pytest.approx(0.15)
    assert comparison.measures[0].tone == "good"


def test_before_is_the_last_one_that_was_different(collection: Collection) -> None:
    first = evaluation(collection, one=0.4)
    evaluation(collection, one=0.8)
    evaluation(collection, one=0.8)
    one = judged_collection(collection)
    chosen, named = compare(one), compare(one, against=first.pk)
    assert chosen is not None
    assert named is not None
    assert chosen.before == named.before == first
    missing = compare(one, against=first.pk + 1000)
    assert missing is not None
    assert missing.before is None


def test_the_page_lists_questions_worst_change_first(
    alice: Membership, collection: Collection
) -> None:
    judged(collection, "falls", "rises", "gone")
    evaluation(collection, falls=0.9, rises=0.1, gone=0.3)
    evaluation(collection, falls=0.2, rises=0.9, gone=0.0)
    client = logged_in(alice)
    page = text(client, f"{QUALITY}leaflets/")
    assert page.index(">falls<") < page.index(">gone<") < page.index(">rises<")
    assert "−0.70" in page
    better = text(client, f"{QUALITY}leaflets/", data={"show": "better"})
    assert ">rises<" in better
    assert ">falls<" not in better
    assert ">gone<" in text(client, f"{QUALITY}leaflets/", data={"show": "missed"})
    assert "Leaflets" in text(client, QUALITY)


def test_editors_have_it_measured(alice: Membership, collection: Collection) -> None:
    judged(collection, "what eases pain")
    path = f"{QUALITY}leaflets/measure/"
    assert logged_in(alice).get(path).status_code == 405
    answer = logged_in(alice).post(path, follow=True)
    assert "is being measured" in answer.content.decode()
    waiting = Evaluation.objects.get()
    assert (waiting.state, waiting.user, waiting.cause) == ("waiting", alice.user, "asked")
    assert "js/again.js" in answer.content.decode()


def test_measuring_what_nobody_judged_says_what_to_do(
    alice: Membership, collection: Collection
) -> None:
    answer = logged_in(alice).post(f"{QUALITY}leaflets/measure/")
    assert answer.status_code == 409
    assert "say of some hits that they are good" in answer.content.decode()


def test_a_failure_says_why(alice: Membership, collection: Collection) -> None:
    judged(collection, "what eases pain")
    Evaluation.objects.create(
        workspace=alice.workspace,
        collection=collection,
        state="failed",
        error="The model is away.",
        finished_at=timezone.now(),
    )
    assert "The model is away." in text(logged_in(alice), f"{QUALITY}leaflets/")
