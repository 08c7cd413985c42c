"""Which statements pass: one that reads, and nothing else."""

import logging
import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from common.wording import shortened
from rag.sql.dialects import Rules
from rag.sql.faults import Fault, shown

MAX_CHARACTERS = 20_000

#: They write, wait, read files, ask elsewhere or change the session, from within a SELECT.
_REFUSED = re.compile(
    r"(pg_(?!get_|typeof|size_|column_size|table_size|relation_size|total_relation_size)\w+"
    r"|lo_\w+|dblink\w*|set_config|nextval|setval|sleep|benchmark|get_lock|release_lock|load_file"
    r"|load_extension|writefile|readfile|edit|fts3_tokenizer|xp_\w+|sp_\w+|openrowset|openquery"
    r"|opendatasource|query_to_xml\w*|database_to_xml\w*|table_to_xml\w*|schema_to_xml\w*"
    r"|cursor_to_xml\w*|utl_\w+|dbms_\w+|sys_eval|sys_exec|read_csv\w*|read_parquet|read_json\w*"
    r"|read_text|read_blob|parquet_scan|sqlite_scan|postgres_scan|httpfs\w*|url|file|remote\w*|s3)",
    re.IGNORECASE,
)
_WRITES = (
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
_ONLY = "Write one SELECT that only reads."

# It would print every statement that it does not understand.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def read_statement(sql: str, rules: Rules) -> exp.Query | Fault:
    """The one query that `sql` is, or why it does not pass."""
    if len(sql) > MAX_CHARACTERS:
        return Fault("syntax", "", f"The SQL has more than {MAX_CHARACTERS:,} characters.")
    try:
        parsed = [each for each in sqlglot.parse(sql, read=rules.name) if each is not None]
    except ParseError as error:
        return Fault("syntax", "", f"The SQL cannot be read: {_place(error)}")
    except (SqlglotError, RecursionError) as error:
        reason = shortened(str(error), 200) or "it is nested too deeply"
        return Fault("syntax", "", f"The SQL cannot be read: {reason}.")
    if len(parsed) != 1:
        what = f"There are {len(parsed)} statements." if parsed else "There is no statement."
        return Fault("refused", "", f"{what} {_ONLY}")
    if isinstance(parsed[0], exp.Select) and not parsed[0].expressions:
        return Fault("syntax", "", f"The SQL selects nothing. {_ONLY}")
    return _reading(parsed[0])


def _reading(parsed: exp.Expr) -> exp.Query | Fault:
    if not isinstance(parsed, exp.Query):
        return Fault("refused", "", f"{parsed.key.upper()} does not only read. {_ONLY}")
    if (other := parsed.find(*_WRITES)) is not None:
        return Fault("refused", "", f"{other.key.upper()} does not only read. {_ONLY}")
    for call in parsed.find_all(exp.Func):
        name = call.name if isinstance(call, exp.Anonymous) else call.sql_name()
        if _REFUSED.fullmatch(name):
            return Fault(
                "refused", name, f"The function {shown(name)} does more than read. {_ONLY}"
            )
    return parsed


def _place(error: ParseError) -> str:
    """The first of what the parser found, without its colours."""
    first = error.errors[0] if error.errors else {}
    near = f"{first.get('start_context', '')[-30:]}{first.get('highlight', '')}".strip()
    reason = str(first.get("description") or "it is no SQL").rstrip(".")
    where = f" at line {first['line']}, near {shown(near)}" if first.get("line") and near else ""
    return f"{reason}{where}."
