"""One stage of a pipeline: a thread that works ahead of whoever asks for its results."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    room: int,
    size: Callable[[Item], int] = lambda item: 1,
    at_end: Callable[[], object] = lambda: None,
) -> Iterator[tuple[Item, Result]]:
    """Each item with `work(item)`, in order, worked on in a thread while the caller is busy.

    `items` is drawn from in the calling thread, so it may use the caller's database connection,
    and so may the caller between two results; `work` has one of its own, if it has any, and closes
    it `at_end`, which is called in its thread when all is over. At most `room`, in the unit of
    `size`, is under way at once, or a single item that is larger. An exception of `work` is raised
    where its result would have come; then, and when the caller stops early, what has not begun is
    dropped and what has begun is waited for.
    """
    pending: deque[tuple[Item, Future[Result]]] = deque()
    used = 0
    source = iter(items)
    exhausted = False
    with ThreadPoolExecutor(1) as thread:
        try:
            while True:
                # Drawing may take long: with a result at hand, only to keep the thread busy.
                is_ready = bool(pending) and pending[0][1].done()
                wanted = room / 2 + size(pending[0][0]) if is_ready else room
                if not exhausted and (used < min(wanted, room) or not pending):
                    try:
                        item = next(source)
                    except StopIteration:
                        exhausted = True
                        continue
                    pending.append((item, thread.submit(copy_context().run, work, item)))
                    used += size(item)
                elif pending:
                    item, future = pending.popleft()
                    used -= size(item)
                    yield item, future.result()
                else:
                    return
        finally:
            for _, future in pending:
                future.cancel()
            thread.submit(at_end)
