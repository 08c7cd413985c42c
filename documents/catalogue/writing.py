"""A table as a document that reads well and is found by the words of its names."""

import re
from typing import Any

from documents.catalogue.tables import Column, ForeignKey, Table
from documents.catalogue.words import with_words, words_of
from documents.ingestion.sources import Source

#: A comment is worth a paragraph; what is longer is a manual.
_MAX_COMMENT = 2_000
#: Metadata are copied to each passage of a table, and indexed.
MAX_COLUMNS_CHARACTERS = 12_000
_SPACE = re.compile(r"\s+")


def table_source(table: Table, *, database: str, language: str) -> Source:
    """One document: the key is `schema.table`, so that an unchanged table is passed over."""
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
    """`sales.customerOrders: customer orders`."""
    words = words_of(table.name.name)
    return f"{table.name}: {words}" if words != table.name.name.lower() else str(table.name)


def table_text(table: Table) -> str:
    """Markdown: what it is, its columns, one a line, and its keys."""
    what = "View" if table.is_view else "Table"
    place = f" in schema {with_words(table.name.schema)}" if table.name.schema else ""
    parts = [f"{what} {with_words(table.name.name)}{place}. {_one_line(table.comment)}".strip()]
    if table.columns:
        parts.append("Columns:")
        parts.append("\n".join(_column(column, table) for column in table.columns))
    keys = list(_keys(table))
    if keys:
        parts.append("Keys:")
        parts.append("\n".join(f"- {key}" for key in keys))
    return "\n\n".join(parts) + "\n"


def table_metadata(table: Table, *, database: str) -> dict[str, Any]:
    """What the graph makes edges of, filters ask for, and SQL is checked against.

    Columns of a table that has very many are left to its text.
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


def _column(column: Column, table: Table) -> str:
    facts = [column.type] if column.type else []
    if column.name in table.primary_key:
        facts.append("primary key")
    elif not column.is_nullable:
        facts.append("required")
    line = f"- {': '.join(filter(None, (with_words(column.name), ', '.join(facts))))}."
    if column.comment:
        line += f" {_one_line(column.comment)}"
    if column.samples:
        line += f" Such as {'; '.join(column.samples)}."
    return line


def _keys(table: Table) -> list[str]:
    keys = [_reference(key) for key in table.foreign_keys]
    keys += [f"Unique: {', '.join(columns)}." for columns in table.unique]
    return keys


def _reference(key: ForeignKey) -> str:
    columns = f" ({', '.join(key.referenced_columns)})" if key.referenced_columns else ""
    return f"{', '.join(key.columns)} refers to {key.references}{columns}."


def _one_line(comment: str) -> str:
    return _SPACE.sub(" ", comment).strip()[:_MAX_COMMENT]
