"""Reading the fields of a JSON object: what is wrong is noted with its place, and a default stands
in for it so that the rest is looked at, too."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rag.pipelines.faults import Faults
from rag.pipelines.limits import MAX_ID_CHARACTERS

_NODE_ID = re.compile(rf"[A-Za-z][A-Za-z0-9_-]{{0,{MAX_ID_CHARACTERS - 1}}}")
_SLUG = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{MAX_ID_CHARACTERS - 1}}}")
NODE_ID = f"a letter, then letters, digits, _ and -, at most {MAX_ID_CHARACTERS} together"
SLUG = f"small letters, digits and -, at most {MAX_ID_CHARACTERS} together"


def is_node_id(value: Any) -> bool:
    """Whether a node may be called so."""
    return isinstance(value, str) and _NODE_ID.fullmatch(value) is not None


def is_slug(value: Any) -> bool:
    """Whether a pipeline may be called so."""
    return isinstance(value, str) and _SLUG.fullmatch(value) is not None


class Reader:
    """One object of the JSON, at `path`."""

    def __init__(
        self,
        value: Any,
        path: str,
        faults: Faults,
        *,
        known: Sequence[str],
        cure: Callable[[str], str] = lambda name: "",
    ) -> None:
        """`cure` says of a field that is not known where it belongs, "" for nowhere."""
        self._path = path
        self._faults = faults
        self._values: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            faults.add(path, f"This must be an object with {_listed(known)}.")
        for name in self._values:
            if name not in known:
                told = f"This field is not known here. Known are: {_listed(known)}. {cure(name)}"
                self.fault(name, told.rstrip())

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self._path}.{name}" if self._path else name

    def fault(self, name: str, message: str) -> None:
        """Note what is wrong with a field."""
        self._faults.add(self.at(name), message)

    def has(self, name: str) -> bool:
        """Whether it is given; null is not."""
        return self._values.get(name) is not None

    def raw(self, name: str) -> Any:
        """As it was given."""
        return self._values.get(name)

    def text(self, name: str, *, most: int, default: str = "", required: bool = False) -> str:
        """A string of at most so many characters."""
        value = self._values.get(name)
        if value is None:
            value = default
        if not isinstance(value, str):
            self.fault(name, "This must be a text.")
            return default
        if required and not value.strip():
            self.fault(name, "This is missing.")
        if len(value) > most:
            self.fault(name, f"At most {most:,} characters, and here are {len(value):,}.")
        return value

    def choice(self, name: str, choices: Sequence[str], *, default: str) -> str:
        """One of a few."""
        value = self._values.get(name)
        if value is None:
            return default
        if value not in choices:
            self.fault(name, f"“{_shown(value)}” is none of {_listed(choices)}.")
            return default
        return str(value)

    def number(self, name: str, low: float, high: float, *, default: Any) -> Any:
        """A number from `low` to `high`."""
        value = self._values.get(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:
            self.fault(name, f"This must be a number from {low:g} to {high:g}.")
            return default
        return float(value)

    def integer(self, name: str, low: int, high: int, *, default: Any) -> Any:
        """A whole number from `low` to `high`."""
        value = self._values.get(name)
        if value is None:
            return default
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not low <= value <= high:
            self.fault(name, f"This must be a whole number from {low} to {high}.")
            return default
        return value

    def items(self, name: str, *, most: int) -> list[Any]:
        """The entries of a list."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(name, "This must be a list.")
            return []
        if len(value) > most:
            self.fault(name, f"At most {most}, and here are {len(value)}.")
        return value[:most]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
