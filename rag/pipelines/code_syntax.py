"""Whether code in the fenced blocks of a Markdown text can be parsed, by its language. Pure."""

import ast
import json
import re
import warnings
from collections.abc import Callable
from functools import partial

import sqlglot
from sqlglot.errors import SqlglotError
from tree_sitter import Parser

from common.text import truncated
from reading.parsers.code import grammar_of

#: Of one block; a longer one is not looked at.
MAX_CHARACTERS = 100_000
_SHOWN_CHARACTERS = 120
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]*)[^\n`]*\n"
    r"(?P<code>.*?)(?:^(?P=fence)[ \t]*$|\Z)",
    re.M | re.S,
)
_NAMES = {"py": "python", "python3": "python", "js": "javascript", "jsx": "javascript"}
_NAMES |= {"node": "javascript", "ts": "typescript", "golang": "go", "rs": "rust"}
_NAMES |= {"postgresql": "sql", "postgres": "sql", "mysql": "sql", "sqlite": "sql", "tsql": "sql"}
#: Their grammars take everything that is valid; those of C or Kotlin stumble over some of it.
_GRAMMARS = ("javascript", "typescript", "tsx", "java", "go", "rust")
#: A statement is SQL that one of them reads.
_DIALECTS = ("", "postgres", "mysql", "sqlite", "tsql", "oracle", "bigquery", "snowflake")


def syntax_faults(text: str, *, language: str = "") -> list[str]:
    """The first fault of each fenced block in Python, JSON, SQL, JavaScript, TypeScript, Java, Go
    or Rust. `language` is that of blocks that name none. Others, and text outside of blocks, are
    passed over."""
    faults = []
    for number, block in enumerate(_FENCE.finditer(text), start=1):
        name = (block["language"] or language).lower()
        name = _NAMES.get(name, name)
        code = block["code"]
        if name not in _PARSERS or len(code) > MAX_CHARACTERS:
            continue
        if found := _PARSERS[name](code):
            line, reason = found
            reason = truncated(reason, _SHOWN_CHARACTERS)
            faults.append(f"Code block {number} ({name}), line {line}: {reason}")
    return faults


def _python(code: str) -> tuple[int, str] | None:
    """Code that only the grammar can parse counts as newer Python."""
    if code.lstrip().startswith(">>>"):
        return None  # a session, with its output
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        broken = _by_grammar("python", code)
        if isinstance(error, IndentationError) or broken:
            line = getattr(error, "lineno", None) or (broken[0] if broken else 1)
            return line, f"{getattr(error, 'msg', '') or error}"
    return None


def _json(code: str) -> tuple[int, str] | None:
    try:
        json.loads(code)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    except RecursionError:
        return 1, "it is nested too deeply"
    return None


def _sql(code: str) -> tuple[int, str] | None:
    first: SqlglotError | None = None
    for dialect in _DIALECTS:
        try:
            sqlglot.parse(code, read=dialect or None)
        except SqlglotError as error:
            first = first or error
        except RecursionError:
            return 1, "it is nested too deeply"
        else:
            return None
    (found, *_) = getattr(first, "errors", None) or [{}]
    return found.get("line") or 1, str(found.get("description") or first)


def _by_grammar(language: str, code: str) -> tuple[int, str] | None:
    """The first error, or missing token, in the syntax tree."""
    waiting = [Parser(grammar_of(language)).parse(code.encode()).root_node]
    while waiting:
        node = waiting.pop()
        line = node.start_point.row
        if node.is_error:
            return line + 1, f"near “{code.splitlines()[line].strip()}”"
        if node.is_missing:
            return line + 1, f"“{node.type}” is missing"
        if node.has_error:
            waiting += reversed(node.children)
    return None


_PARSERS: dict[str, Callable[[str], tuple[int, str] | None]] = {
    "python": _python,
    "json": _json,
    "sql": _sql,
    **{language: partial(_by_grammar, language) for language in _GRAMMARS},
}
