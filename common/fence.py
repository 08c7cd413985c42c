"""Which workspaces the database shows to the work at hand: row-level security.

Pages and the API read through `visible_to(user)`. This is the second fence behind it, for the day
when somebody forgets: while a request is answered every statement runs as a role that owns no
table, and PostgreSQL itself shows that role rows of the request's workspaces and no others.
docs/decisions/0045 tells why role and workspaces are told with each statement.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

#: The setting that policies read: ids of workspaces with commas between them.
SETTING = "ragsite.workspace"

Find = Callable[[], Iterable[int] | None]


class Fence:
    """The workspaces of a piece of work, found when the first statement needs them.

    `find()` runs unfenced, because whoever asks is looked up in the database as well. None from it
    is no fence.
    """

    __slots__ = ("_find", "_workspaces")

    def __init__(self, find: Find) -> None:
        self._find: Find | None = find
        self._workspaces: frozenset[int] | None = None

    @property
    def workspaces(self) -> frozenset[int] | None:
        """Their ids; None shows everything."""
        if self._find is not None:
            with unfenced():
                found = self._find()
            # Whoever was found out to ask may have narrowed it in the meantime.
            if self._find is not None:
                self.show(found)
        return self._workspaces

    def show(self, workspaces: Iterable[int] | None) -> None:
        """From now on these and no others."""
        self._workspaces = None if workspaces is None else frozenset(workspaces)
        self._find = None


#: Shown to work that nobody fenced: everything to commands and workers, nothing in a web server.
_otherwise: Fence | None = None
_current: ContextVar[Fence | None] = ContextVar("fence", default=None)
_lifted: ContextVar[bool] = ContextVar("fence_lifted", default=False)


def current() -> Fence | None:
    """The fence around the work at hand; None: there is none."""
    if _lifted.get():
        return None
    return _current.get() or _otherwise


def has_fence() -> bool:
    """Whether the work at hand answers a request, also where its fence is lifted for a moment."""
    return (_current.get() or _otherwise) is not None


@contextmanager
def fenced(fence: Fence) -> Iterator[None]:
    """Inside, the database shows what `fence` lets through."""
    before, lifted = _current.get(), _lifted.get()
    _current.set(fence)
    _lifted.set(False)
    try:
        yield
    finally:
        # Not by their tokens: a request may end in another context than it began in.
        _current.set(before)
        _lifted.set(lifted)


@contextmanager
def fenced_to(*workspaces: int) -> Iterator[None]:
    """Inside, the database shows these workspaces."""
    with fenced(Fence(lambda: workspaces)):
        yield


@contextmanager
def unfenced() -> Iterator[None]:
    """Inside, the database shows everything: for looking up who asks, and for statements that
    name their workspaces themselves and answer with ids alone. Say why where you use it."""
    lifted = _lifted.get()
    _lifted.set(True)
    try:
        yield
    finally:
        _lifted.set(lifted)


def narrow(workspaces: Iterable[int] | None) -> None:
    """Show these and no others for the rest of the work at hand, where it is fenced."""
    fence = _current.get()
    if fence is not None:
        fence.show(workspaces)


def close_by_default() -> None:
    """Show nothing to work in this process that has no fence of its own: a thread that lost its
    request's shall find nothing, not everything."""
    global _otherwise  # noqa: PLW0603 (one state of the process)
    _otherwise = Fence(tuple)


def keeping(fence: Fence, parts: Iterable[T]) -> Iterator[T]:
    """`parts`, each made within the fence: a stream goes on when its request has been answered."""
    iterator = iter(parts)
    while True:
        with fenced(fence):
            try:
                part = next(iterator)
            except StopIteration:
                return
        yield part
