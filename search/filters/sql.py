"""A filter compiled to one SQL condition on `documents_chunk AS chunk`; every value is a
parameter. Pure.

Begin with `compile_filter`.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from search.filters.tree import (
    PATTERNS,
    And,
    Comparison,
    Field,
    Kind,
    Node,
    Not,
    Operator,
    Or,
    Value,
    time_span,
)

#: Metadata keys of a document's date, most reliable first: of pages, books, files, records.
DATE_KEYS = (
    "date",
    "published",
    "published_at",
    "issued",
    "year",
    "created",
    "created_at",
    "modified_at",
)

#: A year from 1000 on, with month and day where they follow: “2024”, “2024-05”, “2024-05-31T12:00”,
#: and the year alone of “31 May 2024”.
_DATE_PATTERN = (
    r"\m([12]\d{3}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?)(?!\d)"  # PostgreSQL's \m
)

#: The day the document was added.
CREATED_DAY_SQL = "to_char(document.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
#: The document's date in its metadata, as ISO text of known precision; or NULL.
DOCUMENT_DATE_SQL = (
    "coalesce("
    + ", ".join(
        f"substring(document.metadata->>'{key}' from '{_DATE_PATTERN}')" for key in DATE_KEYS
    )
    + ")"
)
_FULL_DATE_SQL = f"({DOCUMENT_DATE_SQL} || substr('0000-01-01', length({DOCUMENT_DATE_SQL}) + 1))"
#: The same as a moment: a bare year or month is its first day, and what metadata do not say is when
#: the document was brought. By `make_date`, because a cast would fail at a 31st of February.
DOCUMENT_TIME_SQL = (
    f"coalesce((make_date(substr({_FULL_DATE_SQL}, 1, 4)::int, substr({_FULL_DATE_SQL}, 6,"
    " 2)::int, 1)"
    f" + substr({_FULL_DATE_SQL}, 9, 2)::int - 1)::timestamp AT TIME ZONE 'UTC',"
    " document.created_at)"
)

#: Where a document is from: the site of its address, else the folder of its source, else ''.
ORIGIN_SQL = (
    r"coalesce(lower(substring(document.url"
    r" from '(?i)^[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(?:www\.)?([^/?#:]+)')),"
    r" substring(document.source from '^(.*)/[^/]*$'), '')"
)


#: Escaped by a backslash; escaped letters would have a special meaning.
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


def text_pattern(operator: Operator, text: str) -> str:
    """A PostgreSQL regular expression for `$contains`, `$startswith` or `$endswith`,
    used for columns and metadata alike.
    """
    literal = _PUNCTUATION.sub(r"\\\g<0>", text)
    start = "^" if operator is Operator.STARTSWITH else ""
    end = "$" if operator is Operator.ENDSWITH else ""
    return f"{start}{literal}{end}"


JSONPATH_OPERATORS = {
    Operator.EQ: "==",
    Operator.GT: ">",
    Operator.GTE: ">=",
    Operator.LT: "<",
    Operator.LTE: "<=",
}


def predicate(node: Comparison) -> str:
    """A comparison of metadata as jsonpath for `jsonb @@ jsonpath`, such as `$."author"."born" >=
    1900`.

    In lax mode a list stands for its elements, a missing key for nothing, and incomparable
    values do not match: the rules of the filter language.
    """
    path = _field_path(node.field)
    match node.operator, node.value:
        case Operator.EXISTS, _:
            return f'{path}.type() != "null"'
        case Operator.IN, tuple(values):
            return " || ".join(f"{path} == {_jsonpath_literal(value)}" for value in values)
        case operator, value if operator in PATTERNS:
            return (
                f"{path} like_regex"
                f' {_jsonpath_literal(text_pattern(operator, str(value)))} flag "i"'
            )
        case operator, value:
            return f"{path} {JSONPATH_OPERATORS[operator]} {_jsonpath_literal(value)}"


def elements_path(field: Field) -> str:
    """jsonpath of the value of `field`, or of each element of a list."""
    return f"{_field_path(field)}[*]"


def _field_path(field: Field) -> str:
    return "$" + "".join(f".{_jsonpath_literal(key)}" for key in field.keys)


def _jsonpath_literal(value: Value) -> str:
    # ASCII only: jsonpath reads JSON's escapes, and nothing else could end the string.
    return json.dumps(value)


Parameters = dict[str, Any]

#: A jsonpath tries each value of a list in turn; PostgreSQL hashes lists of nine and more.
LONG_LIST = 8

SQL_OPERATORS = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}

#: What a field is called where it stands. Fields of the document are looked up by its id, because
#: only what nearly every search filters by is copied to the chunks.
COLUMNS = {
    "media_type": "chunk.media_type",
    "chunk": "chunk.key",
    "chapter": "chunk.heading_path[1]",
    "section": "chunk.heading_path[2]",
    "heading": "chunk.heading_path",
    "page": "chunk.page",
    "language": "chunk.language",
    "document": "document.key",
    "title": "document.title",
    "source": "document.source",
    "url": "document.url",
    "origin": ORIGIN_SQL,
    "dated": DOCUMENT_TIME_SQL,
    "created": "document.created_at",
    "updated": "document.updated_at",
    "collection": "collection.slug",
}
TABLES = {
    "document": "documents_document AS document WHERE document.id = chunk.document_id",
    "collection": "documents_collection AS collection WHERE collection.id = chunk.collection_id",
}


def compile_filter(node: Node, *, configuration: Callable[[str], str]) -> tuple[str, Parameters]:
    """The condition, and its parameters, whose names begin with `filter_`.

    It is true where the filter matches, and false or null elsewhere. `configuration` maps an
    ISO language code to a text search configuration.
    """
    compiler = _Compiler(configuration)
    return compiler.node(node), compiler.parameters


COLLATION = ' COLLATE "C"'


class _Compiler:
    def __init__(self, configuration: Callable[[str], str]) -> None:
        self.parameters: Parameters = {}
        self._configuration = configuration

    def node(self, node: Node) -> str:
        match node:
            case And(parts):
                return _joined(" AND ", parts, self.node) if parts else "true"
            case Or(parts):
                return _joined(" OR ", parts, self.node)
            case Not(part):
                # In SQL's three values NOT would leave out what has no value.
                return f"({self.node(part)}) IS NOT TRUE"
            case Comparison():
                return self._comparison(node)

    def _comparison(self, node: Comparison) -> str:
        if node.field.kind is Kind.ANY:
            if node.operator is not Operator.IN or len(_values(node)) <= LONG_LIST:
                return f"chunk.metadata @@ {self._parameter(predicate(node))}::jsonpath"
            elements = self._parameter(elements_path(node.field))
            values = self._parameter([json.dumps(value) for value in _values(node)])
            return (
                "EXISTS (SELECT FROM jsonb_path_query(chunk.metadata,"
                f" {elements}::jsonpath) AS item"
                f" WHERE item = ANY({values}::jsonb[]))"
            )
        if node.field.kind is Kind.LANGUAGE:
            return self._language(node)
        column = COLUMNS[node.field.name]
        owner = next((rows for name, rows in TABLES.items() if f"{name}." in column), None)
        match node.field.kind:
            case Kind.TIME:
                condition = self._time(column, node)
            case Kind.TEXTS:
                of_item = "true" if node.operator is Operator.EXISTS else self._scalar("item", node)
                condition = f"EXISTS (SELECT FROM unnest({column}) AS item WHERE {of_item})"
            case _:
                condition = self._scalar(column, node)
        return f"EXISTS (SELECT FROM {owner} AND {condition})" if owner else condition

    def _scalar(self, column: str, node: Comparison) -> str:
        is_number = node.field.kind is Kind.NUMBER
        cast = "::numeric" if is_number else ""

        def checked(value: Any) -> Any:
            return Decimal(repr(value)) if is_number else value

        match node.operator:
            case Operator.EXISTS:
                return f"{column} IS NOT NULL" if is_number else f"{column} <> ''"
            case Operator.EQ:
                return f"{column} = {self._parameter(checked(node.value))}{cast}"
            case Operator.IN:
                values = self._parameter([checked(value) for value in _values(node)])
                return f"{column} = ANY({values}{cast or '::text'}[])"
            case operator if operator in PATTERNS:
                return f"{column} ~* {self._parameter(text_pattern(operator, str(node.value)))}"
            case operator:
                # Text by code point, as in metadata, whatever the database sorts by.
                value = self._parameter(checked(node.value))
                return f"{column} {SQL_OPERATORS[operator]} {value}{cast or COLLATION}"

    def _time(self, column: str, node: Comparison) -> str:
        match node.operator:
            case Operator.EXISTS:
                return f"{column} IS NOT NULL"
            case Operator.IN:
                within = (self._within(column, str(value)) for value in _values(node))
                return f"({' OR '.join(within)})"
            case Operator.EQ:
                return self._within(column, str(node.value))
            case operator:
                start, behind = time_span(str(node.value))
                bound = behind if operator in {Operator.GT, Operator.LTE} else start
                symbol = "<" if operator in {Operator.LT, Operator.LTE} else ">="
                return f"{column} {symbol} {self._parameter(bound)}"

    def _within(self, column: str, value: str) -> str:
        start, behind = time_span(value)
        return f"({column} >= {self._parameter(start)} AND {column} < {self._parameter(behind)})"

    def _language(self, node: Comparison) -> str:
        """By the passage's text search configuration; languages without one by the document's
        code."""
        if node.operator is Operator.EXISTS:
            return f"EXISTS (SELECT FROM {TABLES['document']} AND document.language <> '')"
        values = _values(node) if node.operator is Operator.IN else [node.value]
        codes = [str(value).lower().replace("_", "-").split("-")[0] for value in values]
        known = {code: self._configuration(code) for code in codes}
        stemmed = sorted({name for name in known.values() if name != "simple"})
        others = [code for code, name in known.items() if name == "simple"]
        parts = []
        if stemmed:
            parts.append(f"chunk.language::text = ANY({self._parameter(stemmed)}::text[])")
        if others:
            parts.append(
                f"EXISTS (SELECT FROM {TABLES['document']}"
                f" AND document.language = ANY({self._parameter(others)}::text[]))"
            )
        return f"({' OR '.join(parts)})"

    def _parameter(self, value: Any) -> str:
        name = f"filter_{len(self.parameters)}"
        self.parameters[name] = value
        return f"%({name})s"


def _joined(word: str, parts: tuple[Node, ...], compiled: Callable[[Node], str]) -> str:
    return f"({word.join(compiled(part) for part in parts)})"


def _values(node: Comparison) -> list[Any]:
    assert isinstance(node.value, tuple)
    return list(node.value)
