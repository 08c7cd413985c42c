"""What other apps do when a user's memory is erased: they may hold texts that came out of it.

`memory` knows none of them: they register here when the site starts.
"""

from collections.abc import Callable

from memory.scopes import UserScope

Eraser = Callable[[UserScope], None]

_erasers: list[Eraser] = []


def register(eraser: Eraser) -> None:
    """Call `eraser` from now on, inside the transaction that erases."""
    if eraser not in _erasers:
        _erasers.append(eraser)


def erased(scope: UserScope) -> None:
    """Tell all. One that raises undoes the whole erasure."""
    for eraser in _erasers:
        eraser(scope)
