"""The values of a JSON text one by one, with the way to each, in memory that does not grow."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from documents.parsers.base import ParseError
from documents.parsers.normalise import normalise_text

MAX_DEPTH = 200

Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t\n]*+")
_TOKEN = re.compile(
    r"""
    [ \t\n]*+
    (?: (?P<mark>[{}\[\],:])
    | "(?P<string>(?:[^"\\]|\\.)*+)"
    | (?P<bare>-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null|NaN|-?Infinity)(?![\w.+-])
    )
    """,
    re.X | re.S,
)

#: The usual way from a member of an object to the next, in one step.
_NEXT_MEMBER = re.compile(r'[ \t\n]*+,[ \t\n]*+"(?P<string>(?:[^"\\]|\\.)*+)"[ \t\n]*+:', re.S)


class Leaf(NamedTuple):
    """A value that holds no others, as text: numbers to the last digit, `{}` and `[]` if empty.

    `record` counts the top-level values, or the elements of the top-level list; `path` leads to
    the leaf from there: names of an object, which may come twice, and indices of lists.
    """

    record: int
    path: Path
    text: str
    is_string: bool


def leaves(text: str) -> Iterator[Leaf]:
    """All leaves of one JSON value, or of several in a row as JSON Lines has them.

    Raises `ParseError` with line and column. NaN, Infinity and line ends in strings pass.
    """
    return _Reader(text).leaves()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token = self._at

    def leaves(self) -> Iterator[Leaf]:
        record = 0
        while self._peek():
            # The way from the top: the names and indices of what is open, and which of both.
            path: list[str | int] = []
            lists = self._peek() == "["
            first = record
            while True:
                value = self._value(path)
                if value is not None:
                    if lists and path:
                        record = first + int(path[0])
                    yield Leaf(record, tuple(path[1:] if lists else path), *value)
                    if not self._next(path):
                        break
            record += 1

    def _value(self, path: list[str | int]) -> tuple[str, bool] | None:
        """The leaf that is here; None where an object or list was opened."""
        token = self._read("a value")
        if (string := token["string"]) is not None:
            return self._string(string), True
        if (bare := token["bare"]) is not None:
            return bare, False
        closing = {"{": "}", "[": "]"}.get(token["mark"])
        if closing is None:
            raise self._error("a value is missing")
        if self._peek() == closing:
            self._read(closing)
            return token["mark"] + closing, False
        if len(path) >= MAX_DEPTH:
            raise self._error(f"it is nested deeper than {MAX_DEPTH} levels")
        path.append(self._name() if closing == "}" else 0)
        return None

    def _next(self, path: list[str | int]) -> bool:
        """Moves `path` to the value behind; False where all is closed."""
        while path:
            is_list = isinstance(path[-1], int)
            if not is_list and (member := _NEXT_MEMBER.match(self._text, self._at)):
                self._at, self._token = member.end(), member.start("string")
                path[-1] = self._string(member["string"])
                return True
            closing = "]" if is_list else "}"
            mark = self._read(f"',' or '{closing}'")["mark"]
            if mark == ",":
                last = path[-1]
                path[-1] = last + 1 if isinstance(last, int) else self._name()
                return True
            if mark != closing:
                raise self._error(f"',' or '{closing}' is missing")
            path.pop()
        return False

    def _name(self) -> str:
        name = self._read("a name in quotes")["string"]
        if name is None:
            raise self._error("a name in quotes is missing")
        decoded = self._string(name)
        if self._read("':'")["mark"] != ":":
            raise self._error("':' is missing")
        return decoded

    def _string(self, source: str) -> str:
        if "\\" not in source:
            return source
        try:
            return normalise_text(json.loads(f'"{source}"', strict=False))
        except json.JSONDecodeError:
            raise self._error("a string has an escape that JSON does not know") from None

    def _peek(self) -> str:
        """The next character that is no space; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _read(self, wanted: str) -> re.Match[str]:
        token = _TOKEN.match(self._text, self._at)
        if token is None:
            following = self._peek()
            self._token = self._at if following else len(self._text.rstrip())
            is_cut = not following or (following == '"' and self._text.find('"', self._at + 1) < 0)
            raise self._error(f"{wanted} is missing", code="truncated" if is_cut else "malformed")
        self._at = token.end()
        self._token = token.start(token.lastindex or 0)
        return token

    def _error(self, problem: str, *, code: str = "malformed") -> ParseError:
        line = self._text.count("\n", 0, self._token) + 1
        column = self._token - self._text.rfind("\n", 0, self._token)
        place = f"(line {line}, column {column})"
        if code == "truncated":
            return ParseError(
                "truncated", f"Not valid JSON, it ends too early: {problem} {place}. Save it again."
            )
        return ParseError("malformed", f"Not valid JSON: {problem} {place}. Mend it there.")
