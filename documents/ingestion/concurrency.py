"""Advisory locks on collections, the heartbeat that renews leases, the stage timer, and `prefetch`,
which runs a pipeline stage in a thread."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from time import perf_counter
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection

from common.leases import heartbeat as heartbeat_every

#: Tells these locks from other users of advisory locks; any number would do.
_LOCK_CLASS = 0x5261_6753
_INT4 = 2**31


def share_collection_locks(collection_ids: Iterable[int]) -> None:
    """Shared lock: wait until nobody changes these collections' spaces; until the end of the
    transaction."""
    _take_locks("pg_advisory_xact_lock_shared", collection_ids)


def lock_collection(collection_id: int) -> None:
    """Exclusive lock: wait until nobody loads into the collection; until the end of the
    transaction."""
    _take_locks("pg_advisory_xact_lock", [collection_id])


def lock_space_changes() -> None:
    """Wait until nobody else starts to change spaces; until the end of the transaction."""
    lock_collection(0)  # no collection has this id


def _take_locks(function: str, collection_ids: Iterable[int]) -> None:
    with connection.cursor() as cursor:
        for collection_id in sorted(set(collection_ids)):  # always in one order: no deadlock
            cursor.execute(f"SELECT {function}(%s, %s)", [_LOCK_CLASS, collection_id % _INT4])


def heartbeat(beat: Callable[[], Any]) -> AbstractContextManager[None]:
    """Call `beat` three times per lease while the block runs."""
    return heartbeat_every(beat, seconds=settings.INGESTION_LEASE_SECONDS / 3)


class Stopwatch:
    """Sums seconds per stage: `with watch("parse"): …`."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = seconds or {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - start


Item = TypeVar("Item")
Result = TypeVar("Result")
#: Seconds between two calls of `while_waiting`.
WAIT_SECONDS = 1.0


def prefetch(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    room: int,
    size: Callable[[Item], int] = lambda item: 1,
    at_end: Callable[[], object] = lambda: None,
    while_waiting: Callable[[Item], object] | None = None,
) -> Iterator[tuple[Item, Result]]:
    """Each item with `work(item)`, in order, computed in a thread while the caller is busy.

    `items` is iterated in the calling thread, so it may use the caller's database connection, and
    so may the caller between two results; `work` opens its own and closes it in `at_end`, which
    runs in its thread at the end. `while_waiting` is called in the calling thread with the item
    whose result it waits for, every WAIT_SECONDS. At most `room`, in units of `size`, is in
    progress at once, or a single larger item. An exception of `work` is raised where its result
    would have come; then, and when the caller stops early, pending items are dropped and running
    ones awaited.
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
                    while while_waiting and not wait([future], WAIT_SECONDS).done:
                        while_waiting(item)
                    yield item, future.result()
                else:
                    return
        finally:
            for _, future in pending:
                future.cancel()
            thread.submit(at_end)
