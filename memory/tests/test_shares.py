"""Fair shares: everything fits, nobody below the share gives anything, and none is wasted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.quotas import max_min_fair_share

AMOUNTS = st.lists(st.integers(0, 50), max_size=12)


@given(AMOUNTS, st.integers(0, 400), st.integers(0, 400))
def test_a_fair_share_uses_all_room_and_grows_with_it(
    held: list[int], room: int, more: int
) -> None:
    share = max_min_fair_share(held, room)
    assert (share is None) == (sum(held) <= room)
    if share is None:
        return
    level, spare = share
    assert sum(min(amount, level) for amount in held) + spare == room
    assert 0 <= spare < sum(amount > level for amount in held)
    assert level >= room // len(held)
    enough = max_min_fair_share(held, room + more)
    assert enough is None or level <= enough[0]


@pytest.mark.parametrize(
    ("held", "room", "share"),
    [
        ([10, 1, 1], 8, (6, 0)),
        ([10, 10, 1], 8, (3, 1)),
        ([1, 1, 1], 2, (0, 2)),
        ([5], 0, (0, 0)),
        ([], 0, None),
        ([4, 4], 8, None),
    ],
)
def test_shares_of_a_few(held: list[int], room: int, share: tuple[int, int] | None) -> None:
    assert max_min_fair_share(held, room) == share
