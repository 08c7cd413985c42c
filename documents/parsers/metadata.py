"""Metadata from files, made safe for a jsonb column."""

import datetime
import math
from pathlib import PurePosixPath
from typing import Any

from documents.parsers.normalise import normalise_text

_MAX_NODES = 10_000
_MAX_DEPTH = 20
#: Of a whole number: about as large as a fraction may be. Python refuses to write much larger ones.
_MAX_BITS = 1024


class MetadataTooLargeError(ValueError):
    """Nested or multiplied (YAML aliases) beyond what anybody writes by hand."""


def json_safe(value: object) -> Any:
    """A copy of `value` of JSON types only; raises `MetadataTooLargeError` beyond 10,000 nodes."""
    return _Copy().node(value, depth=0)


class _Copy:
    def __init__(self) -> None:
        self._nodes = 0

    def node(self, value: object, *, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise MetadataTooLargeError
        deeper = depth + 1
        match value:
            case dict():
                return {
                    normalise_text(str(k)): self.node(v, depth=deeper) for k, v in value.items()
                }
            case list() | tuple() | set() | frozenset():
                return [self.node(item, depth=deeper) for item in value]
            case _:
                return _scalar(value)


def _scalar(value: object) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return value if value.bit_length() <= _MAX_BITS else None
        case float():
            return value if math.isfinite(value) else None
        case datetime.date() | datetime.time():
            return value.isoformat()
        case _:
            return normalise_text(str(value))


def readable_title(name: str) -> str:
    """A title from a file name: `reports/side-effects_2024.md` gives `Side effects 2024`."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    words = " ".join(normalise_text(stem).replace("_", " ").replace("-", " ").split())
    return words[:1].upper() + words[1:] if words else "Untitled"


def language_code(value: object) -> str:
    """`en-GB`, `en_US` and `EN` give `en`; anything that is no language tag gives the empty."""
    tag = str(value or "").strip().replace("_", "-").split("-")[0].lower()
    return tag if tag.isascii() and tag.isalpha() and 2 <= len(tag) <= 3 else ""
