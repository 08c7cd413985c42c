"""A filter as one SQL condition on `documents_chunk AS chunk`. Every value is a parameter."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from search.filters.derived import DATED, ORIGIN
from search.filters.fields import Kind
from search.filters.jsonpath import elements_of, predicate
from search.filters.patterns import pattern
from search.filters.times import time_span
from search.filters.tree import PATTERNS, And, Comparison, Node, Not, Operator, Or

Parameters = dict[str, Any]

#: A jsonpath tries each value of a list in turn; PostgreSQL hashes lists of nine and more.
LONG_LIST = 8

SYMBOLS = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}

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
    "origin": ORIGIN,
    "dated": DATED,
    "created": "document.created_at",
    "updated": "document.updated_at",
    "collection": "collection.slug",
}
OWNERS = {
    "document": "documents_document AS document WHERE document.id = chunk.document_id",
    "collection": "documents_collection AS collection WHERE collection.id = chunk.collection_id",
}


def compile_filter(node: Node, *, configuration: Callable[[str], str]) -> tuple[str, Parameters]:
    """The condition, and its parameters, whose names begin with `filter_`.

    It is true where the filter holds, and false or null where not, so it belongs beside an AND.
    `configuration` tells the text search configuration of an ISO language code.
    """
    compiler = _Compiler(configuration)
    return compiler.node(node), compiler.parameters


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
            return self._metadata(node)
        if node.field.kind is Kind.LANGUAGE:
            return self._language(node)
        column = COLUMNS[node.field.name]
        owner = next((rows for name, rows in OWNERS.items() if f"{name}." in column), None)
        condition = self._column(column, node)
        return f"EXISTS (SELECT FROM {owner} AND {condition})" if owner else condition

    def _metadata(self, node: Comparison) -> str:
        if node.operator is not Operator.IN or len(_values(node)) <= LONG_LIST:
            return f"chunk.metadata @@ {self._parameter(predicate(node))}::jsonpath"
        elements = self._parameter(elements_of(node.field))
        values = self._parameter([json.dumps(value) for value in _values(node)])
        return (
            f"EXISTS (SELECT FROM jsonb_path_query(chunk.metadata, {elements}::jsonpath) AS item"
            f" WHERE item = ANY({values}::jsonb[]))"
        )

    def _column(self, column: str, node: Comparison) -> str:
        match node.field.kind:
            case Kind.NUMBER:
                return self._number(column, node)
            case Kind.TIME:
                return self._time(column, node)
            case Kind.TEXTS:
                condition = "true" if node.operator is Operator.EXISTS else self._text("item", node)
                return f"EXISTS (SELECT FROM unnest({column}) AS item WHERE {condition})"
            case _:
                return self._text(column, node)

    def _text(self, column: str, node: Comparison) -> str:
        match node.operator:
            case Operator.EXISTS:
                return f"{column} <> ''"
            case Operator.EQ:
                return f"{column} = {self._parameter(node.value)}"
            case Operator.IN:
                return f"{column} = ANY({self._parameter(_values(node))}::text[])"
            case operator if operator in PATTERNS:
                return f"{column} ~* {self._parameter(pattern(operator, str(node.value)))}"
            case operator:
                # By code point, as in metadata, whatever the database sorts by.
                return f'{column} {SYMBOLS[operator]} {self._parameter(node.value)} COLLATE "C"'

    def _number(self, column: str, node: Comparison) -> str:
        match node.operator:
            case Operator.EXISTS:
                return f"{column} IS NOT NULL"
            case Operator.EQ:
                return f"{column} = {self._parameter(_decimal(node.value))}::numeric"
            case Operator.IN:
                values = [_decimal(value) for value in _values(node)]
                return f"{column} = ANY({self._parameter(values)}::numeric[])"
            case operator:
                value = self._parameter(_decimal(node.value))
                return f"{column} {SYMBOLS[operator]} {value}::numeric"

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
        """By the configuration of the passage: records of one document may differ in language.
        Languages that have none are told apart by the document's code."""
        if node.operator is Operator.EXISTS:
            return f"EXISTS (SELECT FROM {OWNERS['document']} AND document.language <> '')"
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
                f"EXISTS (SELECT FROM {OWNERS['document']}"
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


def _decimal(value: Any) -> Decimal:
    return Decimal(repr(value))
