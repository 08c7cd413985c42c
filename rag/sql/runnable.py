"""The SQL of a checked query that may be run: written anew from what was read, of known parts only,
with tables by their full names. Begin with `runnable_sql`."""

from collections.abc import Mapping

from sqlglot import exp

from documents.catalogue.tables import Table
from documents.sql.catalogue import DialectRules
from documents.sql.checker import SqlCheck, parse_select
from documents.sql.resolver import SqlFault, quote_name

DIALECT = "postgres"


class NotRunnable(Exception):
    """The query has a part that is not run; the message names it."""


#: Whatever else a query is made of, it is made of these.
_PARTS = (
    *(exp.Select, exp.Union, exp.Intersect, exp.Except, exp.Subquery, exp.CTE, exp.With),
    *(exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Order, exp.Ordered),
    *(exp.Limit, exp.Offset, exp.Fetch, exp.Distinct, exp.Table, exp.TableAlias, exp.Alias),
    *(exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren),
    *(exp.Tuple, exp.Values, exp.Lateral, exp.Window, exp.WindowSpec, exp.Filter),
    *(exp.WithinGroup, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Interval, exp.Var),
    # Operators.
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike),
    *(exp.SimilarTo, exp.Escape, exp.Exists, exp.Any, exp.All),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow, exp.Neg, exp.DPipe),
    *(exp.AtTimeZone, exp.Collate),
    # Functions that compute a value of their arguments and nothing else.
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Cast),
    *(exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop),
    *(exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.LogicalAnd, exp.LogicalOr),
    *(exp.PercentileCont, exp.PercentileDisc, exp.Mode, exp.GroupConcat),
    *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
    *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue),
    *(exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Trunc, exp.Sign, exp.Sqrt, exp.Exp),
    *(exp.Ln, exp.Log),
    *(exp.Lower, exp.Upper, exp.Initcap, exp.Length, exp.Trim, exp.Substring, exp.Left),
    *(exp.Right, exp.StrPosition, exp.SplitPart, exp.Concat, exp.ConcatWs, exp.Reverse),
    *(exp.StartsWith, exp.Replace, exp.RegexpLike, exp.Grouping),
    *(exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp, exp.Extract),
    *(exp.TimestampTrunc, exp.DateTrunc),
    *(exp.TimeToStr, exp.ToChar, exp.StrToDate, exp.StrToTime, exp.UnixToTime, exp.ToNumber),
)
_TYPES = frozenset(
    exp.DataType.Type[name]
    for name in (
        *("SMALLINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE", "BOOLEAN"),
        *("CHAR", "VARCHAR", "TEXT", "NCHAR", "NVARCHAR"),
        *("DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "UUID"),
    )
)
#: Functions that sqlglot has no class of its own for.
_FUNCTIONS = frozenset({"age", "date_part", "make_date", "btrim", "ltrim", "rtrim"})
#: A query with more of them in FROM is refused: their product grows too fast.
MAX_TABLES = 16


def runnable_sql(checked: SqlCheck) -> str:
    """One SELECT for PostgreSQL out of a query that passed its check. Raises NotRunnable."""
    if not checked.passes or checked.query is None:
        raise NotRunnable("The query did not pass its check.")
    _check_parts(checked.query)
    for node in checked.query.find_all(exp.Table):
        # A name without an entry is that of a WITH clause, which never has a schema.
        if id(node) not in checked.entries and node.args.get("db"):
            raise NotRunnable(f"There is no table {quote_name(node.sql(DIALECT))}.")
    query, entries = _copied(checked.query, checked.entries)
    for node in query.find_all(exp.Table):
        if (table := entries.get(id(node))) is not None:
            node.set("this", exp.to_identifier(table.name.name, quoted=True))
            schema = table.name.schema or "public"
            node.set("db", exp.to_identifier(schema, quoted=True))
    statement = query.sql(dialect=DIALECT, comments=False)
    # Whatever a text in it was written as, it must be read as what was checked.
    again = parse_select(statement, DialectRules(DIALECT))
    if isinstance(again, SqlFault) or not _same_tables(query, again):
        raise NotRunnable("The query cannot be written anew. Write it more plainly.")
    _check_parts(again)
    return statement


def _same_tables(query: exp.Query, other: exp.Query) -> bool:
    names = [[(node.db, node.name) for node in each.find_all(exp.Table)] for each in (query, other)]
    return names[0] == names[1]


def _check_parts(query: exp.Query) -> None:
    for node in query.walk():
        if isinstance(node, exp.DataType):
            if node.this not in _TYPES or node.args.get("nested"):
                raise NotRunnable(f"The type {quote_name(node.sql(DIALECT))} is not used in runs.")
        elif isinstance(node, exp.DataTypeParam):
            continue
        elif isinstance(node, exp.Var) and not node.name.isidentifier():
            raise NotRunnable(_not_listed(node.name))
        elif isinstance(node, exp.Anonymous):
            if node.name.lower() not in _FUNCTIONS:
                raise NotRunnable(_not_listed(node.name))
        elif type(node) not in _PARTS:
            name = node.sql_name() if isinstance(node, exp.Func) else node.key.upper()
            raise NotRunnable(_not_listed(name))
        if isinstance(node, exp.With) and node.args.get("recursive"):
            raise NotRunnable("Recursive queries are not run. Write it without RECURSIVE.")
        if isinstance(node, exp.Lateral) and not isinstance(node.this, exp.Subquery):
            raise NotRunnable("Functions in FROM are not run. Select from tables alone.")
        if isinstance(node, exp.Table):
            _check_table(node)
    if sum(1 for _ in query.find_all(exp.Table)) > MAX_TABLES:
        raise NotRunnable(f"The query reads more than {MAX_TABLES} tables. Write it with fewer.")


def _check_table(node: exp.Table) -> None:
    allowed = {"this", "db", "alias", "joins"}
    named = {name for name, value in node.args.items() if value}
    if not isinstance(node.this, exp.Identifier) or named - allowed:
        raise NotRunnable(f"{quote_name(node.sql(DIALECT))} is no plain table. Name one.")


def _not_listed(name: str) -> str:
    return (
        f"{quote_name(name)} is not among what is run. Use plain SELECTs with joins, aggregates,"
        " window functions, and usual functions of numbers, texts and dates."
    )


def _copied(query: exp.Query, entries: Mapping[int, Table]) -> tuple[exp.Query, dict[int, Table]]:
    """A copy with the entries of its nodes; the original stays as it is shown."""
    copy = query.copy()
    pairs = zip(query.find_all(exp.Table), copy.find_all(exp.Table), strict=True)
    return copy, {id(new): entries[id(old)] for old, new in pairs if id(old) in entries}
