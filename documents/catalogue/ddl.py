"""Tables out of SQL scripts of any dialect, such as dumps and migrations, parsed by sqlglot. Begin
with `read_scripts`."""

import logging
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from documents.catalogue.tables import (
    CatalogueError,
    Column,
    ForeignKey,
    Table,
    TableName,
)
from documents.ingestion.sources import BrokenSource
from reading.parsers import ParseError, decode_text
from reading.parsers.sql_statements import Statement, first_parenthesis_end, split_statements


def table_name(table: exp.Expr, default_schema: str) -> TableName:
    """The table's name, with `default_schema` where it has no schema."""
    return TableName(schema=table.text("db") or default_schema, name=table.name)


def with_definitions(table: Table, parts: Iterable[exp.Expr], *, dialect: str) -> Table:
    """The table with the columns, keys and comments in `parts`.

    A reference to a table without a schema means one of the same schema.
    """
    for part in parts:
        if isinstance(part, exp.ColumnDef):
            table = _with_column(table, part, dialect)
        elif isinstance(part, exp.Constraint):
            table = with_definitions(table, part.expressions, dialect=dialect)
        else:
            table = _with_constraint(table, part)
    return table


def column_names(part: exp.Expr | None) -> tuple[str, ...]:
    """The columns that a key names, in their order."""
    if part is None:
        return ()
    named = part.expressions or ([part.this] if isinstance(part.this, exp.Expr) else [])
    return tuple(name for name in map(_name, named) if name)


def _name(node: exp.Expr) -> str:
    """A column's name, without the length (MySQL) or order that may wrap it."""
    while isinstance(node, exp.Ordered | exp.ColumnPrefix):
        node = node.this
    return str(node.name)


def _with_constraint(table: Table, part: exp.Expr) -> Table:
    match part:
        case exp.PrimaryKey():
            return replace(table, primary_key=column_names(part))
        case exp.ClusteredColumnConstraint() | exp.NonClusteredColumnConstraint():
            # T-SQL writes the columns of its primary key behind how they are stored.
            keys = tuple(map(_name, part.this)) if isinstance(part.this, list) else ()
            return table if table.primary_key else replace(table, primary_key=keys)
        case exp.ForeignKey():
            reference = part.args.get("reference")
            key = _foreign_key(column_names(part), reference, table) if reference else None
            return replace(table, foreign_keys=(*table.foreign_keys, key)) if key else table
        case exp.UniqueColumnConstraint():
            names = column_names(part.this if isinstance(part.this, exp.Schema) else part)
            return replace(table, unique=(*table.unique, names)) if names else table
        case exp.SchemaCommentProperty():
            return replace(table, comment=part.this.name)
        case _:
            return table


def _with_column(table: Table, part: exp.ColumnDef, dialect: str) -> Table:
    kinds = [constraint.kind for constraint in part.constraints]
    comments = (kind for kind in kinds if isinstance(kind, exp.CommentColumnConstraint))
    type_ = part.args.get("kind")
    column = Column(
        name=part.name,
        type=type_.sql(dialect=dialect, comments=False) if type_ else "",
        is_nullable=not any(
            isinstance(kind, exp.PrimaryKeyColumnConstraint)
            or (isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"))
            for kind in kinds
        ),
        comment=next((kind.this.name for kind in comments), "")
        or " ".join(map(str.strip, part.comments or ())),
    )
    table = replace(table, columns=(*table.columns, column))
    for kind in kinds:
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            table = replace(table, primary_key=(column.name,))
        elif isinstance(kind, exp.UniqueColumnConstraint):
            table = replace(table, unique=(*table.unique, (column.name,)))
        elif isinstance(kind, exp.Reference):
            key = _foreign_key((column.name,), kind, table)
            table = replace(table, foreign_keys=(*table.foreign_keys, key))
    return table


def _foreign_key(columns: tuple[str, ...], reference: exp.Expr, table: Table) -> ForeignKey:
    target, schema = reference.this, table.name.schema
    if isinstance(target, exp.Schema):
        return ForeignKey(columns, table_name(target.this, schema), column_names(target))
    return ForeignKey(columns, table_name(target, schema))


MAX_BYTES = 50 * 1024 * 1024

_DIALECTS = frozenset(dialect.value for dialect in sqlglot.Dialects if dialect.value)
#: Tried in this order for a statement that the one before did not understand.
_DIALECTS_TO_TRY = (
    "postgres",
    "mysql",
    "tsql",
    "sqlite",
    "oracle",
    "snowflake",
    "bigquery",
    "hive",
)
_TABLE_STATEMENTS = frozenset({"table", "view", "alter", "comment", "index"})

_SEPARATOR = re.compile(r"[\s;]*(?:^GO[ \t]*)?\Z", re.M | re.I)

# It would print every statement that it does not understand.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def read_scripts(
    files: Iterable[Path], *, dialect: str = "", default_schema: str = ""
) -> list[Table | BrokenSource]:
    """The tables of all scripts in the order of their definitions, read as if they were one.

    Without a dialect each statement is parsed in the first dialect that accepts it. A statement
    that no dialect accepts becomes an BrokenSource, if it would have made a table. Raises
    CatalogueError.
    """
    if dialect and dialect not in _DIALECTS:
        raise CatalogueError(f"There is no SQL dialect {dialect}: {', '.join(sorted(_DIALECTS))}.")
    reader = _Reader(dialect, default_schema)
    for file in files:
        try:
            if file.stat().st_size > MAX_BYTES:
                raise CatalogueError(
                    f"{file} is larger than {MAX_BYTES:,} bytes. Dump without data."
                )
            text = decode_text(file.read_bytes())
        except OSError as error:
            raise CatalogueError(
                f"{file} cannot be read: {error.strerror}. Check the path."
            ) from error
        except ParseError as error:
            raise CatalogueError(f"{file}: {error}") from error
        reader.read(text)
    return reader.entries()


