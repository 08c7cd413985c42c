"""JSON and JSON Lines as readable text: `path: value` lines, record by record, with titles as
headings. Begin with `parse_json`; `JsonLeafReader` tokenises."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from reading.parsers.normalise import (
    decode_nonblank,
    normalise_text,
    readable_title,
    without_invisible,
)

MAX_DEPTH = 200

JsonPath = tuple[str | int, ...]

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


class JsonLeaf(NamedTuple):
    """A value without children, as text: numbers with all digits, `{}` and `[]` if empty.

    `record` counts the top-level values, or the elements of the top-level list; `path` leads from
    there to the leaf: object names, which may repeat, and list indices.
    """

    record: int
    path: JsonPath
    text: str
    is_string: bool


class JsonLeafReader:
    """All leaves of one JSON value, or of several in a row as in JSON Lines, in constant memory.

    Raises `ParseError` with line and column. NaN, Infinity and line ends in strings are accepted.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token = self._at

    def leaves(self) -> Iterator[JsonLeaf]:
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
                    yield JsonLeaf(record, tuple(path[1:] if lists else path), *value)
                    if not self._next(path):
                        break
            record += 1

    def _value(self, path: list[str | int]) -> tuple[str, bool] | None:
        """The leaf at the current position; None if an object or list was opened."""
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
        """Move `path` to the next value; False at the end."""
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
            return without_invisible(normalise_text(json.loads(f'"{source}"', strict=False)))
        except json.JSONDecodeError:
            raise self._error("a string has an unknown escape") from None

    def _peek(self) -> str:
        """The next non-space character; empty at the end."""
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
        if code == "truncated":
            return ParseError(
                "truncated",
                f"The JSON ends too early: {problem} (line {line}, column {column}). Save it"
                " again.",
            )
        return ParseError(
            "malformed",
            f"Not valid JSON: {problem} (line {line}, column {column}). Correct it there.",
        )


#: Short values of a list share lines of about this length, each of which begins with the path.
LINE_CHARACTERS = 400
_MAX_SHORT_VALUE = 80
_MAX_TITLE = 300
#: A longer record is written in pieces, so that a file that is one record fills no memory twice.
_MAX_LEAVES = 10_000
_TITLE_NAMES = ("title", "headline", "subject", "name")
_TEXT_NAMES = ("text", "content", "body", "page_content", "passage", "abstract")
_WHITESPACE = re.compile(r"\s+")


def group_records(leaves: Iterable[JsonLeaf]) -> Iterator[tuple[int, str, str]]:
    """Number, title and text of each record, or of each piece of a long one, in order.

    The text begins with the title and the record's own text; the other values follow.
    """
    # Plain numbers of a list stay together instead of being records.
    by_record = groupby(
        leaves, key=lambda leaf: leaf.record if leaf.path or leaf.is_string else None
    )
    for _, group in by_record:
        while piece := list(islice(group, _MAX_LEAVES)):
            number = piece[0].record
            text = _find_string(piece, _TEXT_NAMES)
            title = _find_string(piece, _TITLE_NAMES, longest=_MAX_TITLE)
            named = title.text.strip() if title else ""
            if text is None:
                title = None  # it stays among the other values
            rest = "\n".join(
                _record_lines(leaf for leaf in piece if leaf is not text and leaf is not title)
            )
            parts = [title.text if title else "", text.text if text else "", rest]
            yield number, named, "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _find_string(
    leaves: Sequence[JsonLeaf], names: Sequence[str], *, longest: int = 0
) -> JsonLeaf | None:
    """The record's own string under one of the names; the first name wins."""
    found: dict[str, JsonLeaf] = {}
    for leaf in leaves:
        if len(leaf.path) == 1 and leaf.is_string and leaf.text.strip():
            fits = not longest or (len(leaf.text) <= longest and "\n" not in leaf.text)
            if fits:
                found.setdefault(str(leaf.path[0]).lower(), leaf)
    return next((found[name] for name in names if name in found), None)


def _record_lines(leaves: Iterable[JsonLeaf]) -> Iterator[str]:
    """`a.b[0]: value`; short values of a list on shared lines, `a.b: 1, 2, 3`."""

    def short_list_path(leaf: JsonLeaf) -> JsonPath | None:
        """Path of the list in which the leaf is a short element."""
        is_element = isinstance(leaf.path[-1], int) if leaf.path else not leaf.is_string
        is_short = len(leaf.text) <= _MAX_SHORT_VALUE and "\n" not in leaf.text
        return leaf.path[:-1] if is_element and is_short else None

    for owner, group in groupby(leaves, key=short_list_path):
        if owner is None:
            yield from (_value_line(_path_text(leaf.path), leaf.text) for leaf in group)
        else:
            path = _path_text(owner)
            values = [leaf.text for leaf in group]
            line: list[str] = []
            length = 0
            for value in values:
                if line and length + len(value) > LINE_CHARACTERS:
                    yield _value_line(path, ", ".join(line))
                    line, length = [], 0
                line.append(value)
                length += len(value) + 2
            yield _value_line(path, ", ".join(line))


def _value_line(path: str, value: str) -> str:
    gap = "\n" if "\n" in value else " "
    return f"{path}:{gap}{value}" if path else value


def _path_text(path: JsonPath) -> str:
    parts = (
        f"[{part}]" if isinstance(part, int) else f".{_WHITESPACE.sub(' ', part)}" for part in path
    )
    return "".join(parts).removeprefix(".")


#: Beyond that a record is a row of data, and naming its title once is enough.
MAX_HEADINGS = 20_000
_RECORD_SEPARATOR = "\n\n"


_LINE_SUFFIXES = (".jsonl", ".ndjson")


def parse_json(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """One value, a list of records, or a record on each line."""
    parts: list[str] = []
    headings: list[Heading] = []
    length = records = 0
    last = -1
    for number, title, content in group_records(JsonLeafReader(decode_nonblank(data)).leaves()):
        if not content:
            continue
        offset = length + len(_RECORD_SEPARATOR) * bool(parts)
        if number != last:
            records += 1
            last = number
            # Without title only to end the section of the previous title.
            if title or headings:
                headings.append(Heading(offset, 1, title or f"Record {number + 1}"))
        parts.append(content)
        length = offset + len(content)
        limits.check_characters(length, "The JSON, written out with its names,")
    text = _RECORD_SEPARATOR.join(parts)
    if not text:
        raise ParseError(
            "no_text", "The JSON contains only empty strings. Check that it was saved."
        )
    if text in {"[]", "{}"}:
        raise ParseError("empty", f"The JSON is empty: {text}. Check that it was saved.")
    # A single record's title is the document's.
    only_title = headings[0].title if records == 1 and headings else ""
    is_short = records > 1 and len(headings) <= MAX_HEADINGS
    is_lines = name.lower().endswith(_LINE_SUFFIXES)
    return ParsedDocument(
        text=text,
        media_type="application/x-ndjson" if is_lines else "application/json",
        title=only_title or readable_title(name),
        headings=tuple(headings) if is_short else (),
        metadata={"records": records},
    )
