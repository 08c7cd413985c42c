"""Turns of conversations: kept, forgotten."""

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from accounts.history import Action, Kind, note_change
from memory import texts
from memory.models import Context, Origin
from memory.scopes import UserScope
from memory.storing.contexts import Archived, put_context
from memory.tasks import enqueue_embedding


def archive_turn(
    *,
    scope: UserScope | None,
    user_message: str,
    assistant_response: str = "",
    conversation: str = "",
    at: datetime | None = None,
    origin: str = Origin.TURN,
) -> Archived | None:
    """Keep a turn. It is found by its words when this returns, by its meaning when a worker has
    embedded it.

    The same turn again only gets a later time. `at` is when it was said, by default now. Of nobody
    nothing is kept, and None returned. Raises InvalidInput for a turn without any text, or with too
    much of it.
    """
    if scope is None:
        return None
    archived = put_context(
        scope=scope,
        user_message=user_message,
        assistant_response=assistant_response,
        conversation=conversation,
        at=at,
        origin=origin,
    )
    if archived.waits:
        transaction.on_commit(lambda: enqueue_embedding(contexts=[archived.id]))
    return archived


def store_memory(*, scope: UserScope | None, question: str, answer: str) -> Archived | None:
    """Keep a question with its answer, whoever thought of it. As `archive_turn`."""
    return archive_turn(
        scope=scope, user_message=question, assistant_response=answer, origin=Origin.GIVEN
    )


def clear_memory(*, scope: UserScope | None, question: str) -> int:
    """Forget every context whose user message is `question`, whatever was answered; how many."""
    return _forget(scope, same_question(scope=scope, question=question))


def same_question(*, scope: UserScope | None, question: str) -> list[int]:
    """The ids of the contexts whose user message is `question`, blanks around it aside."""
    wanted = texts.storable(question, field="question").strip()
    rows = Context.objects.of(scope).filter(user_message__contains=wanted)
    return [pk for pk, said in rows.values_list("pk", "user_message") if said.strip() == wanted]


def forget_contexts(*, scope: UserScope | None, ids: Iterable[int]) -> int:
    """Forget these contexts, as far as they are this user's; how many were."""
    mine = Context.objects.of(scope).filter(pk__in=list(ids)).values_list("pk", flat=True)
    return _forget(scope, mine)


@transaction.atomic
def _forget(scope: UserScope | None, ids: Iterable[int]) -> int:
    _, rows = Context.objects.filter(pk__in=list(ids)).delete()
    forgotten: int = rows.get(Context._meta.label, 0)
    if scope is not None:
        note_change(
            action=Action.DELETED,
            kind=Kind.CONTEXT,
            workspace_id=scope.workspace_id,
            count=forgotten,
            memory_of=scope.user_id,
        )
    return forgotten
