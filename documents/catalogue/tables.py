"""A database table as a document: `table_source` writes it, `table_of` reads it back from metadata
and text. No database driver is imported here."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import RagsiteError
from documents.ingestion.sources import Source

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-zß-öø-ÿ]+|[A-Z]+|\d+|[^\W\d_]+")


def split_identifier(name: str) -> str:
    """Words of an identifier: `customerOrders`, `customer_orders` and `CUSTOMER-ORDERS` give
    `customer orders`."""
    return " ".join(_WORD.findall(name)).lower()


def name_with_words(name: str) -> str:
    """The name, and its words where these differ: `custId (cust id)`."""
    words = split_identifier(name)
    return name if not words or words == name.lower() else f"{name} ({words})"


class CatalogueError(RagsiteError):
    """A database or script that cannot be catalogued; the message says how to fix it and contains
    no password."""

    code = "catalogue"


@dataclass(frozen=True, slots=True)
class TableName:
    """`schema` is empty where a script names none."""

    schema: str
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is as the database writes it; `samples` are a few values, shortened."""

    name: str
    type: str
    is_nullable: bool = True
    comment: str = ""
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`columns` refer to `referenced_columns` of `references`, which may be unknown (empty)."""

    columns: tuple[str, ...]
    references: TableName
    referenced_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view with its columns in their order."""

    name: TableName
    columns: tuple[Column, ...]
    is_view: bool = False
    comment: str = ""
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    #: Sets of columns that are unique together, the primary key not among them.
    unique: tuple[tuple[str, ...], ...] = field(default=())


#: A comment is worth a paragraph; what is longer is a manual.
_MAX_COMMENT_CHARACTERS = 2_000
#: Metadata are copied to each passage of a table, and indexed.
MAX_COLUMNS_CHARACTERS = 12_000
_SPACE = re.compile(r"\s+")


def table_source(table: Table, *, database: str, language: str) -> Source:
    """One document per table: the key is `schema.table`, so that an unchanged table is skipped."""
    data = table_text(table).encode()
    return Source(
        key=str(table.name),
        name=str(table.name),
        size=len(data),
        read=lambda: data,
        declared={
            "title": table_title(table),
            "file_name": f"{table.name}.md",
            "language": language,
            "metadata": table_metadata(table, database=database),
        },
        is_given_text=True,
    )


def table_title(table: Table) -> str:
    """The name and its words, such as `sales.customerOrders: customer orders`."""
    words = split_identifier(table.name.name)
    return f"{table.name}: {words}" if words != table.name.name.lower() else str(table.name)


def table_text(table: Table) -> str:
    """Markdown: a description, the columns one a line, and the keys."""
    what = "View" if table.is_view else "Table"
    place = f" in schema {name_with_words(table.name.schema)}" if table.name.schema else ""
    parts = [
        f"{what} {name_with_words(table.name.name)}{place}. {_one_line(table.comment)}".strip()
    ]
    if table.columns:
        parts.append("Columns:")
        parts.append("\n".join(_column_line(column, table) for column in table.columns))
    keys = []
    for key in table.foreign_keys:
        columns = f" ({', '.join(key.referenced_columns)})" if key.referenced_columns else ""
        keys.append(f"- {', '.join(key.columns)} refers to {key.references}{columns}.")
    keys += [f"- Unique: {', '.join(columns)}." for columns in table.unique]
    if keys:
        parts.append("Keys:")
        parts.append("\n".join(keys))
    return "\n\n".join(parts) + "\n"


def table_metadata(table: Table, *, database: str) -> dict[str, Any]:
    """Metadata for the graph's edges, for filters and for the SQL checker.

    The columns of a table with very many of them are only in its text.
    """
    columns = [{"name": column.name, "type": column.type} for column in table.columns]
    is_small = len(str(columns)) <= MAX_COLUMNS_CHARACTERS
    return {
        "kind": "table",
        "database": database,
        "schema": table.name.schema,
        "table": table.name.name,
        "is_view": table.is_view,
        **({"columns": columns} if is_small else {}),
        "primary_key": list(table.primary_key),
        "foreign_keys": [
            {
                "columns": list(key.columns),
                "references": str(key.references),
                "referenced_columns": list(key.referenced_columns),
            }
            for key in table.foreign_keys
        ],
    }


def _column_line(column: Column, table: Table) -> str:
    facts = [column.type] if column.type else []
    if column.name in table.primary_key:
        facts.append("primary key")
    elif not column.is_nullable:
        facts.append("required")
    line = f"- {': '.join(filter(None, (name_with_words(column.name), ', '.join(facts))))}."
    if column.comment:
        line += f" {_one_line(column.comment)}"
    if column.samples:
        line += f" Such as {'; '.join(column.samples)}."
    return line


def _one_line(comment: str) -> str:
    return _SPACE.sub(" ", comment).strip()[:_MAX_COMMENT_CHARACTERS]


#: `- customerId (customer id): BIGINT, required. What it means`
_COLUMN_LINE = re.compile(r"- (?P<name>.+?)(?:: (?P<facts>.*?))?\.(?: .*)?")
_COLUMN_FLAG = re.compile(r"(?:, |^)(primary key|required)$")


def table_of(metadata: Mapping[str, Any], text: str) -> Table | None:
    """The table that a document describes; None if it describes none.

    Columns come from the metadata or, in catalogues made before metadata had them, from the text.
    Metadata can be anybody's: whatever does not look like that of `table_metadata` is ignored.
    """
    if metadata.get("kind") != "table" or not isinstance(metadata.get("table"), str):
        return None
    columns = tuple(
        Column(name=column["name"], type=_string_or_empty(column.get("type")))
        for column in _mappings(metadata.get("columns"))
        if isinstance(column.get("name"), str)
    )
    foreign_keys: list[ForeignKey] = []
    for key in _mappings(metadata.get("foreign_keys")):
        if isinstance(key.get("references"), str):
            schema, _, name = key["references"].rpartition(".")
            foreign_keys.append(
                ForeignKey(
                    columns=_string_tuple(key.get("columns")),
                    references=TableName(schema, name),
                    referenced_columns=_string_tuple(key.get("referenced_columns")),
                )
            )
    return Table(
        name=TableName(_string_or_empty(metadata.get("schema")), metadata["table"]),
        columns=columns or tuple(_columns_from_text(text)),
        is_view=metadata.get("is_view") is True,
        primary_key=_string_tuple(metadata.get("primary_key")),
        foreign_keys=tuple(foreign_keys),
    )


def columns_need_text(metadata: Mapping[str, Any]) -> bool:
    """Whether the columns are only in the text."""
    return not isinstance(metadata.get("columns"), list)


def _columns_from_text(text: str) -> Iterator[Column]:
    """Columns from the lines under “Columns:”."""
    _, _, below = text.partition("Columns:\n")
    for line in below.lstrip("\n").split("\n"):
        if not line.startswith("- "):
            return
        if match := _COLUMN_LINE.fullmatch(line):
            # The name without the words appended in parentheses.
            written = match["name"]
            name = written.rpartition(" (")[0]
            unannotated_name = name if name and name_with_words(name) == written else written
            yield Column(name=unannotated_name, type=_COLUMN_FLAG.sub("", (match["facts"] or "")))


def _mappings(values: object) -> list[Mapping[str, Any]]:
    return (
        [each for each in values if isinstance(each, Mapping)] if isinstance(values, list) else []
    )


def _string_tuple(names: object) -> tuple[str, ...]:
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _string_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""
