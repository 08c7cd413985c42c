"""SQL checked against what is catalogued: it only reads, and every name in it means something."""

from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import InvalidInput
from documents.catalogue.tables import Table
from rag.sql.catalogue import Catalogue
from rag.sql.dialects import Rules, dialect_of, rules_of
from rag.sql.faults import Fault
from rag.sql.resolving import Resolver
from rag.sql.statements import read_statement

#: Enough for a model to mend, and not a page of them.
MOST_FAULTS = 8


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found: the database that the statement is for, tables that it uses, and faults,
    none where it passes."""

    sql: str
    database: str
    used: tuple[Table, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.faults

    @property
    def reason(self) -> str:
        """All faults, as one text."""
        return " ".join(map(str, self.faults))


def check(sql: str, databases: Sequence[Catalogue], *, dialect: str = "") -> Checked:
    """Check one statement against the database, of several, that it fits best.

    Of equal ones the first counts. Without `dialect` it is read in that of the database, as far as
    its label tells one. Raises CatalogueError for an unknown dialect, and InvalidInput without any
    database.
    """
    if not databases:
        raise InvalidInput("There are no tables to check against. Catalogue a database first.")
    found = [_check(sql, catalogue, _rules(dialect, catalogue.database)) for catalogue in databases]
    return min(found, key=_misfit)


def _rules(dialect: str, database: str) -> Rules:
    return rules_of(dialect or dialect_of(database), database=database)


def _misfit(checked: Checked) -> tuple[int, int]:
    """Tables that are not there tell more than columns of which database a statement is for."""
    return sum(fault.kind == "table" for fault in checked.faults), len(checked.faults)


def _check(sql: str, catalogue: Catalogue, rules: Rules) -> Checked:
    read = read_statement(sql, rules)
    if isinstance(read, Fault):
        return Checked(sql, catalogue.database, faults=(read,))
    resolver = Resolver(catalogue, rules)
    try:
        resolver.query(read)
    except RecursionError:
        deep = Fault("syntax", "", "The SQL is nested too deeply. Write it flatter.")
        return Checked(sql, catalogue.database, faults=(deep,))
    faults = tuple(resolver.faults)[:MOST_FAULTS]
    return Checked(sql, catalogue.database, tuple(resolver.used.values()), faults)
