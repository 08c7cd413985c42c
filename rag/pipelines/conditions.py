"""Conditions of edges and gates: a small language that computes nothing, calls nothing and ends.

    condition  = all ("or" all)*            all        = part ("and" part)*
    part       = "not" part | "(" condition ")" | value [operator value]
    operator   = == != < <= > >= contains startswith endswith
    value      = "text" | 'text' | number | true | false | null | name(.field | [number])*

Names are those of `NAMES`. Behind `output` fields read it as JSON. Comparing what cannot be
compared is false, never an error.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rag.pipelines.limits import MAX_CONDITION_CHARACTERS
from rag.pipelines.operators import OPERATORS, field, plain

NAMES = {
    "output": "what the node handed on, as text",
    "question": "the question of the run",
    "iteration": "which run of the node it was, from 1",
    "score": "what an evaluator gave, from 0 to 1",
    "passed": "whether a gate opened, or an evaluator was content",
}
#: Which node types know these names; the others know them all.
KNOWN_OF = {"score": ("evaluator",), "passed": ("evaluator", "gate")}

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
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t"}

Facts = Mapping[str, Any]
Condition = Callable[[Facts], Any]


class ConditionError(ValueError):
    """Not a condition. Says where, and what would be one."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """A condition that was understood. `names` are those it speaks of."""

    text: str
    names: frozenset[str]
    _holds: Condition

    def holds(self, facts: Facts) -> bool:
        """Whether it is so. `facts` are by the names of `NAMES`; what is missing is null."""
        return bool(self._holds(facts))


def parse(text: str) -> Parsed:
    """Raises ConditionError."""
    if len(text) > MAX_CONDITION_CHARACTERS:
        raise ConditionError(
            f"A condition has at most {MAX_CONDITION_CHARACTERS} characters. Split it over gates."
        )
    reader = _Reader(list(_tokens(text)))
    holds = reader.whole()
    return Parsed(text, frozenset(reader.names), holds)


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            start = len(text) - len(text[at:].lstrip())
            raise ConditionError(
                f"At character {start + 1}: “{text[start : start + 10]}” cannot be read. Texts"
                ' stand in quotes, as in output contains "yes".'
            )
        kind = str(match.lastgroup)
        yield _Token(kind, match[kind], match.start(kind))
        at = match.end()


class _Reader:
    """Recursive descent over the tokens; `names` are those met on the way."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self.names: set[str] = set()

    def whole(self) -> Condition:
        found = self._any()
        if token := self._peek():
            raise ConditionError(
                f"At character {token.at + 1}: “{token.text}” is not expected. Join conditions by"
                " and, or."
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
            raise ConditionError(f"It is nested more than {MAX_DEPTH} deep. Split it over gates.")
        try:
            if self._take("not"):
                part = self._part()
                return lambda facts: not part(facts)
            if self._take("("):
                inner = self._any()
                self._expect(")")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Condition:
        left = self._value()
        token = self._peek()
        compare = OPERATORS.get(token.text) if token and token.kind in ("sign", "word") else None
        if compare is None:
            return lambda facts: plain(left(facts))
        self._next += 1
        right = self._value()
        return lambda facts: compare(plain(left(facts)), plain(right(facts)))

    def _value(self) -> Condition:
        token = self._peek()
        if token is None:
            raise ConditionError("It ends too early: a value is missing.")
        self._next += 1
        if token.kind == "text":
            return _constant(_unquoted(token.text))
        if token.kind == "number":
            return _constant(float(token.text))
        if token.text in _WORDS:
            return _constant(_WORDS[token.text])
        if token.kind == "word" and token.text in NAMES:
            self.names.add(token.text)
            return self._fields(token.text)
        raise ConditionError(
            f"At character {token.at + 1}: “{token.text}” is no value. Known names are"
            f" {', '.join(NAMES)}; texts stand in quotes."
        )

    def _fields(self, name: str) -> Condition:
        path: list[str | int] = []
        while True:
            if self._take("."):
                path.append(self._expect_kind("word", "the name of a field"))
            elif self._take("["):
                index = self._expect_kind("number", "a position such as 0")
                if not index.isdigit():
                    raise ConditionError(f"[{index}] is no position. They count from 0.")
                path.append(int(index))
                self._expect("]")
            else:
                break
        if not path:
            return lambda facts: facts.get(name)
        if name != "output":
            raise ConditionError(f"Only output has fields, {name} has none.")
        return lambda facts: field(facts.get(name), path)

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
                f"At character {token.at + 1}: “{text}” is missing."
                if token
                else f"It ends too early: “{text}” is missing."
            )

    def _expect_kind(self, kind: str, what: str) -> str:
        token = self._peek()
        if token is None or token.kind != kind:
            raise ConditionError(f"{what} is missing after “{self._tokens[self._next - 1].text}”.")
        self._next += 1
        return token.text


def _constant(value: Any) -> Condition:
    return lambda facts: value


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1], flags=re.S)
