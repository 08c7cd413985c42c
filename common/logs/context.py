"""For whom this thread works just now: a request, a task, or nobody."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from django.http import HttpRequest
from django.utils.functional import LazyObject, empty

P = ParamSpec("P")
T = TypeVar("T")

#: What is taken over from a caller: nothing that could forge a line or fill a disk.
_SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Work:
    """`request_id` is that of the request which caused a task, too. The request itself is kept to
    say who asks and by which address: both are known only later."""

    request_id: str = ""
    task: str = ""
    task_id: str = ""
    request: HttpRequest | None = None

    def fields(self) -> dict[str, Any]:
        """What is known, under the names that it has in the log."""
        known = {
            "request_id": self.request_id,
            "user_id": user_id(self.request),
            "route": route(self.request),
            "task": self.task,
            "task_id": self.task_id,
        }
        return {name: value for name, value in known.items() if value}


NOTHING = Work()
_work: ContextVar[Work] = ContextVar("work", default=NOTHING)


def current_work() -> Work:
    """What is done just now."""
    return _work.get()


def begin(work: Work) -> None:
    """Say so for what this thread does from here on."""
    _work.set(work)


@contextmanager
def working(work: Work) -> Iterator[None]:
    """Say so inside."""
    before = _work.get()
    _work.set(work)
    try:
        yield
    finally:
        _work.set(before)  # not by its token: it may end in another context than it began in


def carrying(function: Callable[P, T]) -> Callable[P, T]:
    """`function` for another thread, whose lines are then known by this thread's work.

    Nothing else is carried over, as `copy_context` would: who acts, or what ends the work.
    """
    work = _work.get()

    @wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> T:
        with working(work):
            return function(*args, **kwargs)

    return carried


def request_id_of(given: str) -> str:
    """The caller's where it is sane, else a new one."""
    return given if _SANE.fullmatch(given) else uuid4().hex


def route(request: HttpRequest | None) -> str:
    """The name of the address, of which there are few; never what stands in it."""
    match = getattr(request, "resolver_match", None)
    return (match.view_name or match.route) if match else ""


def user_id(request: HttpRequest | None) -> int | None:
    """Of who asks, where somebody has found out: the database is not asked for the log."""
    user = getattr(request, "__dict__", {}).get("user")
    if isinstance(user, LazyObject) and user.__dict__.get("_wrapped") is empty:
        return None
    return getattr(user, "pk", None)
