"""Where the dialects of SQL differ in what a name means. Pure."""

from dataclasses import dataclass, field
from typing import Literal

import sqlglot

from documents.catalogue.tables import CatalogueError

#: How names are compared: case never matters; it does between quotes; or it always does, and names
#: without quotes are taken in small letters.
Case = Literal["any", "quoted", "folded"]

_QUOTED = frozenset(
    {"postgres", "redshift", "materialize", "risingwave", "oracle", "snowflake", "db2", "exasol"}
)
#: They fold names without quotes to small letters, which is how their databases tell them.
_FOLDED = frozenset({"postgres", "redshift", "materialize", "risingwave"})
#: A name in double quotes that is nobody's is a text.
_LENIENT_QUOTES = frozenset({"sqlite"})
_ALIAS_IN_WHERE = frozenset(
    {"sqlite", "duckdb", "snowflake", "redshift", "databricks", "clickhouse", "teradata"}
)
#: What is selected may speak of what was selected before it.
_ALIAS_IN_SELECT = frozenset(
    {"snowflake", "redshift", "databricks", "spark", "duckdb", "clickhouse", "teradata"}
)
#: Databases of theirs have a table of one row.
_DUAL = frozenset({"oracle", "mysql", "exasol"})
#: A column may have fields: `column.field`.
_FIELDS = frozenset(
    {"", "bigquery", "duckdb", "spark", "spark2", "databricks", "hive", "clickhouse", "snowflake"}
    | {"trino", "presto", "athena", "starrocks", "doris"}
)
#: A table's name stands for a whole row.
_WHOLE_ROWS = frozenset({"", "postgres", "redshift", "duckdb", "bigquery", "materialize"})
#: A common table expression may speak of itself without RECURSIVE.
_SELF_REFERENCE = frozenset({"", "tsql", "oracle", "fabric", "exasol"})
_PSEUDO = {
    "sqlite": {"rowid", "_rowid_", "oid"},
    "postgres": {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"},
    "oracle": {"rownum", "rowid", "level", "sysdate", "systimestamp", "user"},
    "bigquery": {"_partitiontime", "_partitiondate", "_table_suffix"},
    "snowflake": {"metadata$filename", "metadata$file_row_number"},
}
_LABELS = {"postgresql": "postgres", "sqlite": "sqlite", "mysql": "mysql", "mariadb": "mysql"} | {
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
class Rules:
    """What a name means in one dialect; `name` is sqlglot's, empty for none in particular."""

    name: str = ""
    case: Case = "any"
    lenient_quotes: bool = False
    alias_in_where: bool = False
    alias_in_select: bool = False
    has_dual: bool = False
    fields: bool = True
    whole_rows: bool = True
    self_reference: bool = True
    pseudo_columns: frozenset[str] = field(default=frozenset())


def rules_of(dialect: str, *, database: str = "") -> Rules:
    """What holds in a dialect, for the database of this label.

    Raises CatalogueError for a dialect that there is not.
    """
    if dialect not in known():
        raise CatalogueError(
            f"There is no SQL dialect {dialect}: {', '.join(sorted(known())[1:])}."
        )
    return Rules(
        name=dialect,
        case=_case(dialect, database),
        lenient_quotes=dialect in _LENIENT_QUOTES,
        alias_in_where=dialect in _ALIAS_IN_WHERE,
        alias_in_select=dialect in _ALIAS_IN_SELECT,
        has_dual=dialect in _DUAL,
        fields=dialect in _FIELDS,
        whole_rows=dialect in _WHOLE_ROWS,
        self_reference=dialect in _SELF_REFERENCE,
        pseudo_columns=frozenset(_PSEUDO.get(dialect, set())),
    )


def _case(dialect: str, database: str) -> Case:
    """A script does not say in which case the database keeps a name; the database itself does."""
    if dialect in _FOLDED and "://" in database:
        return "folded"
    return "quoted" if dialect in _QUOTED else "any"


def known() -> frozenset[str]:
    """The dialects; the empty one is none in particular."""
    return frozenset(dialect.value for dialect in sqlglot.Dialects)


def dialect_of(database: str) -> str:
    """The dialect of a database by the label that the catalogue gave it, such as
    `postgresql://host:5432/shop`; empty where that says nothing."""
    return _LABELS.get(database.partition("://")[0], "") if "://" in database else ""
