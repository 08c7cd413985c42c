"""A graph as JSON Lines: `{"node": …}` or `{"edge": …}` a line."""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal, Self, TypeVar

from common import bounded_json
from common.errors import InvalidInput
from common.unseen import written_out
from graph.inputs import EdgeInput, NodeInput

Kind = Literal["node", "edge"]
T = TypeVar("T", NodeInput, EdgeInput)

#: A node whose properties are as large as may be, with every character escaped.
MAX_LINE_BYTES = 16 * 1024 * 1024
_OTHER = {"node": b'{"edge"', "edge": b'{"node"'}
_SHOWN_NAME = 100
#: How services name an item, and what of it.
_PLACE = re.compile(r"(node|edge)s[.\[]([0-9]+)\]?(?:\.(.+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """Which item of a batch, from 0, and what of it."""

    kind: str
    position: int
    name: str = ""

    @classmethod
    def of(cls, error: InvalidInput) -> Self | None:
        """What a service says an error is about; None: no single item."""
        found = _PLACE.fullmatch(error.field)
        return cls(found[1], int(found[2]), found[3] or "") if found else None

    def __str__(self) -> str:
        return f"{self.kind}s.{self.position}" + (f".{self.name}" if self.name else "")


class Lines:
    """Nodes and edges of a file, which `read` opens: read twice, so that none is held in memory
    and nodes come before the edges that hang on them.

    Iterating raises InvalidInput that names the first line which cannot be.
    """

    def __init__(self, read: Callable[[], Iterable[bytes]]) -> None:
        self._read = read
        self._numbers: dict[str, array[int]] = {}

    def nodes(self) -> Iterator[NodeInput]:
        """All nodes."""
        return self._all("node", NodeInput)

    def edges(self) -> Iterator[EdgeInput]:
        """All edges."""
        return self._all("edge", EdgeInput)

    def by_line(self, error: InvalidInput) -> InvalidInput:
        """The same error with the line instead of the item's place, if it is about an item."""
        place = Place.of(error)
        if place is None:
            return error
        number = self._numbers[place.kind][place.position]
        _, _, problem = str(error).partition(": ")
        return _of_line(number, InvalidInput(problem, field=place.name), code=error.code)

    def _all(self, kind: Kind, of: type[T]) -> Iterator[T]:
        numbers = self._numbers[kind] = array("Q")
        for number, line in enumerate(self._read(), 1):
            stripped = line.strip()
            # What is plainly of the other kind has its own turn.
            if not stripped or stripped.startswith(_OTHER[kind]):
                continue
            try:
                found, value = _parsed(line, number)
                if found != kind:
                    continue
                item = item_of(value, of)
            except InvalidInput as error:
                raise _of_line(number, error) from error
            numbers.append(number)
            yield item


def item_of(value: Any, of: type[T]) -> T:
    """The node or edge that an object of JSON describes; raises InvalidInput.

    Names are checked here, values when they are written.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("A node or edge is a JSON object.")
    known = {each.name: each.default is MISSING for each in fields(of)}
    for name in value:
        if name not in known:
            raise InvalidInput(
                f"The name “{_shown(name)}” is not known here. Known are: {', '.join(known)}."
            )
    for name, is_needed in known.items():
        if is_needed and value.get(name) is None:
            raise InvalidInput(f"“{name}” is needed.", field=name)
    given = {name: part for name, part in value.items() if part is not None}
    return of(**given)


def _parsed(line: bytes, number: int) -> tuple[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise InvalidInput(f"A line may have {MAX_LINE_BYTES:,} bytes.")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput("This is not UTF-8.") from error
    value = bounded_json.load(text)
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind in _OTHER and isinstance(inner, dict):
            return kind, inner
    raise InvalidInput('A line is {"node": {…}} or {"edge": {…}}.')


def _of_line(number: int, error: InvalidInput, *, code: str = InvalidInput.code) -> InvalidInput:
    place = f"{error.field}: " if error.field else ""
    named = InvalidInput(f"Line {number:,}: {place}{error}", field=f"line {number}")
    named.code = code
    return named


def _shown(name: str) -> str:
    return written_out(name[:_SHOWN_NAME], lambda letter: letter.encode("unicode_escape").decode())
