"""The text form, read: `year>=2020; lang=de,fr; title~guide | heading~guide; !draft`.

filter    = [ any { ";" any } [ ";" ] ]
any       = term { "|" term }
term      = "!" term | "(" filter ")" | condition
condition = name [ operator value { "," value } ]
operator  = "=" | "!=" | ">" | ">=" | "<" | "<=" | "~" | "^=" | "$="
"""

import re
from typing import Any

from search.filters.fields import Field, Kind, parse_field
from search.filters.limits import MAX_CHARACTERS, MAX_DEPTH, Budget, FilterError, too_deep, too_long
from search.filters.tree import (
    PATTERNS,
    Comparison,
    Node,
    Operator,
    Scalar,
    all_of,
    any_of,
    equals,
    exists,
    negated,
    one_of,
)
from search.filters.values import check_operator, check_value

SYMBOLS = {
    "=": Operator.EQ,
    "!=": Operator.EQ,
    ">=": Operator.GTE,
    "<=": Operator.LTE,
    ">": Operator.GT,
    "<": Operator.LT,
    "~": Operator.CONTAINS,
    "^=": Operator.STARTSWITH,
    "$=": Operator.ENDSWITH,
}
CONSTANTS: dict[str, Scalar | None] = {"true": True, "false": False, "null": None}

_QUOTES = '"“”„'
_ANYTHING = re.compile(r"\*(?=\s*(?:[;|)]|\Z))")
_BLANK = re.compile(r"\s*")
_NAME = re.compile(r"[^\s=!<>~^$;|,()\[\]{}\"“”„]+")
_SYMBOL = re.compile(r"!=|>=|<=|\^=|\$=|[=<>~]")
_QUOTED = re.compile(r"[\"“”„]((?:[^\"“”„\\]|\\.)*)[\"“”„]", re.DOTALL)
_BARE = re.compile(r"[^=<>~;|,()\"“”„]+")
_NOT_BARE = "=<>~(" + _QUOTES
_NEGATION_WITHIN = re.compile(r"\s!")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<rest>(?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)
#: More digits than any number that fits.
_DIGITS = 400


def read_text(text: str) -> Node:
    """The tree of a filter in text form; raises FilterError, which names the character."""
    if len(text) > MAX_CHARACTERS:
        raise too_long()
    return _Reader(text).whole()