class _Reader:
    """Collects tables, and applies later statements to them."""

    def __init__(self, dialect: str, default_schema: str) -> None:
        self._dialects = (dialect,) if dialect else _DIALECTS_TO_TRY
        self._schema = default_schema
        self._tables: dict[TableName, Table] = {}
        self._unread: dict[str, BrokenSource] = {}

    def entries(self) -> list[Table | BrokenSource]:
        return [*self._tables.values(), *self._unread.values()]

    def read(self, text: str) -> None:
        for statement in split_statements(text):
            if statement.kind not in _TABLE_STATEMENTS:
                continue
            if parsed := self._parse(statement, text):
                self._apply(*parsed)
            elif statement.kind in {"table", "view"}:
                line = text.count("\n", 0, statement.start) + 1
                self._unread[statement.name] = BrokenSource(
                    statement.name,
                    0,
                    "malformed",
                    f"The definition at line {line} is not understood. Name its --dialect, or give"
                    " the database itself.",
                )

    def _parse(self, statement: Statement, text: str) -> tuple[exp.Expr, str] | None:
        """The parsed statement, and the dialect that understood it."""
        source = _SEPARATOR.sub("", text[statement.start : statement.end])
        end = first_parenthesis_end(source) if statement.kind == "table" else None
        # What follows the columns is about storage, and the part that dialects differ in most.
        for variant in filter(None, (source, source[:end] if end else "")):
            for dialect in self._dialects:
                try:
                    parsed = sqlglot.parse_one(variant, read=dialect)
                except (SqlglotError, RecursionError):
                    continue
                if not isinstance(parsed, exp.Command):
                    return parsed, dialect
        return None

    def _apply(self, parsed: exp.Expr, dialect: str) -> None:
        match parsed:
            case exp.Create() if parsed.kind in {"TABLE", "VIEW"}:
                self._create(parsed, dialect)
            case exp.Create() if parsed.kind == "INDEX" and parsed.args.get("unique"):
                table = self._tables.get(table_name(parsed.this.args["table"], self._schema))
                parameters = parsed.this.args.get("params")
                if table and parameters and not parameters.args.get("where"):
                    columns = parameters.args.get("columns") or []
                    names = column_names(exp.Schema(expressions=columns))
                    # An index over expressions does not make the columns themselves unique.
                    if names and len(names) == len(columns):
                        self._tables[table.name] = replace(table, unique=(*table.unique, names))
            case exp.Alter():
                if table := self._tables.get(table_name(parsed.this, self._schema)):
                    for action in parsed.args.get("actions") or ():
                        is_constraint = isinstance(action, exp.AddConstraint)
                        parts = action.expressions if is_constraint else [action]
                        table = with_definitions(table, parts, dialect=dialect)
                    self._tables[table.name] = table
            case exp.Comment(this=exp.Column() as target):
                owner = TableName(target.text("db") or self._schema, target.text("table"))
                if table := self._tables.get(owner):
                    commented = (
                        replace(column, comment=parsed.expression.name)
                        if column.name == target.name
                        else column
                        for column in table.columns
                    )
                    self._tables[owner] = replace(table, columns=tuple(commented))
            case exp.Comment():
                if table := self._tables.get(table_name(parsed.this, self._schema)):
                    self._tables[table.name] = replace(table, comment=parsed.expression.name)

    def _create(self, parsed: exp.Create, dialect: str) -> None:
        schema = parsed.this
        has_columns = isinstance(schema, exp.Schema)
        name = table_name(schema.this if has_columns else schema, self._schema)
        table = Table(name=name, columns=(), is_view=parsed.kind == "VIEW")
        properties = parsed.args.get("properties")
        parts = [
            *(schema.expressions if has_columns else ()),
            *(properties.expressions if properties else ()),
        ]
        table = with_definitions(table, parts, dialect=dialect)
        if not table.columns:
            # Of a view, or of a table made by a query; their types are unknown.
            query = parsed.args.get("expression")
            names = column_names(schema) if has_columns and schema.expressions else ()
            if not names and isinstance(query, exp.Query):
                names = tuple(name for name in query.named_selects if name and name != "*")
            table = replace(table, columns=tuple(Column(name=name, type="") for name in names))
        self._tables[name] = table
