"""The tables of one database, looked up by the names that a statement writes. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from documents.catalogue.tables import Table
from rag.sql.dialects import Case

#: Where a name without schema is looked for first.
_DEFAULT_SCHEMAS = ("", "public", "main", "dbo")


@dataclass(frozen=True, slots=True)
class Name:
    """A name as a statement writes it."""

    text: str
    is_quoted: bool = False

    def means(self, name: str, case: Case = "any") -> bool:
        """Whether it is `name`."""
        if self.is_quoted and case != "any":
            return self.text == name
        if case == "folded":
            return self.text.lower() == name
        return self.text.casefold() == name.casefold()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A database and its tables."""

    database: str
    tables: tuple[Table, ...]

    def find(self, name: Name, schema: Name | None, case: Case) -> Sequence[Table]:
        """Tables that may be meant: one, or none, or several of as many schemas."""
        meant = [
            table
            for table in self.tables
            if name.means(table.name.name, case)
            and (schema is None or _lies_in(table, schema, case))
        ]
        if len(meant) > 1:
            meant = _exact(meant, name) or meant
        if len(meant) > 1 and schema is None:
            for usual in _DEFAULT_SCHEMAS:
                own = [table for table in meant if table.name.schema.casefold() == usual]
                if own:
                    return own[:1]
        return meant

    @property
    def names(self) -> list[str]:
        """Of all tables, as they are written."""
        return [str(table.name) for table in self.tables]

    def with_column(self, name: Name) -> list[str]:
        """Tables that have such a column."""
        return [
            str(table.name)
            for table in self.tables
            if any(name.means(column.name) for column in table.columns)
        ]


def _lies_in(table: Table, schema: Name, case: Case) -> bool:
    """A script that names no schema means the usual one."""
    if not table.name.schema:
        return schema.text.casefold() in _DEFAULT_SCHEMAS
    return schema.means(table.name.schema, case)


def _exact(tables: Iterable[Table], name: Name) -> list[Table]:
    return [table for table in tables if table.name.name == name.text]
