"""Equal shares: everything fits, nobody below the share gives anything, and none is wasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quotas import FairShare, max_min_fair_share

AMOUNTS = st.lists(st.integers(0, 50), max_size=12)


def kept(held: list[int], share: FairShare) -> list[int]:
    return [min(amount, share.level) for amount in held]


@given(AMOUNTS, st.integers(0, 400))
def test_shares_are_asked_for_only_where_not_everything_fits(held: list[int], room: int) -> None:
    assert (max_min_fair_share(held, room) is None) == (sum(held) <= room)


@given(AMOUNTS, st.integers(0, 400))
def test_the_room_is_used_to_the_last_place(held: list[int], room: int) -> None:
    share = max_min_fair_share(held, room)
    if share is not None:
        above = sum(amount > share.level for amount in held)
        assert sum(kept(held, share)) + share.spare == room
        assert 0 <= share.spare < above


@given(AMOUNTS, st.integers(0, 400))
def test_whoever_holds_no_more_than_an_equal_share_keeps_everything(
    held: list[int], room: int
) -> None:
    share = max_min_fair_share(held, room)
    if share is not None:
        assert share.level >= room // len(held)


@given(AMOUNTS, st.integers(0, 400), st.integers(0, 400))
def test_more_room_never_makes_a_share_smaller(held: list[int], room: int, more: int) -> None:
    less, enough = max_min_fair_share(held, room), max_min_fair_share(held, room + more)
    assert less is None or enough is None or less.level <= enough.level


@pytest.mark.parametrize(
    ("held", "room", "share"),
    [
        ([10, 1, 1], 8, FairShare(6)),
        ([10, 10, 1], 8, FairShare(3, spare=1)),
        ([1, 1, 1], 2, FairShare(0, spare=2)),
        ([5], 0, FairShare(0)),
        ([], 0, None),
        ([4, 4], 8, None),
    ],
)
def test_shares_of_a_few(held: list[int], room: int, share: FairShare | None) -> None:
    assert max_min_fair_share(held, room) == share
