"""Conditions of edges and gates: a small expression language without calls or loops.
Begin with `parse_condition`.

    condition  = all ("or" all)*            all        = part ("and" part)*
    part       = "not" part | "(" condition ")" | value [operator value]
    operator   = == != < <= > >= contains startswith endswith
    value      = "text" | 'text' | number | true | false | null | name(.field | [number])*

Names are those of `NAMES`. Fields after `output` read it as JSON. Comparing values that cannot be
compared is false, never an error.
"""

import json
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.translation import gettext
from rag.pipelines.definition import MAX_CONDITION_CHARACTERS

#: Longest output, in characters, that is parsed as JSON.
_MAX_JSON_CHARACTERS = 400_000


def strip_text(value: Any) -> Any:
    """Text without surrounding white space, which models add at random."""
    return value.strip() if isinstance(value, str) else value


def json_at_path(text: Any, path: list[str | int]) -> Any:
    """The value at a path in an output that is JSON, perhaps in a Markdown code fence; None if
    there is none."""
    if not isinstance(text, str) or len(text) > _MAX_JSON_CHARACTERS:
        return None
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].removeprefix("json").strip()
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        left, right = _number(left), _number(right)
        return left is not None and right is not None and compare(left, right)

    return holds


def _number(value: Any) -> float | None:
    """A number, also one written as text, as in a model's reply."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text_comparison(compare: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    """Compare ignoring case; for a list, whether any of its texts is equal."""

    def holds(left: Any, right: Any) -> bool:
        if isinstance(left, list):
            return any(_equal(_casefolded(each), _casefolded(right)) for each in left)
        if not isinstance(left, str) or not isinstance(right, str):
            return False
        return compare(left.casefold(), right.casefold())

    return holds


def _casefolded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "contains": _text_comparison(operator.contains),
    "startswith": _text_comparison(str.startswith),
    "endswith": _text_comparison(str.endswith),
}


NAMES = {
    "output": "what the node handed on, as text",
    "question": "the question of the run",
    "iteration": "which run of the node it was, from 1",
    "score": "what an evaluator gave, from 0 to 1",
    "passed": "whether a gate opened, or an evaluator was content",
    "is_computed": "whether tables, or a query that was run, gave an answer",
    "value": "the number, text or date that they gave",
}
#: Node types that have these names; all have the other names.
NODE_TYPES_WITH_NAME = {
    "score": ("evaluator",),
    "passed": ("evaluator", "gate"),
    "is_computed": ("tables", "sql"),
    "value": ("tables", "sql"),
}

MAX_DEPTH = 20

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?\d{1,15}(?:\.\d{1,15})?)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\.|\[|\])
    )""",
    re.VERBOSE,
)
_LITERALS = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t"}

Facts = Mapping[str, Any]
Condition = Callable[[Facts], Any]


class ConditionError(ValueError):
    """Not a valid condition. Says where, and what would be valid."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_condition(text: str) -> tuple[Condition, frozenset[str]]:
    """The condition, as a function of values by the names of `NAMES`, where missing ones are null,
    and the names it refers to. Raises ConditionError."""
    if len(text) > MAX_CONDITION_CHARACTERS:
        raise ConditionError(
            gettext("A condition has at most {limit} characters. Split it over gates.").format(
                limit=MAX_CONDITION_CHARACTERS
            )
        )
    reader = _ConditionParser(list(_tokens(text)))
    holds = reader.parse_all()
    return lambda facts: bool(holds(facts)), frozenset(reader.names)


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = len(text) - len(text[at:].lstrip())
            raise ConditionError(
                gettext(
                    "At character {position}: “{text}” is not valid. Put texts in"
                    ' quotes, as in output contains "yes".'
                ).format(position=start + 1, text=text[start : start + 10])
            )
        kind = str(match.lastgroup)
        yield _Token(kind, match[kind], match.start(kind))
        at = match.end()


class _ConditionParser:
    """Recursive descent over the tokens; `names` collects those encountered."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self.names: set[str] = set()

    def parse_all(self) -> Condition:
        found = self._any()
        if token := self._peek():
            raise ConditionError(
                gettext(
                    "At character {position}: “{text}” is not expected. Join conditions by and, or."
                ).format(position=token.at + 1, text=token.text)
            )
        return found

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda facts: any(part(facts) for part in parts)

    def _all(self) -> Condition:
        parts = [self._part()]
        while self._take("and"):
            parts.append(self._part())
        return parts[0] if len(parts) == 1 else lambda facts: all(part(facts) for part in parts)

    def _part(self) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ConditionError(
                gettext(
                    "The condition is nested more than {limit} levels deep. Split it over"
                    " several gates."
                ).format(limit=MAX_DEPTH)
            )
        try:
            if self._take("not"):
                part = self._part()
                return lambda facts: not part(facts)
            if self._take("("):
                inner = self._any()
                self._expect(")")
                return inner
            left = self._value()
            token = self._peek()
            has_operator = token is not None and token.kind in ("sign", "word")
            compare = OPERATORS.get(self._tokens[self._next].text) if has_operator else None
            if compare is None:
                return lambda facts: strip_text(left(facts))
            self._next += 1
            right = self._value()
            return lambda facts: compare(strip_text(left(facts)), strip_text(right(facts)))
        finally:
            self._depth -= 1

    def _value(self) -> Condition:
        token = self._peek()
        if token is None:
            raise ConditionError(gettext("The condition is incomplete: a value is missing."))
        self._next += 1
        if token.kind == "text":
            return _constant(
                re.sub(
                    r"\\(.)",
                    lambda match: _ESCAPES.get(match[1], match[1]),
                    token.text[1:-1],
                    flags=re.S,
                )
            )
        if token.kind == "number":
            return _constant(float(token.text))
        if token.text in _LITERALS:
            return _constant(_LITERALS[token.text])
        if token.kind == "word" and token.text in NAMES:
            self.names.add(token.text)
            return self._fields(token.text)
        raise ConditionError(
            gettext(
                "At character {position}: “{text}” is not a value. Use {names}, or a"
                " text in quotes."
            ).format(position=token.at + 1, text=token.text, names=", ".join(NAMES))
        )

    def _fields(self, name: str) -> Condition:
        path: list[str | int] = []
        while True:
            if self._take("."):
                path.append(self._expect_kind("word", gettext(gettext("the name of a field"))))
            elif self._take("["):
                index = self._expect_kind("number", gettext(gettext("a position such as 0")))
                if not index.isdigit():
                    raise ConditionError(
                        gettext("[{index}] is not a position. Positions count from 0.").format(
                            index=index
                        )
                    )
                path.append(int(index))
                self._expect("]")
            else:
                break
        if not path:
            return lambda facts: facts.get(name)
        if name != "output":
            raise ConditionError(
                gettext("Only output has fields; {name} has none.").format(name=name)
            )
        return lambda facts: json_at_path(facts.get(name), path)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _take(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.kind == "text" or token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            token = self._peek()
            raise ConditionError(
                gettext("At character {position}: “{text}” is missing.").format(
                    position=token.at + 1, text=text
                )
                if token
                else gettext("The condition is incomplete: “{text}” is missing.").format(text=text)
            )

    def _expect_kind(self, kind: str, what: str) -> str:
        token = self._peek()
        if token is None or token.kind != kind:
            raise ConditionError(
                gettext("{what} is missing after “{text}”.").format(
                    what=what, text=self._tokens[self._next - 1].text
                )
            )
        self._next += 1
        return token.text


def _constant(value: Any) -> Condition:
    return lambda facts: value
