"""Tables out of SQL scripts of any dialect, as dumps and migrations contain them."""

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from documents.catalogue.ddl_columns import name_of, names_in, with_parts
from documents.catalogue.tables import CatalogueError, Column, Table, TableName, UnreadTable
from documents.parsers import ParseError, decode_text
from documents.parsers.sql_statements import Statement, first_parenthesis_end, statements

MAX_BYTES = 50 * 1024 * 1024

_KNOWN = frozenset(dialect.value for dialect in sqlglot.Dialects if dialect.value)
#: Tried in this order for a statement that the one before did not understand.
_TRIED = ("postgres", "mysql", "tsql", "sqlite", "oracle", "snowflake", "bigquery", "hive")
_OF_TABLES = frozenset({"table", "view", "alter", "comment", "index"})

_SEPARATOR = re.compile(r"[\s;]*(?:^GO[ \t]*)?\Z", re.M | re.I)

# It would print every statement that it does not understand.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def read_scripts(
    files: Iterable[Path], *, dialect: str = "", default_schema: str = ""
) -> list[Table | UnreadTable]:
    """The tables of all scripts, read as if they were one. Raises CatalogueError."""
    if dialect and dialect not in _KNOWN:
        raise CatalogueError(f"There is no SQL dialect {dialect}: {', '.join(sorted(_KNOWN))}.")
    reader = _Reader(dialect, default_schema)
    for file in files:
        reader.read(_text(file))
    return reader.entries()


def read_ddl(
    text: str, *, dialect: str = "", default_schema: str = ""
) -> list[Table | UnreadTable]:
    """The tables of one script in the order of their definitions.

    Without a dialect each statement is read in the first one that understands it. What no dialect
    understands comes out as UnreadTable, if it would have made a table.
    """
    reader = _Reader(dialect, default_schema)
    reader.read(text)
    return reader.entries()


def _text(file: Path) -> str:
    try:
        if file.stat().st_size > MAX_BYTES:
            raise CatalogueError(f"{file} is larger than {MAX_BYTES:,} bytes. Dump without data.")
        return decode_text(file.read_bytes())
    except OSError as error:
        raise CatalogueError(f"{file} cannot be read: {error.strerror}. Check the path.") from error
    except ParseError as error:
        raise CatalogueError(f"{file}: {error}") from error


class _Reader:
    """Gathers tables, and changes them as later statements say."""

    def __init__(self, dialect: str, default_schema: str) -> None:
        self._dialects = (dialect,) if dialect else _TRIED
        self._schema = default_schema
        self._tables: dict[TableName, Table] = {}
        self._unread: dict[str, UnreadTable] = {}

    def entries(self) -> list[Table | UnreadTable]:
        return [*self._tables.values(), *self._unread.values()]

    def read(self, text: str) -> None:
        for statement in statements(text):
            if statement.kind in _OF_TABLES:
                self._read_statement(statement, text)

    def _read_statement(self, statement: Statement, text: str) -> None:
        source = _SEPARATOR.sub("", text[statement.start : statement.end])
        end = first_parenthesis_end(source) if statement.kind == "table" else None
        # What follows the columns is about storage, and the part that dialects differ in most.
        for variant in (source, source[:end] if end else ""):
            for dialect in self._dialects:
                parsed = _parsed(variant, dialect)
                if parsed is not None:
                    self._apply(parsed, dialect)
                    return
        if statement.kind in {"table", "view"}:
            line = text.count("\n", 0, statement.start) + 1
            self._unread[statement.name] = UnreadTable(
                statement.name,
                f"The definition at line {line} is not understood. Name its --dialect, or give"
                " the database itself.",
            )

    def _apply(self, parsed: exp.Expr, dialect: str) -> None:
        match parsed:
            case exp.Create() if parsed.kind in {"TABLE", "VIEW"}:
                self._create(parsed, dialect)
            case exp.Create() if parsed.kind == "INDEX" and parsed.args.get("unique"):
                self._note_unique(parsed)
            case exp.Alter():
                self._alter(parsed, dialect)
            case exp.Comment():
                self._comment(parsed)

    def _create(self, parsed: exp.Create, dialect: str) -> None:
        schema = parsed.this
        has_columns = isinstance(schema, exp.Schema)
        name = name_of(schema.this if has_columns else schema, self._schema)
        table = Table(name=name, columns=(), is_view=parsed.kind == "VIEW")
        properties = parsed.args.get("properties")
        parts = [
            *(schema.expressions if has_columns else ()),
            *(properties.expressions if properties else ()),
        ]
        table = with_parts(table, parts, dialect=dialect)
        if not table.columns:
            table = replace(table, columns=_selected(parsed, schema))
        self._tables[name] = table

    def _alter(self, parsed: exp.Alter, dialect: str) -> None:
        table = self._tables.get(name_of(parsed.this, self._schema))
        if table is None:
            return
        for action in parsed.args.get("actions") or ():
            parts = action.expressions if isinstance(action, exp.AddConstraint) else [action]
            table = with_parts(table, parts, dialect=dialect)
        self._tables[table.name] = table

    def _comment(self, parsed: exp.Comment) -> None:
        target, words = parsed.this, parsed.expression.name
        if isinstance(target, exp.Column):
            owner = TableName(target.text("db") or self._schema, target.text("table"))
            if table := self._tables.get(owner):
                columns = (
                    replace(column, comment=words) if column.name == target.name else column
                    for column in table.columns
                )
                self._tables[owner] = replace(table, columns=tuple(columns))
        elif table := self._tables.get(name_of(target, self._schema)):
            self._tables[table.name] = replace(table, comment=words)

    def _note_unique(self, parsed: exp.Create) -> None:
        index = parsed.this
        table = self._tables.get(name_of(index.args["table"], self._schema))
        parameters = index.args.get("params")
        if table is None or parameters is None or parameters.args.get("where"):
            return
        columns = parameters.args.get("columns") or []
        names = names_in(exp.Schema(expressions=columns))
        # An index over expressions says nothing about the columns themselves.
        if names and len(names) == len(columns):
            self._tables[table.name] = replace(table, unique=(*table.unique, names))


def _parsed(source: str, dialect: str) -> exp.Expr | None:
    if not source:
        return None
    try:
        parsed = sqlglot.parse_one(source, read=dialect)
    except (SqlglotError, RecursionError):
        return None
    return None if isinstance(parsed, exp.Command) else parsed


def _selected(parsed: exp.Create, schema: exp.Expr) -> tuple[Column, ...]:
    """What a view, or a table made by a query, gives: types are not known."""
    if isinstance(schema, exp.Schema) and schema.expressions:
        return tuple(Column(name=name, type="") for name in names_in(schema))
    query = parsed.args.get("expression")
    names = query.named_selects if isinstance(query, exp.Query) else ()
    return tuple(Column(name=name, type="") for name in names if name and name != "*")
