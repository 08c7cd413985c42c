"""What the FROM of a query offers: tables and derived ones, by the names that columns may have."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from documents.catalogue.tables import Table
from rag.sql.catalogue import Name
from rag.sql.dialects import Case

#: Names of columns in their order; None where they cannot be known, and any will do.
Columns = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to select from. `schema` is that of a table, by which it may be called too;
    `table` is what it says of the catalogue, if it is one of its tables."""

    name: str
    columns: Columns
    schema: str = ""
    table: Table | None = None

    @property
    def label(self) -> str:
        """What a person knows it as."""
        return str(self.table.name) if self.table else self.name

    def has(self, name: Name, case: Case) -> bool:
        """Whether it has the column for certain."""
        # Case matters where the catalogue knows the name; derived ones the query made itself.
        own: Case = case if self.table else "any"
        return any(name.means(each, own) for each in self.columns or ())


@dataclass(slots=True)
class Frame:
    """Everything in one FROM. Columns of USING and NATURAL JOIN are one though several have it."""

    sources: list[Source] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)

    def called(self, name: Name, schema: Name | None) -> Source | None:
        """The source of this name."""
        for source in self.sources:
            if name.means(source.name) and (schema is None or schema.means(source.schema)):
                return source
        return None

    def with_column(self, name: Name, case: Case) -> list[Source]:
        """The sources that have it for certain; of a merged one only the first."""
        found = [source for source in self.sources if source.has(name, case)]
        return found[:1] if name.text.casefold() in self.merged else found

    @property
    def is_open(self) -> bool:
        """Whether some source may have any column."""
        return any(source.columns is None for source in self.sources)

    def merge(self, names: Iterable[str]) -> None:
        """Take the columns of these names for one."""
        self.merged.update(name.casefold() for name in names)

    def common_names(self) -> set[str]:
        """Of the last source's columns those that another has, too."""
        *before, last = self.sources
        there = {name.casefold() for source in before for name in source.columns or ()}
        return there & {name.casefold() for name in last.columns or ()}


def all_columns(sources: Iterable[Source]) -> Columns:
    """What `*` selects."""
    names: list[str] = []
    for source in sources:
        if source.columns is None:
            return None
        names += source.columns
    return tuple(names)
