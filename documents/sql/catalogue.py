"""The tables of a catalogued database, looked up by name as its SQL dialect compares names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import sqlglot
from django.utils.translation import gettext

from documents.catalogue.tables import CatalogueError, Table

#: How names are compared: ignoring case; case-sensitive if quoted; or always case-sensitive, with
#: unquoted names in lower case.
CaseRule = Literal["any", "quoted", "folded"]

_CASE_SENSITIVE_IF_QUOTED = frozenset(
    {"postgres", "redshift", "materialize", "risingwave", "oracle", "snowflake", "db2", "exasol"}
)
#: Dialects whose databases fold unquoted names to lower case.
_FOLDED_TO_LOWER_CASE = frozenset({"postgres", "redshift", "materialize", "risingwave"})
#: An unknown name in double quotes is a string literal.
LENIENT_QUOTES = frozenset({"sqlite"})
ALIAS_IN_WHERE = frozenset(
    {"sqlite", "duckdb", "snowflake", "redshift", "databricks", "clickhouse", "teradata"}
)
#: Projections may refer to earlier aliases.
ALIAS_IN_SELECT = frozenset(
    {"snowflake", "redshift", "databricks", "spark", "duckdb", "clickhouse", "teradata"}
)
#: Dialects with a one-row table `dual`.
DUAL = frozenset({"oracle", "mysql", "exasol"})
#: A column may have fields: `column.field`.
FIELDS = frozenset(
    {"", "bigquery", "duckdb", "spark", "spark2", "databricks", "hive", "clickhouse", "snowflake"}
    | {"trino", "presto", "athena", "starrocks", "doris"}
)
#: A table's name can be used for its row.
WHOLE_ROWS = frozenset({"", "postgres", "redshift", "duckdb", "bigquery", "materialize"})
#: A common table expression may refer to itself without RECURSIVE.
SELF_REFERENCE = frozenset({"", "tsql", "oracle", "fabric", "exasol"})
_PSEUDO_COLUMNS = {
    "sqlite": {"rowid", "_rowid_", "oid"},
    "postgres": {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"},
    "oracle": {"rownum", "rowid", "level", "sysdate", "systimestamp", "user"},
    "bigquery": {"_partitiontime", "_partitiondate", "_table_suffix"},
    "snowflake": {"metadata$filename", "metadata$file_row_number"},
}
_DIALECT_OF_SCHEME = {
    "postgresql": "postgres",
    "sqlite": "sqlite",
    "mysql": "mysql",
    "mariadb": "mysql",
} | {
    "mssql": "tsql",
    "oracle": "oracle",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "duckdb": "duckdb",
    "clickhouse": "clickhouse",
    "trino": "trino",
    "redshift": "redshift",
}


@dataclass(frozen=True, slots=True)
class DialectRules:
    """One dialect: `name` is sqlglot's, empty for generic SQL, and `case` how it compares names.
    What else holds of it is in the sets above."""

    name: str = ""
    case: CaseRule = "any"

    @property
    def pseudo_columns(self) -> Collection[str]:
        return _PSEUDO_COLUMNS.get(self.name, ())


def dialect_rules(dialect: str, *, database: str = "") -> DialectRules:
    """The rules of a dialect for a database with this label. Raises CatalogueError for an unknown
    dialect."""
    if dialect not in known_dialects():
        raise CatalogueError(
            gettext("The SQL dialect {dialect} does not exist. Choose one of: {dialects}.").format(
                dialect=dialect, dialects=", ".join(sorted(known_dialects())[1:])
            )
        )
    case: CaseRule = "quoted" if dialect in _CASE_SENSITIVE_IF_QUOTED else "any"
    if dialect in _FOLDED_TO_LOWER_CASE and "://" in database:
        # A connected database says how it stores case; a script does not.
        case = "folded"
    return DialectRules(dialect, case)


def known_dialects() -> frozenset[str]:
    """Names of all dialects; the empty one is generic SQL."""
    return frozenset(dialect.value for dialect in sqlglot.Dialects)


def guess_dialect(database: str) -> str:
    """The dialect of a database by its catalogue label, such as `postgresql://host:5432/shop`;
    empty if unknown."""
    return _DIALECT_OF_SCHEME.get(database.partition("://")[0], "") if "://" in database else ""


#: Schemas searched first for an unqualified name.
_DEFAULT_SCHEMAS = ("", "public", "main", "dbo")


@dataclass(frozen=True, slots=True)
class SqlName:
    """A name as written in a statement."""

    text: str
    is_quoted: bool = False

    def means(self, name: str, case: CaseRule = "any") -> bool:
        """Whether it refers to `name`, by the dialect's case rule."""
        if self.is_quoted and case != "any":
            return self.text == name
        if case == "folded":
            return self.text.lower() == name
        return self.text.casefold() == name.casefold()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """A database label and its tables, catalogued in one collection."""

    database: str
    tables: tuple[Table, ...]
    collection_id: int | None = None

    def find(self, name: SqlName, schema: SqlName | None, case: CaseRule) -> Sequence[Table]:
        """Tables that `name` may refer to: one, none, or several in different schemas."""
        matches = [
            table
            for table in self.tables
            if name.means(table.name.name, case)
            and (
                schema is None
                or schema.means(table.name.schema, case)
                or (not table.name.schema and schema.text.casefold() in _DEFAULT_SCHEMAS)
            )
        ]
        if len(matches) > 1:
            matches = [table for table in matches if table.name.name == name.text] or matches
        if len(matches) > 1 and schema is None:
            for usual in _DEFAULT_SCHEMAS:
                own = [table for table in matches if table.name.schema.casefold() == usual]
                if own:
                    return own[:1]
        return matches

    @property
    def names(self) -> list[str]:
        """Names of all tables, with schemas."""
        return [str(table.name) for table in self.tables]

    def with_column(self, name: SqlName) -> list[str]:
        """Names of the tables with this column."""
        return [
            str(table.name)
            for table in self.tables
            if any(name.means(column.name) for column in table.columns)
        ]
