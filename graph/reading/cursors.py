"""Where a page ended, as an opaque text."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from common.errors import InvalidInput

MAX_CHARACTERS = 10_000


def written(place: Sequence[str | int | bool]) -> str:
    """The cursor of a place."""
    return urlsafe_b64encode(json.dumps(list(place)).encode()).decode().rstrip("=")


def read(cursor: str, *shape: type) -> tuple[Any, ...] | None:
    """The place, of values of these types; None for the beginning. Raises InvalidInput."""
    if not cursor:
        return None
    try:
        if len(cursor) > MAX_CHARACTERS:
            raise ValueError
        place = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError) as error:
        raise _invalid() from error
    if not isinstance(place, list) or [type(value) for value in place] != list(shape):
        raise _invalid()
    return tuple(place)


def _invalid() -> InvalidInput:
    return InvalidInput(
        "This is no cursor of this list. Take it from “next” of the page before, unchanged, or"
        " leave it out to begin.",
        field="cursor",
    )
