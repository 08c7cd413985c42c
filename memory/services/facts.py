"""Facts: what is known of a user, what was, and what is to be forgotten."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.history import NOBODY, Action, Kind, current_actor, note_change
from memory.keys import fact_key
from memory.locks import hold_facts
from memory.models import Context, Fact, Origin
from memory.querysets import FactQuerySet
from memory.scopes import UserScope
from memory.storing.facts import FactChange, end_fact, put_fact
from memory.tasks import enqueue_embedding


def set_fact(
    *,
    scope: UserScope | None,
    key: str,
    value: str,
    at: datetime | None = None,
    source: Context | None = None,
    origin: str = Origin.GIVEN,
    corrects: bool = False,
) -> FactChange | None:
    """`key` is `value` since `at`, by default now and never later.

    What was true until then ends there and stays in the history. A fact told late, with an `at`
    before the current one's, goes into the history where it belongs, and the current one stays. One
    that `corrects` ends what holds at `at` even where that was said again later. The same value
    again only confirms it. Of nobody nothing is kept, and None returned. Raises InvalidInput, and
    TooManyFacts.
    """
    if scope is None:
        return None
    with transaction.atomic():
        change = put_fact(
            scope=scope,
            key=key,
            value=value,
            at=at,
            source=source,
            origin=origin,
            corrects=corrects,
        )
        if change.changed:
            _note(Action.SUPERSEDED if change.superseded else Action.MADE, scope, change.fact.pk)
    if change.changed:
        transaction.on_commit(lambda: enqueue_embedding(facts=[change.fact.pk]))
    return change


def get_fact(*, scope: UserScope | None, key: str, as_of: datetime | None = None) -> Fact | None:
    """What `key` is, or was then."""
    return _known(scope, as_of).filter(key=fact_key(key)).latest_first().first()


def has_fact(*, scope: UserScope | None, key: str) -> bool:
    """Whether `key` has a value now."""
    return get_fact(scope=scope, key=key) is not None


def get_all_facts(*, scope: UserScope | None, as_of: datetime | None = None) -> list[Fact]:
    """Everything held true of the user, now or then, by key."""
    return list(_known(scope, as_of).one_a_key().defer("embedding"))


def history(*, scope: UserScope | None, key: str) -> list[Fact]:
    """All values that `key` ever had, the latest first."""
    rows = Fact.objects.of(scope).filter(key=fact_key(key)).select_related("source")
    return list(rows.latest_first().defer("embedding"))


def clear_fact(*, scope: UserScope | None, key: str) -> bool:
    """`key` is true no longer; what it was stays in the history. Whether there was anything."""
    if scope is None:
        return False
    name = fact_key(key)
    with transaction.atomic():
        hold_facts(scope)
        current = Fact.objects.of(scope).current().filter(key=name).first()
        ended = end_fact(current, timezone.now())
        if ended is not None:
            _note(Action.CHANGED, scope, ended.pk, fields=["valid_to"])
        return ended is not None


def forget_fact(*, scope: UserScope | None, key: str) -> int:
    """Remove `key` with all its history; how many rows that were."""
    if scope is None:
        return 0
    with transaction.atomic():
        hold_facts(scope)
        _, rows = Fact.objects.of(scope).filter(key=fact_key(key)).delete()
        removed: int = rows.get(Fact._meta.label, 0)
        _note(Action.DELETED, scope, count=removed)
    return removed


def _note(action: Action, scope: UserScope, fact: int | None = None, **more: Any) -> None:
    """What is learnt in the background is nobody's doing: the facts themselves tell of it."""
    if current_actor() != NOBODY:
        note_change(
            action=action,
            kind=Kind.FACT,
            workspace_id=scope.workspace_id,
            thing=fact,
            memory_of=scope.user_id,
            **more,
        )


def _known(scope: UserScope | None, as_of: datetime | None) -> FactQuerySet[Fact]:
    rows = Fact.objects.of(scope)
    return rows.current() if as_of is None else rows.as_of(as_of)
