"""What is known of a table, whether a database or a script told it."""

from dataclasses import dataclass, field

from common.errors import RagsiteError


class CatalogueError(RagsiteError):
    """A database or script that cannot be catalogued; the message tells the cure, no password."""

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


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """A definition that could not be understood, and the cure."""

    name: str
    reason: str
