"""A stage that works ahead of its caller, and the stream that it is given."""

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.ingestion.concurrency import prefetch
from documents.ingestion.sources import Source, split_batches, split_segments, text_source


def test_results_come_in_order_with_their_items() -> None:
    assert list(prefetch(str, range(50), room=4)) == [(n, str(n)) for n in range(50)]


def test_work_goes_on_while_the_caller_is_busy() -> None:
    second_began = threading.Event()

    def work(number: int) -> int:
        if number == 1:
            second_began.set()
        return number

    results = prefetch(work, range(3), room=2)
    next(results)
    assert second_began.wait(timeout=30)
    assert [result for _, result in results] == [1, 2]


def test_no_more_is_drawn_than_there_is_room_for() -> None:
    drawn: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            drawn.append(number)
            yield number

    for number, _ in prefetch(lambda number: number, source(), room=10, size=lambda number: 3):
        assert len(drawn) <= number + 5
    assert len(drawn) == 100


def test_an_item_larger_than_the_room_goes_alone() -> None:
    assert list(prefetch(len, ["x" * 100, "y"], room=10, size=len)) == [("x" * 100, 100), ("y", 1)]


def test_an_exception_comes_where_the_result_would_have_come() -> None:
    def work(number: int) -> int:
        return 1 // (2 - number)

    results = prefetch(work, range(5), room=5)
    assert [next(results), next(results)] == [(0, 0), (1, 1)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_source_is_drawn_from_in_the_callers_thread() -> None:
    threads = set()

    def source() -> Iterator[int]:
        for number in range(5):
            threads.add(threading.get_ident())
            yield number

    assert len(list(prefetch(str, source(), room=2))) == 5
    assert threads == {threading.get_ident()}


@given(keys=st.lists(st.sampled_from("abcd"), max_size=30))
def test_segments_keep_every_source_and_no_key_meets_itself(keys: list[str]) -> None:
    sources = [text_source(key, f"text {number}") for number, key in enumerate(keys)]
    parts = [list(segment) for segment in split_segments(sources)]
    assert [source for part in parts for source in part] == sources
    for part in parts:
        assert len({source.key for source in part if isinstance(source, Source)}) == len(part) > 0


def test_a_large_file_has_a_segment_of_its_own() -> None:
    sizes = [1, 100_000_000, 2, 3, 100_000_000, 100_000_000]
    sources = [Source(str(number), "", size, bytes) for number, size in enumerate(sizes)]
    parts = [[source.size for source in segment] for segment in split_segments(sources)]
    assert parts == [[1], [100_000_000], [2, 3], [100_000_000], [100_000_000]]


@given(sizes=st.lists(st.integers(0, 20_000_000), max_size=40))
def test_batches_are_bounded_and_complete(sizes: list[int]) -> None:
    numbered = [Source(str(number), "", size, bytes) for number, size in enumerate(sizes)]
    parts = list(split_batches(numbered))
    assert [source for part in parts for source in part] == numbered
    for part in parts:
        assert len(part) == 1 or sum(source.size for source in part) <= 16 * 1024 * 1024
