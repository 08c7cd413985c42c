"""Open questions: what nothing, or nothing near, was found for, grouped for a curator."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from documents.embedders import SimilarityScale, scale_of
from documents.models import Collection
from documents.tests.factories import (
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from search.judgements import judge
from search.log import OpenQuestion, SimilarityThreshold, open_questions, similarity_threshold
from search.models import SearchLog
from tests.kit import logged_in

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
PAGE = reverse("admin:search_searchlog_open_questions")


@pytest.fixture
def member() -> Membership:
    return MembershipFactory()


@pytest.fixture
def collection(member: Membership) -> Collection:
    return CollectionFactory(workspace=member.workspace)


def asked(collection: Collection, query: str, *, minutes: float = 5, **more: Any) -> SearchLog:
    """A search that went well, but for what is said."""
    given = {"total": 9, "lexical_total": 9, "similarity": 0.99, "mode": "hybrid", "source": "web"}
    row = SearchLog.objects.create(
        workspace=collection.workspace,
        query=query,
        collections=[collection.pk],
        milliseconds=3,
        **given | more,
    )
    moment = timezone.now() - timedelta(minutes=minutes)
    SearchLog.objects.filter(pk=row.pk).update(created_at=moment)
    return row


#: Of a model that finds everything rather alike.
SCALE = SimilarityScale(unrelated=0.7, related=0.85)


def floor(collection: Collection) -> SimilarityThreshold:
    return similarity_threshold(collection.space_id, SCALE)


def found(**narrowed: Any) -> list[str]:
    return [row.question for row in open_questions(**narrowed)]


def only(**narrowed: Any) -> OpenQuestion:
    (row,) = open_questions(**narrowed)
    return row


def test_what_went_well_is_no_open_question(collection: Collection) -> None:
    asked(collection, "aspirin")
    assert found() == []


def test_each_way_of_going_badly_is_told(collection: Collection) -> None:
    asked(collection, "nothing", total=0, lexical_total=0, similarity=None)
    asked(collection, "refused", refused=True)
    asked(collection, "far", similarity=-0.5)
    reasons = {row.question: row.reasons for row in open_questions(known=[floor(collection)])}
    assert reasons == {
        "nothing": {"nothing": 1},
        "refused": {"refused": 1},
        "far": {"far": 1},
    }
    assert found(reason="refused") == ["refused"]


def test_how_near_is_near_follows_the_models_own_scale(collection: Collection) -> None:
    bound = floor(collection)
    _, with_words, without_words = bound
    assert 0.7 < with_words < without_words == pytest.approx(SCALE.related)
    asked(collection, "near", similarity=with_words + 0.01)
    asked(collection, "not near", similarity=with_words - 0.01)
    asked(collection, "no word", similarity=with_words + 0.01, lexical_total=0)
    asked(collection, "other words", similarity=without_words + 0.01, lexical_total=0)
    assert set(found(known=[bound])) == {"not near", "no word"}


def test_a_model_that_knows_no_meaning_calls_nothing_far(collection: Collection) -> None:
    assert scale_of(collection.space) is None  # letters are all that the model of tests knows
    asked(collection, "far", similarity=-0.5)
    assert found() == []


def test_a_search_that_could_not_ask_the_model_says_nothing_about_nearness(
    collection: Collection,
) -> None:
    asked(collection, "by words alone", similarity=None, degraded=["vector"])
    assert found() == []


def test_questions_that_differ_in_case_and_spaces_are_one(
    collection: Collection, member: Membership
) -> None:
    other = MembershipFactory(workspace=member.workspace)
    asked(collection, "How  far?", total=0, user=member.user)
    asked(collection, "how far?", total=0, user=other.user, minutes=3)
    asked(collection, " HOW FAR? ", total=0, user=other.user, minutes=1)
    row = only()
    assert (row.question.strip(), row.asked, row.people) == ("HOW FAR?", 3, 2)


def test_a_question_that_is_answered_by_now_is_open_no_more(collection: Collection) -> None:
    asked(collection, "since brought", total=0, minutes=60)
    asked(collection, "since brought", minutes=1)
    asked(collection, "since lost", minutes=60)
    asked(collection, "since lost", total=0, minutes=1)
    assert found() == ["since lost"]


def test_those_asked_most_stand_first_and_old_ones_nowhere(collection: Collection) -> None:
    asked(collection, "once", total=0)
    asked(collection, "twice", total=0)
    asked(collection, "twice", total=0)
    asked(collection, "long ago", total=0, minutes=60 * 24 * 8)
    assert found(days=7) == ["twice", "once"]
    assert found(days=30) == ["twice", "once", "long ago"]
    assert found(days=7, limit=1, offset=1) == ["once"]


def test_words_are_taken_to_the_letter(collection: Collection) -> None:
    asked(collection, "100% wool", total=0)
    asked(collection, "1000 wools", total=0)
    assert found(words="0% w") == ["100% wool"]


def test_what_the_same_person_tried_next_is_told(
    collection: Collection, member: Membership
) -> None:
    asked(collection, "quokka", total=0, user=member.user, minutes=10)
    asked(collection, "Quokka ", total=0, user=member.user, minutes=9)
    asked(collection, "small kangaroo", user=member.user, minutes=8)
    asked(collection, "much later", user=member.user, minutes=1)
    asked(collection, "somebody else", user=MembershipFactory().user, minutes=9)
    assert only().again == ("small kangaroo",)


def test_a_workspace_is_told_of_its_own_questions_only(collection: Collection) -> None:
    asked(collection, "mine", total=0)
    other = CollectionFactory()
    asked(other, "theirs", total=0)
    assert found(workspace_id=collection.workspace_id) == ["mine"]
    assert set(found()) == {"mine", "theirs"}


def test_judged_answers_are_counted(collection: Collection, member: Membership) -> None:
    asked(collection, "which one?", total=0)
    document = DocumentFactory(collection=collection)
    judge(
        collection=collection,
        question="Which one?",
        document=document,
        grade=1,
        user=member.user,
    )
    assert only().judged == 1


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


def test_the_page_leads_to_judging_and_to_searching(client: Client, collection: Collection) -> None:
    row = asked(collection, "where is <b>it</b>?", total=0)
    page = client.get(PAGE).content.decode()
    assert "where is &lt;b&gt;it&lt;/b&gt;?" in page
    assert f"{reverse('admin:search_judgement_add')}?log={row.pk}" in page
    assert f"{reverse('search')}?q=where+is+%3Cb%3Eit" in page
    assert "nothing found" in page


def test_the_page_says_when_there_is_nothing(client: Client, collection: Collection) -> None:
    assert "No open questions" in client.get(PAGE).content.decode()
    narrowed = client.get(PAGE, {"reason": "far", "words": "x"}).content.decode()
    assert "No open questions of this kind" in narrowed


@pytest.mark.parametrize("query", ["days=x&page=x", "workspace=0&reason=odd", "page=9999"])
def test_the_page_bears_any_address(client: Client, collection: Collection, query: str) -> None:
    assert client.get(f"{PAGE}?{query}").status_code == 200
