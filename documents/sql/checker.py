"""Check SQL against the catalogue: one statement, read only, every name known. Begin with
`check_sql`."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from django.utils.translation import gettext
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from common.errors import InvalidInput
from common.text import truncated
from documents.catalogue.tables import Table
from documents.sql.catalogue import Catalogue, DialectRules, dialect_rules, guess_dialect
from documents.sql.resolver import QueryChecker, SqlFault, quote_name

MAX_SQL_CHARACTERS = 20_000

#: Functions that write, wait, read files, call other systems or change the session within a SELECT.
_REFUSED_FUNCTIONS = re.compile(
    r"(pg_(?!get_|typeof|size_|column_size|table_size|relation_size|total_relation_size)\w+"
    r"|lo_\w+|dblink\w*|set_config|nextval|setval|sleep|benchmark|get_lock|release_lock|load_file"
    r"|load_extension|writefile|readfile|edit|fts3_tokenizer|xp_\w+|sp_\w+|openrowset|openquery"
    r"|opendatasource|query_to_xml\w*|database_to_xml\w*|table_to_xml\w*|schema_to_xml\w*"
    r"|cursor_to_xml\w*|utl_\w+|dbms_\w+|sys_eval|sys_exec|read_csv\w*|read_parquet|read_json\w*"
    r"|read_text|read_blob|parquet_scan|sqlite_scan|postgres_scan|httpfs\w*|url|file|remote\w*|s3)",
    re.IGNORECASE,
)
_WRITE_EXPRESSIONS = (
    exp.DML,
    exp.DDL,
    exp.Drop,
    exp.Alter,
    exp.TruncateTable,
    exp.Command,
    exp.Pragma,
    exp.Set,
    exp.Use,
    exp.Into,
    exp.Lock,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Kill,
    exp.Attach,
    exp.Detach,
    exp.Grant,
)
_WRITE_ONE_SELECT = "Write one SELECT that only reads."

# sqlglot would log every statement that it cannot parse.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_select(sql: str, rules: DialectRules) -> exp.Query | SqlFault:
    """The single query in `sql`, or the fault that rejects it."""
    if len(sql) > MAX_SQL_CHARACTERS:
        return SqlFault("syntax", "", f"The SQL has more than {MAX_SQL_CHARACTERS:,} characters.")
    try:
        parsed = [each for each in sqlglot.parse(sql, read=rules.name) if each is not None]
    except ParseError as error:
        # The first error, without terminal colours.
        first = error.errors[0] if error.errors else {}
        near = f"{first.get('start_context', '')[-30:]}{first.get('highlight', '')}".strip()
        reason = str(first.get("description") or "it is no SQL").rstrip(".")
        line = first.get("line")
        where = f" at line {line}, near {quote_name(near)}" if line and near else ""
        return SqlFault("syntax", "", f"The SQL cannot be read: {reason}{where}.")
    except (SqlglotError, RecursionError) as error:
        reason = truncated(str(error), 200) or "it is nested too deeply"
        return SqlFault("syntax", "", f"The SQL cannot be read: {reason}.")
    if len(parsed) != 1:
        what = f"There are {len(parsed)} statements." if parsed else "There is no statement."
        return SqlFault("refused", "", f"{what} {_WRITE_ONE_SELECT}")
    if isinstance(parsed[0], exp.Select) and not parsed[0].expressions:
        return SqlFault("syntax", "", f"The SQL selects nothing. {_WRITE_ONE_SELECT}")
    return _require_read_only(parsed[0])


def _require_read_only(parsed: exp.Expr) -> exp.Query | SqlFault:
    if not isinstance(parsed, exp.Query):
        return SqlFault(
            "refused", "", f"{parsed.key.upper()} does not only read. {_WRITE_ONE_SELECT}"
        )
    if (other := parsed.find(*_WRITE_EXPRESSIONS)) is not None:
        return SqlFault(
            "refused", "", f"{other.key.upper()} does not only read. {_WRITE_ONE_SELECT}"
        )
    for call in parsed.find_all(exp.Func):
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
        if _REFUSED_FUNCTIONS.fullmatch(name):
            return SqlFault(
                "refused",
                name,
                f"The function {quote_name(name)} does more than read. {_WRITE_ONE_SELECT}",
            )
    return parsed


#: Faults reported at most, enough for a model to correct.
MAX_FAULTS = 8


@dataclass(frozen=True, slots=True)
class SqlCheck:
    """Result of a check: the database the statement fits best, the tables it uses, and faults, none
    if it passes. `query` is the statement as it was read, `entries` are its tables by the `id` of
    their nodes in it; `collection_id` is where the database is catalogued."""

    sql: str
    database: str
    used: tuple[Table, ...] = ()
    faults: tuple[SqlFault, ...] = ()
    query: exp.Query | None = None
    entries: Mapping[int, Table] = field(default_factory=dict)
    collection_id: int | None = None

    @property
    def passes(self) -> bool:
        """Whether the statement has no faults."""
        return not self.faults

    @property
    def reason(self) -> str:
        """All faults in one text."""
        return " ".join(map(str, self.faults))


def check_sql(sql: str, databases: Sequence[Catalogue], *, dialect: str = "") -> SqlCheck:
    """Check a statement against that of several databases which it fits best; the first of equal
    ones. Without `dialect` it is guessed from the database's label. Raises CatalogueError for an
    unknown dialect, and InvalidInput without any database."""
    if not databases:
        raise InvalidInput(
            gettext("There are no tables to check the query against. Catalogue a database first.")
        )
    found = []
    for catalogue in databases:
        database = catalogue.database
        rules = dialect_rules(dialect or guess_dialect(database), database=database)
        read = parse_select(sql, rules)
        if isinstance(read, SqlFault):
            found.append(SqlCheck(sql, database, faults=(read,)))
            continue
        resolver = QueryChecker(catalogue, rules)
        try:
            resolver.query(read)
        except RecursionError:
            deep = SqlFault("syntax", "", "The SQL is nested too deeply. Write it flatter.")
            found.append(SqlCheck(sql, database, faults=(deep,)))
        else:
            faults = tuple(resolver.faults)[:MAX_FAULTS]
            used = tuple(resolver.used.values())
            found.append(
                SqlCheck(
                    sql,
                    database,
                    used,
                    faults,
                    query=read,
                    entries=resolver.entries,
                    collection_id=catalogue.collection_id,
                )
            )

    def rank(checked: SqlCheck) -> tuple[int, int]:
        # Unknown tables count more than unknown columns for choosing the database.
        return sum(fault.kind == "table" for fault in checked.faults), len(checked.faults)

    return min(found, key=rank)
