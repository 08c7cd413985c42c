"""What the list of facts shows of each: its value, those before it, and what it is now."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, Window
from django.db.models.functions import RowNumber

from memory.models import Fact
from memory.querysets import LATEST_FIRST, FactQuerySet
from memory.scopes import UserScope

PAGE_SIZE = 25
#: So many former values are listed; the fact's own page has more.
FORMER = 4


@dataclass(frozen=True, slots=True)
class ShownFact:
    """A fact, its latest former values, and how many there are besides. `now` is the current value
    where a past one is shown, None where there is none any more."""

    fact: Fact
    former: tuple[Fact, ...] = ()
    more: int = 0
    now: Fact | None = None

    @property
    def still_holds(self) -> bool:
        """Whether what is shown is true now."""
        return self.now is not None and self.now.value == self.fact.value


def listed(scope: UserScope, *, find: str, as_of: datetime | None) -> FactQuerySet[Fact]:
    """What is held true now, or was then; `find` stands in its key or value."""
    facts = Fact.objects.of(scope)
    known = facts.current() if as_of is None else facts.as_of(as_of)
    return _one_a_key(_with(known, find))


def ended(scope: UserScope, *, find: str = "") -> FactQuerySet[Fact]:
    """The last value of every key that has none now."""
    facts = Fact.objects.of(scope)
    now = facts.current().filter(key=OuterRef("key"))
    return _one_a_key(_with(facts.filter(~Exists(now)), find))


def _with(facts: FactQuerySet[Fact], find: str) -> FactQuerySet[Fact]:
    if not find:
        return facts
    key = "_".join(find.casefold().split())
    return facts.filter(Q(key__icontains=key) | Q(value__icontains=find))


def _one_a_key(facts: FactQuerySet[Fact]) -> FactQuerySet[Fact]:
    return facts.one_a_key().defer("embedding", "search_vector")


def shown_facts(
    scope: UserScope, facts: Sequence[Fact], *, as_of: datetime | None
) -> list[ShownFact]:
    """The page's facts with what came before them; for a past day with what came of them."""
    if as_of is not None:
        current = Fact.objects.of(scope).current().filter(key__in=[fact.key for fact in facts])
        now = {fact.key: fact for fact in current.defer("embedding", "search_vector")}
        return [ShownFact(fact, now=now.get(fact.key)) for fact in facts]
    former = _former(scope, facts)
    return [
        ShownFact(fact, tuple(rows[:FORMER]), max(_total(rows) - FORMER, 0))
        for fact in facts
        for rows in [former[fact.key]]
    ]


def _former(scope: UserScope, facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """The latest values of each key before the one that is shown."""
    shown = {fact.key: fact.pk for fact in facts}
    others = Fact.objects.of(scope).filter(key__in=shown).exclude(pk__in=shown.values())
    rows = (
        others.annotate(
            place=Window(RowNumber(), partition_by="key", order_by=LATEST_FIRST),
            total=Window(Count("*"), partition_by="key"),
        )
        .filter(place__lte=FORMER)
        .order_by("key", *LATEST_FIRST)
        .defer("embedding", "search_vector")
    )
    former: dict[str, list[Fact]] = defaultdict(list)
    for row in rows:
        former[row.key].append(row)
    return former


def _total(rows: Sequence[Fact]) -> int:
    total: int = getattr(rows[0], "total", 0) if rows else 0
    return total
