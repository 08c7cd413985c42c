"""A few values of each column, where somebody asks for them; never of what looks secret."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, String, cast, func, select
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table
from sqlalchemy.exc import SQLAlchemyError

from documents.catalogue.tables import Column, Table
from documents.catalogue.words import words_of

MAX_SAMPLES = 20
#: Read to find values that differ.
_ROWS = 200
_MAX_CHARACTERS = 60

#: In the name of a column or its table, as words or run together.
_SECRET = (
    "password", "passwd", "passphrase", "pwd", "secret", "token", "hash", "salt", "credential",
    "private key", "api key", "apikey", "access key", "auth", "otp", "pin", "cvv", "cvc", "ssn",
    "iban", "card number", "session", "signature", "cookie", "jwt", "signing", "encrypted",
)  # fmt: skip
_TEXTS = re.compile(r"CHAR|TEXT|CLOB|STRING|ENUM|\bNAME\b", re.I)
_FIGURES = re.compile(r"INT|NUM|DEC|FLOAT|DOUBLE|REAL|MONEY|BOOL|DATE|TIME|YEAR|SERIAL", re.I)


def looks_secret(name: str) -> bool:
    """Whether a column or table of this name may hold what nobody must read."""
    words = f" {words_of(name)} "
    together = words.replace(" ", "")
    return any(
        f" {secret} " in words
        or f" {secret}s " in words
        # Short ones are part of many a harmless word.
        or (len(secret) > 4 and secret.replace(" ", "") in together)
        for secret in _SECRET
    )


def samples_of(connection: Connection, table: Table, *, count: int) -> Table:
    """The table with up to `count` different values for each column that may be shown.

    Views are not asked: what they cost is not known. Nor is a table that may not be read.
    """
    if table.is_view or looks_secret(table.name.name):
        return table
    shown = [column for column in table.columns if _may_be_shown(column)]
    if not shown:
        return table
    rows = _first_rows(connection, table, shown)
    found = {
        column.name: _different([row[index] for row in rows], min(count, MAX_SAMPLES))
        for index, column in enumerate(shown)
    }
    columns = (replace(column, samples=found.get(column.name, ())) for column in table.columns)
    return replace(table, columns=tuple(columns))


def _may_be_shown(column: Column) -> bool:
    is_readable = _TEXTS.search(column.type) or _FIGURES.search(column.type)
    return bool(is_readable) and not looks_secret(column.name)


def _first_rows(
    connection: Connection, table: Table, columns: Sequence[Column]
) -> Sequence[Sequence[Any]]:
    """In the order of the key, so that a second run reads the same."""
    source = sql_table(
        table.name.name,
        *(sql_column(column.name) for column in table.columns),
        schema=table.name.schema or None,
    )
    query = select(*(_shortened(source.c[column.name], column) for column in columns))
    order = [source.c[name] for name in table.primary_key if name in source.c]
    try:
        return connection.execute(query.order_by(*order).limit(_ROWS)).all()
    except SQLAlchemyError:
        connection.rollback()
        return []


def _shortened(value: Any, column: Column) -> Any:
    if _TEXTS.search(column.type):
        return func.substr(cast(value, String), 1, _MAX_CHARACTERS + 1)
    return value


def _different(values: Sequence[Any], count: int) -> tuple[str, ...]:
    shown = (_shown(value) for value in values if value is not None)
    return tuple(list(dict.fromkeys(text for text in shown if text))[:count])


def _shown(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
