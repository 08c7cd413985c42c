"""Statements kept as SQL in files, and what they bring."""

from functools import cache
from pathlib import Path
from typing import Any

from common.replicas import read_connection
from graph.scopes import Parameters

SQL_DIRECTORY = Path(__file__).parent / "sql"


@cache
def piece(name: str) -> str:
    """The text of `sql/<name>.sql`."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text(encoding="utf-8").strip()


def rows(statement: str, parameters: Parameters) -> list[tuple[Any, ...]]:
    """All that the statement brings."""
    with read_connection().cursor() as cursor:
        cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def named_rows(statement: str, parameters: Parameters) -> list[dict[str, Any]]:
    """The same, each with the names of its columns."""
    with read_connection().cursor() as cursor:
        cursor.execute(statement, parameters)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
