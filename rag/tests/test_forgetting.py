"""Runs and answers keep nothing of a document that was deleted, or of a memory that was erased."""

import pytest
from django.utils import timezone

from accounts.models import Membership
from documents.services import delete_document
from documents.tests.factories import DocumentFactory, MembershipFactory
from memory.scopes import account_id, user_scope
from memory.services import erase_memory
from rag.models import Conversation, Message, Span, Trace

pytestmark = pytest.mark.django_db


def run_over(
    *documents: int, tool: str = "similarity_search", membership: Membership | None = None
) -> Trace:
    membership = membership or MembershipFactory()
    now = timezone.now()
    trace = Trace.objects.create(
        workspace=membership.workspace,
        user=membership.user,
        pipeline="rag",
        question="What?",
        answer="Quoted.",
        error="It says: quoted.",
        state="done",
        started_at=now,
        documents=list(documents),
    )
    Span.objects.create(
        workspace=trace.workspace,
        trace=trace,
        ordinal=0,
        kind="tool",
        node="retriever",
        type=tool,
        input="What?",
        output="Quoted.",
        error="quoted",
        started_at=now,
        ended_at=now,
    )
    return trace


def test_its_texts_go_and_its_figures_stay() -> None:
    quoted, other = DocumentFactory(), DocumentFactory()
    emptied, kept = run_over(quoted.pk, other.pk), run_over(other.pk)
    delete_document(document=quoted)
    emptied.refresh_from_db()
    assert (emptied.answer, emptied.error, emptied.documents) == ("", "", [])
    assert emptied.removed_at is not None
    assert emptied.state == Trace.State.DONE
    span = emptied.spans.get()
    assert (span.input, span.output, span.error) == ("", "", "")
    assert span.milliseconds == 0
    kept.refresh_from_db()
    assert (kept.answer, kept.removed_at) == ("Quoted.", None)
    assert kept.spans.get().output == "Quoted."


def test_erasing_a_memory_empties_what_was_made_with_it() -> None:
    alice = MembershipFactory()
    bob = MembershipFactory(workspace=alice.workspace)
    hers, his = (run_over(tool="get_fact", membership=each) for each in (alice, bob))
    without = run_over(membership=alice)
    answers = [
        Message.objects.create(
            workspace=alice.workspace,
            conversation=Conversation.objects.create(workspace=alice.workspace, user=each.user),
            role="assistant",
            content="Green.",
            memory=memory,
        )
        for each, memory in ((alice, {"facts": []}), (alice, None), (bob, {"facts": []}))
    ]
    erase_memory(scope=user_scope(workspace=alice.workspace, user_id=account_id(alice.user)))
    for trace, answer in ((hers, ""), (his, "Quoted."), (without, "Quoted.")):
        trace.refresh_from_db()
        assert trace.answer == answer
        assert trace.spans.get().output == answer
    for message, content in zip(answers, ("", "Green.", "Green."), strict=True):
        message.refresh_from_db()
        assert message.content == content
    erase_memory(scope=user_scope(workspace=alice.workspace, user_id="a program's user"))
    his.refresh_from_db()
    assert his.answer == ""
