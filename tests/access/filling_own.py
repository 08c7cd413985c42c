"""What belongs to one person, and what people think of answers."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.utils import timezone

from accounts.audit import Action, Kind, record_change
from accounts.groups import add_members, create_group
from accounts.invitations import create_invitation
from accounts.models import (
    Change,
    GroupMember,
    IdempotencyRecord,
    Identity,
    LoginSession,
    Membership,
    SecondFactor,
)
from accounts.sessions import SessionStore
from accounts.tests.keys import make_key
from documents.models import Chunk, Collection
from memory.models import ExtractionItem, Pruning
from memory.scopes import scope_of
from memory.services import set_fact
from memory.services.memories import record_messages
from memory.tests.factories import remember
from rag.models import Conversation, Message, Pipeline, Span, Trace
from rag.pipelines.validation import templates
from search.models import EvaluatedQuestion, Evaluation, Judgement, SavedSearch, SearchLog


@dataclass(slots=True)
class Words:
    """What texts of a workspace hold."""

    shared: str
    listed: str
    own: str
    memory: str
    asked: str


def memory(owner: Membership, words: Words, slug: str) -> dict[str, Any]:
    scope = scope_of(user=owner.user, workspace=owner.workspace)
    assert scope is not None
    word = words.memory
    turn = remember(scope, f"My town is {word}", f"A town, {word}")
    key = "town" if slug == "notes" else "street"
    change = set_fact(scope=scope, key=key, value=f"The town {word}")
    said = [{"role": "user", "content": f"I live in the town {word}."}]
    recorded = record_messages(scope=scope, conversation=word, messages=said)
    assert change is not None
    assert recorded is not None
    item = ExtractionItem.objects.get(pk=recorded.item_id)
    item.state, item.error = ExtractionItem.State.DEAD, f"Not {word}"
    item.save()
    pruning = Pruning.objects.create(
        workspace=owner.workspace,
        user_id=item.user_id,
        reason=Pruning.Reason.values[0],
        rows=1,
        bytes=9,
        until=timezone.now(),
    )
    return {
        "context": turn,
        "fact": key,
        "extraction": item.pk,
        "memory.context": turn,
        "memory.fact": change.fact.pk,
        "memory.extractionitem": item.pk,
        "memory.pruning": pruning.pk,
    }


def ways_in(owner: Membership, words: Words) -> dict[str, Any]:
    """An account elsewhere, a second factor and another session of the owner's."""
    session = SessionStore()
    session.create()
    user = owner.user
    rows = {
        "accounts.identity": Identity.objects.create(
            user=user, method="oidc", issuer="https://firm.example", subject=words.own
        ),
        "accounts.secondfactor": SecondFactor.objects.create(
            user=user, kind="passkey", name=words.own, secret=b"x"
        ),
        "accounts.loginsession": LoginSession.objects.create(
            user=user, session_id=session.session_key, method="password", address=words.own
        ),
    }
    return {name: row.pk for name, row in rows.items()}


def chats(owner: Membership, words: Words, key: str) -> dict[str, Any]:
    mine: dict[str, Any] = {"workspace": owner.workspace, "user": owner.user}
    now, word = timezone.now(), words.own
    chat = Conversation.objects.create(title=f"Of {word}", **mine)
    message = None
    for role in ("user", "assistant"):
        message = Message.objects.create(
            workspace=owner.workspace, conversation=chat, role=role, content=f"A {word}?"
        )
    assert message is not None
    slug = "plan" if key == "notes" else "scheme"
    definition = {**templates()["rag"].to_json(), "id": slug, "name": f"Plan {words.shared}"}
    told = {"pipeline": "plan", "question": f"A {word}?", "answer": word, "started_at": now}
    trace = Trace.objects.create(
        state=Trace.State.DONE, ended_at=now, definition=definition, **told, **mine
    )
    tracing = Trace.objects.create(state=Trace.State.RUNNING, **told, **mine)
    span = Span.objects.create(
        workspace=owner.workspace,
        trace=trace,
        ordinal=0,
        kind=Span.Kind.values[0],
        node="look",
        type="retriever",
        started_at=now,
        ended_at=now,
        input=word,
        output=word,
    )
    pipeline = Pipeline.objects.create(
        workspace=owner.workspace,
        slug=slug,
        name=f"Plan {words.shared}",
        description=f"For {words.shared}",
        definition=definition,
    )
    return {
        "conversation": chat.pk,
        "message": message.pk,
        "trace": trace.pk,
        "tracing": tracing.pk,
        "pipeline": slug,
        "rag.conversation": chat.pk,
        "rag.message": message.pk,
        "rag.trace": trace.pk,
        "rag.span": span.pk,
        "rag.pipeline": pipeline.pk,
    }


def judged(owner: Membership, collection: Collection, chunk: Chunk, words: Words) -> dict[str, Any]:
    place = {"workspace": owner.workspace, "collection": collection}
    judgement = Judgement.objects.create(
        question=f"Which {words.shared}?",
        question_sha256="0" * 64,
        document=chunk.document,
        chunk=chunk,
        grade=2,
        note=f"Says {words.shared}",
        user=owner.user,
        **place,
    )
    evaluation = Evaluation.objects.create(
        state=Evaluation.State.values[-1], error=f"No {words.shared}", **place
    )
    row = EvaluatedQuestion.objects.create(
        workspace=owner.workspace,
        evaluation=evaluation,
        question_sha256="0" * 64,
        ndcg=1,
        recall=1,
        good=1,
        found=1,
    )
    return {
        "evaluation": evaluation.pk,
        "search.judgement": judgement.pk,
        "search.evaluation": evaluation.pk,
        "search.evaluatedquestion": row.pk,
    }


def kept(owner: Membership, words: Words) -> dict[str, Any]:
    mine: dict[str, Any] = {"workspace": owner.workspace, "user": owner.user}
    log = SearchLog.objects.create(
        query=f"A {words.asked}?", mode="hybrid", total=0, milliseconds=1, source="api", **mine
    )
    saved = SavedSearch.objects.create(name=f"Of {words.own}", parameters=f"q={words.own}", **mine)
    record = IdempotencyRecord.objects.create(
        key=f"k {words.own}",
        fingerprint="0" * 64,
        token=uuid4(),
        leased_until=timezone.now(),
        created_at=timezone.now(),
        body=f'"{words.own}"',
        status=200,
        **mine,
    )
    group = create_group(workspace=owner.workspace, name=f"Group {words.shared}")
    add_members(group=group, memberships=[owner])
    invitation, _ = create_invitation(workspace=owner.workspace, user=owner.user)
    key, _ = make_key(owner, "read", name=f"Key {words.own}")
    record_change(
        action=Action.CHANGED, kind=Kind.COLLECTION, workspace_id=owner.workspace_id, object_id=1
    )
    change = Change.objects.filter(workspace=owner.workspace).latest("pk")
    return {
        "saved": saved.pk,
        "key": key.pk,
        "change": change.pk,
        "search.searchlog": log.pk,
        "search.savedsearch": saved.pk,
        "accounts.idempotencyrecord": record.pk,
        "accounts.apikey": key.pk,
        "accounts.workspacegroup": group.pk,
        "accounts.groupmember": GroupMember.objects.get(group=group).pk,
        "accounts.invitation": invitation.pk,
        "accounts.change": change.pk,
    }
