"""Judgements: one for a question and a document, gone with the document."""

from typing import Any

import pytest

from accounts.models import Workspace
from common.errors import InvalidInput
from documents.models import Chunk, Collection, Document
from documents.services import delete_collection, delete_document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from search.judgements import Grade, judge, question_key, remove_judgement
from search.models import Judgement

pytestmark = pytest.mark.django_db
QUESTION = "What eases pain?"


@pytest.fixture
def document() -> Document:
    return DocumentFactory(key="aspirin")


def say(document: Document, question: str = QUESTION, **options: Any) -> Judgement:
    said = {"grade": Grade.GOOD, "user": None, **options}
    return judge(collection=document.collection, question=question, document=document, **said)


def test_the_last_word_counts_and_the_note_stays(document: Document) -> None:
    first, second = UserFactory(), UserFactory()
    chunk = ChunkFactory(document=document)
    say(document, user=first, note="see section 3")
    row = say(document, grade=Grade.PINNED, user=second, chunk=chunk)
    assert Judgement.objects.count() == 1
    assert (row.grade, row.user, row.chunk) == (2, second, chunk)
    assert row.note == "see section 3"
    assert row.workspace == document.workspace


def test_case_and_spaces_make_no_other_question(document: Document) -> None:
    say(document)
    say(document, "  WHAT  eases\npain?")
    assert Judgement.objects.get().question == QUESTION
    say(document, "What eases the pain?")
    assert Judgement.objects.count() == 2
    assert question_key("Cafe\u0301") == question_key("café")


def test_it_can_be_taken_back(document: Document) -> None:
    say(document)
    remove_judgement(collection=document.collection, question=QUESTION.upper(), document=document)
    remove_judgement(collection=document.collection, question="never asked", document=document)
    assert not Judgement.objects.exists()


def test_what_cannot_be_is_refused_by_field(document: Document) -> None:
    elsewhere = DocumentFactory()
    passage = ChunkFactory(document=elsewhere)
    for field, options in {
        "question": {"question": " \x00 "},
        "grade": {"grade": 3},
        "chunk": {"chunk": passage},
    }.items():
        with pytest.raises(InvalidInput) as refused:
            say(document, **options)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="its own collection"):
        judge(
            collection=document.collection,
            question=QUESTION,
            document=elsewhere,
            grade=1,
            user=None,
        )
    say(document, "x" * 4000)
    assert Judgement.objects.count() == 1


def test_only_questions_with_an_answer_are_golden(document: Document) -> None:
    other = DocumentFactory(collection=document.collection)
    say(document, "answered")
    say(other, "answered", grade=Grade.BAD)
    say(other, "only bad hits", grade=Grade.BAD)
    assert {row.question for row in Judgement.objects.golden()} == {"answered"}
    assert Judgement.objects.golden().count() == 2


def test_judgements_are_seen_by_who_may_read_the_document() -> None:
    member = MembershipFactory()
    collection: Collection = CollectionFactory(workspace=member.workspace)
    shared = say(DocumentFactory(collection=collection))
    own = say(DocumentFactory(collection=collection, access=[f"user:{member.user.pk}"]))
    say(DocumentFactory(collection=collection, access=["user:0"]))
    say(DocumentFactory())
    assert set(Judgement.objects.visible_to(member.user)) == {shared, own}
    assert not Judgement.objects.visible_to(None).exists()


# --- deletion ----------------------------------------------------------------------------------


def test_a_judgement_goes_with_its_document(document: Document) -> None:
    say(document, chunk=ChunkFactory(document=document))
    stays = say(DocumentFactory(collection=document.collection))
    delete_document(document=document)
    assert Judgement.objects.get() == stays


def test_a_judgement_outlives_the_passage_that_was_shown(document: Document) -> None:
    say(document, chunk=ChunkFactory(document=document))
    Chunk.objects.all().delete()
    row = Judgement.objects.select_related("chunk").get()
    assert row.chunk is None
    assert row.document == document


@pytest.mark.parametrize("what", ["collection", "workspace"])
def test_nothing_outlives_its_collection_or_workspace(document: Document, what: str) -> None:
    say(document, chunk=ChunkFactory(document=document))
    if what == "collection":
        delete_collection(collection=document.collection)
    else:
        Workspace.objects.filter(pk=document.workspace_id).delete()
    assert not Judgement.objects.exists()


def test_a_judgement_forgets_a_deleted_user(document: Document) -> None:
    user = UserFactory()
    say(document, user=user)
    user.delete()
    assert Judgement.objects.get().user is None
