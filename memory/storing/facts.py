"""Facts: one current value a key, and a history without gaps or overlaps."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from common.errors import InvalidInput, RagsiteError
from memory import texts
from memory.keys import fact_key
from memory.locks import hold_facts
from memory.models import Context, Fact, Origin
from memory.moments import moment as checked_moment
from memory.scopes import UserScope


class TooManyFacts(RagsiteError):
    """The user's quota of facts, their history included, is used up."""

    code = "quota_used_up"
    status = 409


@dataclass(frozen=True, slots=True)
class FactChange:
    """What is known now, whether that is new, and what it took the place of."""

    fact: Fact
    changed: bool
    superseded: Fact | None = None


def put_fact(
    *,
    scope: UserScope,
    key: str,
    value: str,
    at: datetime | None = None,
    source: Context | None = None,
    origin: str = Origin.GIVEN,
    corrects: bool = False,
) -> FactChange:
    """`key` is `value` since `at`, by default now and never later.

    What was true until then ends there and stays in the history. A fact told late, with an `at`
    before the current one's, goes into the history where it belongs: what was said after it stays.
    One that `corrects` ends what holds at `at` even where that was said again later. The same value
    again only confirms it. Raises InvalidInput, and TooManyFacts.
    """
    name = fact_key(key)
    said = texts.storable(value, field="value").strip()
    if not said:
        raise InvalidInput(
            "A fact needs a value. To end one, clear it; to remove it, forget it.", field="value"
        )
    moment = min(checked_moment(at), timezone.now())
    language = texts.search_configuration(said, scope=scope)
    with transaction.atomic():
        hold_facts(scope)
        before, after = _neighbours(scope, name, moment)
        if before is not None and before.value == said and _holds(before, moment):
            return FactChange(_confirmed(before, moment), changed=False)
        if after is not None and after.value == said:
            return FactChange(_known_earlier(before, after, moment), changed=True)
        _check_quota(scope)
        fact = Fact(
            workspace_id=scope.workspace_id,
            user_id=scope.user_id,
            key=name,
            value=said,
            valid_from=moment,
            confirmed_at=moment,
            source=_held(source, scope),
            origin=origin,
            language=language,
        )
        rest = None if corrects else _rest(before, moment)
        return FactChange(fact, changed=True, superseded=_insert(fact, before, rest, after))


def _insert(fact: Fact, before: Fact | None, rest: Fact | None, after: Fact | None) -> Fact | None:
    """Put `fact` between its neighbours; returns the one before where that ends by it."""
    ended = end_fact(before, fact.valid_from)
    if rest is not None:
        rest.save(force_insert=True)
        after = rest
    if after is not None:
        fact.valid_to, fact.superseded_by = after.valid_from, after
    fact.save(force_insert=True)
    if ended is not None:
        ended.superseded_by = fact
        ended.save(update_fields=["superseded_by"])
    return ended


def _rest(before: Fact | None, moment: datetime) -> Fact | None:
    """What the value before was confirmed to be after `moment`: it is true again from then on."""
    if before is None or not _holds(before, moment) or before.confirmed_at <= moment:
        return None
    return Fact(
        workspace_id=before.workspace_id,
        user_id=before.user_id,
        key=before.key,
        value=before.value,
        valid_from=before.confirmed_at,
        valid_to=before.valid_to,
        confirmed_at=before.confirmed_at,
        superseded_by_id=before.superseded_by_id,
        source_id=before.source_id,
        origin=before.origin,
        language=before.language,
    )


def _held(source: Context | None, scope: UserScope) -> Context | None:
    """The turn that a fact is learnt from, which stays until the fact is stored; None where it has
    been forgotten, or is another user's."""
    if source is None:
        return None
    return Context.objects.of(scope).select_for_update().only("pk").filter(pk=source.pk).first()


def _confirmed(fact: Fact, moment: datetime) -> Fact:
    """The same was said again."""
    fact.confirmed_at = max(fact.confirmed_at, moment)
    fact.save(update_fields=["confirmed_at"])
    return fact


def _neighbours(scope: UserScope, key: str, moment: datetime) -> tuple[Fact | None, Fact | None]:
    """The value in force at `moment` or the last before it, and the first after it."""
    rows = list(Fact.objects.of(scope).filter(key=key).defer("embedding").latest_first())
    before = next((row for row in rows if row.valid_from <= moment), None)
    after = [row for row in rows if row.valid_from > moment]
    return before, (after[-1] if after else None)


def _holds(fact: Fact, moment: datetime) -> bool:
    return fact.valid_to is None or fact.valid_to > moment


def end_fact(fact: Fact | None, moment: datetime) -> Fact | None:
    """Let `fact` end at `moment` where it would have held longer; None where there is nothing to
    end. The caller holds the user's facts."""
    if fact is None or not _holds(fact, moment):
        return None
    fact.valid_to = max(moment, fact.valid_from)
    fact.confirmed_at = min(fact.confirmed_at, fact.valid_to)
    fact.save(update_fields=["valid_to", "confirmed_at"])
    return fact


def _known_earlier(before: Fact | None, after: Fact, moment: datetime) -> Fact:
    """The same was said before it was thought to begin."""
    ended = end_fact(before, moment)
    if ended is not None:
        Fact.objects.filter(pk=ended.pk).update(superseded_by=after)
    after.valid_from = moment
    after.save(update_fields=["valid_from"])
    return after


def _check_quota(scope: UserScope) -> None:
    limit: int = settings.MEMORY_MAX_FACTS
    if Fact.objects.of(scope).count() >= limit:
        raise TooManyFacts(
            f"This user has {limit:,} facts, their history included, and no more are kept."
            " Forget some first."
        )