class _Reader:
    """Reads forward from `_position`, once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._budget = Budget()

    def whole(self) -> Node:
        node = self._filter(0)
        if self._position < len(self._text):
            raise self._expected("“;” between conditions")
        return node

    def _filter(self, depth: int) -> Node:
        parts: list[Node] = []
        while not self._at_end():
            parts.append(self._any(depth))
            if not self._take(";"):
                break
        return all_of(parts)

    def _at_end(self) -> bool:
        self._skip_blank()
        return self._text[self._position : self._position + 1] in {"", ")"}

    def _any(self, depth: int) -> Node:
        terms = [self._term(depth)]
        while self._take("|"):
            terms.append(self._term(depth))
        return any_of(terms)

    def _term(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise too_deep(self._here())
        if self._take("!"):
            self._budget.condition(self._here())
            return negated(self._term(depth + 1))
        if not self._take("("):
            return self._condition()
        self._budget.condition(self._here())
        node = self._filter(depth + 1)
        if not self._take(")"):
            raise self._expected("“)”")
        return node

    def _condition(self) -> Node:
        at = self._here()
        self._budget.condition(at)
        field = parse_field(self._name(), at=at)
        self._skip_blank()
        symbol = _SYMBOL.match(self._text, self._position)
        if symbol is None:
            return equals(field, self._flag(field, at))
        self._position = symbol.end()
        operator = SYMBOLS[symbol[0]]
        check_operator(field, operator, at=at)
        node = self._values(field, operator)
        return negated(node) if symbol[0] == "!=" else node

    def _flag(self, field: Field, at: str) -> Scalar:
        if field.kind is not Kind.ANY:
            raise FilterError(
                f"What of “{field}”? Give an operator and a value, or {field}=* for any value.",
                at=at,
            )
        return True

    def _values(self, field: Field, operator: Operator) -> Node:
        self._skip_blank()
        at = self._here()
        if operator is Operator.EQ and (anything := _ANYTHING.match(self._text, self._position)):
            self._position = anything.end()
            return exists(field)
        values = [self._value(field, operator)]
        while self._take(","):
            if operator is not Operator.EQ:
                raise FilterError("Only = and != take several values. Put the text in quotes, or"
                                  " join conditions with “|”.", at=at)  # fmt: skip
            self._budget.values(2 if len(values) == 1 else 1, at)
            values.append(self._value(field, operator))
        if operator is Operator.EQ:
            return one_of(field, values)
        (value,) = values
        return Comparison(field, operator, value)

    def _value(self, field: Field, operator: Operator) -> Any:
        self._skip_blank()
        at = self._here()
        value: Any = self._quoted()
        if value is None:
            value = self._bare()
            if field.kind in {Kind.ANY, Kind.NUMBER} and operator not in PATTERNS:
                value = _literal(value, at)
        if value is None and operator is Operator.EQ:
            return None
        return check_value(field, operator, value, at=at)

    def _name(self) -> str:
        self._skip_blank()
        quoted = self._quoted()
        if quoted is not None:
            return quoted
        name = _NAME.match(self._text, self._position)
        if name is None:
            raise self._expected("the name of a field, as in “year>=2020”")
        self._position = name.end()
        return name[0]

    def _quoted(self) -> str | None:
        if self._text[self._position : self._position + 1] not in set(_QUOTES):
            return None
        quoted = _QUOTED.match(self._text, self._position)
        if quoted is None:
            raise FilterError("This quote is never closed. Close it.", at=self._here())
        self._position = quoted.end()
        return re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL)

    def _bare(self) -> str:
        bare = _BARE.match(self._text, self._position)
        value = bare[0].strip() if bare else ""
        if not value:
            raise self._expected("a value, in quotes if it begins with a sign")
        if value.startswith("*") or value.endswith("*"):
            raise FilterError("“*” stands alone. Write ^= for a beginning, $= for an end, ~ for a"
                              " part, or put the value in quotes.", at=self._here())  # fmt: skip
        self._position = bare.end() if bare else self._position
        behind = self._text[self._position : self._position + 1]
        if (behind and behind in _NOT_BARE) or _NEGATION_WITHIN.search(value):
            raise self._expected("“;” before the next condition, or quotes round the value")
        return value

    def _skip_blank(self) -> None:
        blank = _BLANK.match(self._text, self._position)
        self._position = blank.end() if blank else self._position

    def _take(self, sign: str) -> bool:
        self._skip_blank()
        taken = self._text.startswith(sign, self._position)
        self._position += len(sign) if taken else 0
        return taken

    def _here(self) -> str:
        return f"character {self._position + 1} of the filter"

    def _expected(self, what: str) -> FilterError:
        found = self._text[self._position : self._position + 1]
        return FilterError(f"There is {f'“{found}”' if found else 'the end'}. Write {what}.",
                           at=self._here())  # fmt: skip


def is_literal(bare: str) -> bool:
    """Whether a bare word is a number, true, false or null."""
    return bare in CONSTANTS or _NUMBER.fullmatch(bare) is not None


def _literal(bare: str, at: str) -> Scalar | None:
    if bare in CONSTANTS:
        return CONSTANTS[bare]
    number = _NUMBER.fullmatch(bare)
    if number is None:
        return bare
    if len(bare) > _DIGITS:
        raise FilterError("The number has too many digits. Put it in quotes if it is text.", at=at)
    return float(bare) if number["rest"] else int(bare)
