"""Statements of a SQL script, and the table or other object that each of them defines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Whatever opens a string, a quoted name or a comment runs to its end, or to that of the text.
_TOKEN = re.compile(
    r"""
      '(?:[^'\\]|\\.|'')*+(?:'|\Z)
    | "(?:[^"]|"")*+(?:"|\Z)
    | `[^`]*+(?:`|\Z)
    | \$(?P<tag>(?:[A-Za-z_]\w{0,60})?)\$.*?(?:\$(?P=tag)\$|\Z)
    | --[^\n]*+
    | ^[ \t]*+\#[^\n]*+
    | /\*.*?(?:\*/|\Z)
    | (?P<data>^COPY\b[^;]{0,2000}?\bFROM\s+stdin\b[^;]{0,200};.*?(?:^\\\.[ \t]*$|\Z))
    | (?P<open>\()
    | (?P<close>\))
    | (?P<end>;[ \t]*+(?:--[^\n]*+)?(?:\s*+^GO[ \t]*$)?)
    | ^(?P<go>GO)[ \t]*$
    | ^(?P<begin>CREATE)\b
    """,
    re.X | re.S | re.M | re.I,
)
_COMMENTS = re.compile(r"(?:\s++|--[^\n]*+|/\*.*?(?:\*/|\Z)|^[ \t]*+\#[^\n]*+)*+", re.S | re.M)

_NAME_PART = r"""(?:"(?:[^"]|"")+"|`[^`]+`|\[[^\]\n]+\]|[\w$@\#]+)"""
_NAME = rf"(?P<name>{_NAME_PART}(?:\s*\.\s*{_NAME_PART}){{0,3}})"
_IF_EXISTS = r"(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(?:ONLY\s+)?"
_DEFINES = re.compile(
    rf"""
      CREATE\s+(?:OR\s+(?:REPLACE|ALTER)\s+)?(?:\w+(?:=\S+)?\s+){{0,4}}?
          (?P<kind>TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|TYPE|SEQUENCE|SCHEMA|DOMAIN)\s+
          {_IF_EXISTS}{_NAME}
    | CREATE\s+(?:\w+\s+){{0,3}}?(?P<index>INDEX)\s[^;]{{0,300}}?\bON\s+
          {_IF_EXISTS}(?P<indexed>{_NAME_PART}(?:\s*\.\s*{_NAME_PART}){{0,3}})
    | ALTER\s+(?P<altered>TABLE|VIEW)\s+
          {_IF_EXISTS}(?P<subject>{_NAME_PART}(?:\s*\.\s*{_NAME_PART}){{0,3}})
    | COMMENT\s+ON\s+(?P<commented>TABLE|VIEW|COLUMN)\s+
          (?P<described>{_NAME_PART}(?:\s*\.\s*{_NAME_PART}){{0,3}})
    """,
    re.X | re.I,
)
_OTHER_DDL = re.compile(
    r"(?:CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|SET|USE|BEGIN|COMMIT|PRAGMA|DELIMITER)\b", re.I
)
_QUOTES = str.maketrans("", "", '"`[]')


@dataclass(frozen=True, slots=True)
class Statement:
    """`text[start:end]`, with the comments before it. `kind` is such as "table", empty for one
    that defines nothing; `name` is the table or object, with its schema, without quotes."""

    start: int
    end: int
    kind: str
    name: str
    is_ddl: bool


def split_statements(text: str) -> Iterator[Statement]:
    """Statements in order, in linear time; only comments and white space lie between them."""
    for start, end in _statement_extents(text):
        begin = _COMMENTS.match(text, start, end)
        head = begin.end() if begin else start
        if head < end:
            kind = name = ""
            if match := _DEFINES.match(text, head, end):
                if match["kind"]:
                    kind, name = match["kind"].lower(), match["name"]
                elif match["indexed"]:
                    kind, name = "index", match["indexed"]
                elif match["subject"]:
                    kind, name = "alter", match["subject"]
                else:
                    kind, name = "comment", match["described"]
                name = ".".join(part.strip() for part in name.translate(_QUOTES).split("."))
                if kind == "comment" and match["commented"].upper() == "COLUMN":
                    name = name.rpartition(".")[0]
            is_ddl = bool(kind) or _OTHER_DDL.match(text, head, end) is not None
            yield Statement(start, end, kind, name, is_ddl)


def first_parenthesis_end(sql: str) -> int | None:
    """Offset after the first closed pair of parentheses: the columns of a CREATE TABLE."""
    depth = 0
    for token in _TOKEN.finditer(sql):
        if token.lastgroup == "open":
            depth += 1
        elif token.lastgroup == "close":
            depth -= 1
            if depth <= 0:
                return token.end()
    return None


def _statement_extents(text: str) -> Iterator[tuple[int, int]]:
    start, depth = 0, 0
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth = max(0, depth - 1)
            case "end" | "go" | "data":
                yield _trim_extent(text, start, token.end())
                start, depth = token.end(), 0
            case "begin" if (
                depth == 0
                and (comments := _COMMENTS.match(text, start, token.start()))
                and comments.end() < token.start()
            ):
                yield _trim_extent(text, start, token.start())
                start = token.start()
    yield _trim_extent(text, start, len(text))


def _trim_extent(text: str, start: int, end: int) -> tuple[int, int]:
    shown = text[start:end]
    return start + len(shown) - len(shown.lstrip()), end - (len(shown) - len(shown.rstrip()))
