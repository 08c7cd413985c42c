"""Long documents in parts."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from documents.reader import page_at, split_pages

starts = st.lists(st.integers(0, 500), max_size=40, unique=True).map(sorted)


@given(boundaries=starts, more=st.integers(0, 200), size=st.integers(1, 200))
def test_parts_cover_the_text_once_and_begin_at_boundaries(
    boundaries: list[int], more: int, size: int
) -> None:
    length = (boundaries[-1] if boundaries else 0) + more
    parts = split_pages(length, boundaries, size=size)

    assert parts[0].start == 0
    assert parts[-1].end == length
    assert all(left.end == right.start for left, right in pairwise(parts))
    assert {part.start for part in parts[1:]} <= set(boundaries)
    assert [part.number for part in parts] == list(range(1, parts[0].count + 1))


@given(boundaries=starts, size=st.integers(1, 200))
def test_a_part_is_longer_than_the_size_only_where_nothing_could_be_cut(
    boundaries: list[int], size: int
) -> None:
    length = (boundaries[-1] if boundaries else 0) + 1
    for part in split_pages(length, boundaries, size=size):
        inside = [boundary for boundary in boundaries if part.start < boundary < part.end]
        assert part.end - part.start <= size or not inside


def test_a_place_is_in_one_part() -> None:
    parts = split_pages(100, [0, 40, 80], size=50)

    assert [page_at(parts, offset).number for offset in (0, 39, 40, 79, 80, 100, 500)] == [
        *(1, 1, 2, 2, 3, 3, 3)
    ]
