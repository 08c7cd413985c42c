"""What other apps do when a user's memory is erased: they may hold texts that came out of it.

`memory` knows none of them: they register here when the site starts, by the dotted path of a
function. It is imported when something is erased, because most commands never erase.
"""

from collections.abc import Callable

from django.utils.module_loading import import_string

from memory.scopes import UserScope

Eraser = Callable[[UserScope], None]

_paths: list[str] = []


def register(path: str) -> None:
    """Call the function of this dotted path from now on, inside the transaction that erases."""
    if path not in _paths:
        _paths.append(path)


def erased(scope: UserScope) -> None:
    """Tell all. One that raises undoes the whole erasure."""
    for path in _paths:
        eraser: Eraser = import_string(path)
        eraser(scope)
