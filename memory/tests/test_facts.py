"""A key has one value now, and what it was is not forgotten until it is."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from django.db import IntegrityError, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from memory.models import Context, Fact
from memory.scopes import UserScope
from memory.services import get_all_facts, get_fact, history, set_fact
from memory.tests.factories import NOW, make_scope, remember
from tests.kit import at_once


def day(number: int) -> datetime:
    return NOW - timedelta(days=100 - number)


def value(scope: UserScope, key: str, as_of: datetime | None = None) -> str | None:
    fact = get_fact(scope=scope, key=key, as_of=as_of)
    return fact.value if fact else None


@pytest.mark.django_db
def test_a_contradiction_takes_the_place_of_what_was_known() -> None:
    scope = make_scope()
    set_fact(scope=scope, key="location", value="Hamburg", at=day(1))
    change = set_fact(scope=scope, key="location", value="Berlin", at=day(50))

    assert change is not None
    assert change.superseded is not None
    assert value(scope, "location") == "Berlin"
    assert value(scope, "location", as_of=day(20)) == "Hamburg"
    assert value(scope, "location", as_of=day(50)) == "Berlin"
    assert value(scope, "location", as_of=day(0)) is None
    (berlin, hamburg) = history(scope=scope, key="location")
    assert (hamburg.superseded_by, hamburg.valid_to) == (berlin, day(50))


@pytest.mark.django_db
def test_a_value_that_turns_out_to_be_older_begins_earlier() -> None:
    scope = make_scope()
    set_fact(scope=scope, key="location", value="Berlin", at=day(50))
    set_fact(scope=scope, key="location", value="Berlin", at=day(40))

    (only,) = history(scope=scope, key="location")
    assert only.valid_from == day(40)


@pytest.mark.django_db
def test_a_fact_cannot_begin_in_the_future() -> None:
    scope = make_scope()
    set_fact(scope=scope, key="location", value="Berlin", at=NOW + timedelta(days=9000))

    assert value(scope, "location") == "Berlin"


@pytest.mark.django_db
def test_the_turn_that_a_fact_was_learnt_from_is_one_of_the_same_user_or_none() -> None:
    scope, other = make_scope(), make_scope("bob")
    mine = Context.objects.get(pk=remember(scope, "I moved to Berlin"))
    theirs = Context.objects.get(pk=remember(other, "I moved to Berlin"))
    gone = Context.objects.get(pk=remember(scope, "I left Hamburg"))
    Context.objects.filter(pk=gone.pk).delete()
    for key, source in (("a", mine), ("b", theirs), ("c", gone)):
        set_fact(scope=scope, key=key, value="Berlin", source=source)

    sources = {fact.key: fact.source for fact in get_all_facts(scope=scope)}
    assert sources == {"a": mine, "b": None, "c": None}


@pytest.mark.django_db
def test_the_database_itself_allows_one_current_value() -> None:
    scope = make_scope()
    set_fact(scope=scope, key="location", value="Berlin")
    with pytest.raises(IntegrityError), transaction.atomic():
        Fact.objects.create(
            workspace_id=scope.workspace_id, user_id=scope.user_id, key="location", value="Kiel"
        )


@pytest.mark.django_db(transaction=True)
def test_two_at_once_leave_one_current_value_and_lose_none() -> None:
    scope = make_scope()
    for number in range(8):
        at_once(
            lambda n=number: set_fact(scope=scope, key="location", value=f"Berlin {n}"),  # type: ignore[misc]
            lambda n=number: set_fact(scope=scope, key="location", value=f"Kiel {n}"),  # type: ignore[misc]
        )
        assert Fact.objects.of(scope).current().count() == 1

    rows = history(scope=scope, key="location")
    assert {row.value for row in rows} == (
        {f"{city} {number}" for city in ("Berlin", "Kiel") for number in range(8)}
    )
    assert_whole(rows)


def assert_whole(rows: list[Fact]) -> None:
    """Latest first: each ends where the next begins, or before, and only the last has no end."""
    for later, earlier in pairwise(rows):
        assert earlier.valid_to is not None
        assert earlier.valid_from <= earlier.valid_to <= later.valid_from


class History(TestCase):
    """Told in whatever order, history is what was said last of each moment."""

    @settings(max_examples=20, deadline=None)
    @given(
        told=st.lists(
            st.tuples(st.integers(0, 20), st.sampled_from(["a", "b", "c"])), min_size=1, max_size=8
        )
    )
    def test_what_was_said_last_is_true_now(self, told: list[tuple[int, str]]) -> None:
        scope = make_scope()
        for number, said in told:
            set_fact(scope=scope, key="location", value=said, at=day(number))

        assert_whole(history(scope=scope, key="location"))
        assert Fact.objects.of(scope).current().count() == 1
        last = max(number for number, _ in told)
        said_last = [said for number, said in told if number == last]
        if len(set(said_last)) == 1:  # else the order in which they were told decides
            assert value(scope, "location") == said_last[0]

    @settings(max_examples=20, deadline=None)
    @given(days=st.lists(st.integers(0, 20), min_size=1, max_size=8, unique=True))
    def test_each_moment_has_what_was_said_last_before_it(self, days: list[int]) -> None:
        scope = make_scope()
        for number in days:
            set_fact(scope=scope, key="location", value=f"city {number}", at=day(number))

        for number in range(21):
            before = [each for each in days if each <= number]
            expected = f"city {max(before)}" if before else None
            assert value(scope, "location", as_of=day(number)) == expected
