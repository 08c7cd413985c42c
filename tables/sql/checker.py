"""SQL of a language model over offered views: what may be run is built here, of known parts only.
Begin with `check_query`.

Everything that is not on a list is refused: kinds of expressions, functions, types, names. The text
that is run is generated from the checked tree, never taken from the model (docs/decisions/0097).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from common.text import truncated
from documents.sql.catalogue import Catalogue, DialectRules
from documents.sql.checker import MAX_FAULTS, parse_select
from documents.sql.resolver import QueryChecker, SqlFault, quote_name
from tables.sql.views import View

MAX_SQL_CHARACTERS = 8_000
#: Expressions of a statement, levels of them, tables that it names, and columns that it selects.
MAX_NODES, MAX_DEPTH, MAX_SOURCES, MAX_SELECTED = 800, 80, 12, 40
#: Texts that are put together: each may double the length of a value.
MAX_CONCATENATIONS = 4
#: A pattern of LIKE: characters, and wildcards for any text.
MAX_PATTERN_CHARACTERS, MAX_WILDCARDS = 100, 5

_RULES = DialectRules("postgres", "folded")
_DIALECT = "postgres"

_CLAUSES: frozenset[type[exp.Expr]] = frozenset(
    {exp.Select, exp.From, exp.Where, exp.Join, exp.Group, exp.Having, exp.Order, exp.Ordered}
    | {exp.Limit, exp.Offset, exp.Fetch, exp.LimitOptions, exp.With, exp.CTE, exp.TableAlias}
    | {exp.Table, exp.Identifier, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.Distinct}
)
_EXPRESSIONS: frozenset[type[exp.Expr]] = frozenset(
    {exp.Column, exp.Star, exp.Alias, exp.Paren, exp.Tuple, exp.Literal, exp.Boolean, exp.Null}
    | {exp.Neg, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE}
    | {exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.NullSafeEQ, exp.NullSafeNEQ}
    | {exp.Exists, exp.Any, exp.All, exp.Case, exp.If, exp.Add, exp.Sub, exp.Mul, exp.Div}
    | {exp.Mod, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.DPipe}
    | {exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup}
)
_FUNCTIONS: frozenset[type[exp.Expr]] = frozenset(
    # aggregates
    {exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop, exp.StddevSamp}
    | {exp.Variance, exp.VariancePop, exp.Corr, exp.LogicalAnd, exp.LogicalOr}
    | {exp.PercentileCont, exp.PercentileDisc, exp.Mode}
    # windows
    | {exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile}
    | {exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue}
    # numbers
    | {exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Trunc, exp.Sign, exp.Sqrt, exp.Ln, exp.Exp}
    | {exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least}
    # dates
    | {exp.CurrentDate, exp.Extract, exp.TimestampTrunc, exp.TimeToStr, exp.StrToDate}
    | {exp.DateFromParts}
    # texts
    | {exp.Lower, exp.Upper, exp.Initcap, exp.Length, exp.Trim, exp.Left, exp.Right}
    | {exp.Substring, exp.SplitPart, exp.StrPosition, exp.Concat, exp.ConcatWs}
)
_ALLOWED = _CLAUSES | _EXPRESSIONS | _FUNCTIONS
#: Functions that sqlglot has no class for.
_NAMED_FUNCTIONS = frozenset({"age", "make_date", "every", "btrim", "ltrim", "rtrim", "to_char"})
_TYPES = frozenset(
    {exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DOUBLE, exp.DType.FLOAT}
    | {exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.DATE, exp.DType.BOOLEAN}
    | {exp.DType.TIMESTAMP, exp.DType.INTERVAL}
)
#: What clauses may say beside expressions, by their names in sqlglot: the rest is refused.
_CLAUSE_PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"with_", "expressions", "distinct", "from_", "joins", "where", "group", "having"}
        | {"windows", "order", "limit", "offset"}
    ),
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except),
        frozenset({"this", "expression", "distinct", "with_", "order", "limit", "offset"}),
    ),
    exp.Table: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Star: frozenset[str](),
    exp.Join: frozenset({"this", "side", "kind", "on", "using"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Group: frozenset({"expressions"}),
    exp.Distinct: frozenset({"expressions", "on"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.LimitOptions: frozenset({"rows", "with_ties"}),
}
_UNITS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
    | {"EPOCH", "DOW", "ISODOW", "DOY", "ISOYEAR"}
)


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query that may be run. Every name in `tree` is in quotes and exact; tables are `views`, by
    their names, or its own common table expressions."""

    tree: exp.Query
    views: tuple[View, ...]

    @property
    def sql(self) -> str:
        """The query over the views, as people read it."""
        return generate(self.tree, pretty=True)

    @property
    def is_starred(self) -> bool:
        """Whether it selects all columns of something."""
        return any(not isinstance(star.parent, exp.Count) for star in self.tree.find_all(exp.Star))

    @property
    def names(self) -> frozenset[str]:
        """Names of all columns that it may read."""
        if self.is_starred:
            return frozenset(each.name for view in self.views for each in view.columns)
        return frozenset(each.name for each in self.tree.find_all(exp.Identifier))


def generate(tree: exp.Expr, *, pretty: bool = False) -> str:
    """The tree as SQL of PostgreSQL, with all names in quotes and no comments."""
    return tree.sql(dialect=_DIALECT, identify=True, comments=False, pretty=pretty)


def check_query(text: str, views: Sequence[View]) -> CheckedQuery | tuple[SqlFault, ...]:
    """The query in `text`, or why it may not be run."""
    if len(text) > MAX_SQL_CHARACTERS:
        message = f"The SQL has more than {MAX_SQL_CHARACTERS:,} characters."
        return (SqlFault("syntax", "", message),)
    try:
        if any(token.comments for token in sqlglot.tokenize(text, read=_DIALECT)):
            return (SqlFault("refused", "", "The SQL has a comment. Leave comments out."),)
    except SqlglotError as error:
        return (SqlFault("syntax", "", f"The SQL cannot be read: {truncated(str(error), 200)}."),)
    parsed = parse_select(text, _RULES)
    if isinstance(parsed, SqlFault):
        return (parsed,)
    _write_names_out(parsed)
    faults = tuple(dict.fromkeys(_refused(parsed))) or tuple(dict.fromkeys(_unknown(parsed, views)))
    if faults:
        return faults[:MAX_FAULTS]
    _cast_to_numeric(parsed)
    used = {each.name for each in parsed.find_all(exp.Table)}
    return CheckedQuery(parsed, tuple(view for view in views if view.name in used))


def _fault(node: exp.Expr, message: str) -> SqlFault:
    name = node.sql(dialect=_DIALECT, comments=False)
    return SqlFault("refused", name, f"{quote_name(name)}: {message}")


def _refused(tree: exp.Expr) -> Iterator[SqlFault]:
    """Faults of what the tree is made of, whatever its names mean."""
    count = 0
    stack = [(tree, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > MAX_NODES or depth > MAX_DEPTH:
            yield SqlFault("refused", "", "The SQL is too long or nested too deeply.")
            return
        yield from _refused_node(node)
        stack += [(child, depth + 1) for child in node.iter_expressions()]
    if sum(1 for _ in tree.find_all(exp.Table)) > MAX_SOURCES:
        yield SqlFault("refused", "", f"The SQL names more than {MAX_SOURCES} tables.")
    texts = sum(1 for _ in tree.find_all(exp.DPipe))
    texts += sum(len(each.expressions) for each in tree.find_all(exp.Concat, exp.ConcatWs))
    if texts > MAX_CONCATENATIONS:
        message = f"The SQL puts more than {MAX_CONCATENATIONS} texts together."
        yield SqlFault("refused", "", message)
    singles = _single_rows(tree)
    for select in tree.find_all(exp.Select):
        if len(select.expressions) > MAX_SELECTED:
            yield SqlFault("refused", "", f"Select at most {MAX_SELECTED} columns.")
        for join in select.args.get("joins") or ():
            yield from _refused_join(join, select, singles)


def _refused_node(node: exp.Expr) -> Iterator[SqlFault]:
    kind = type(node)
    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in _NAMED_FUNCTIONS or not isinstance(node.this, str):
            yield _fault(node, "this function may not be used.")
    elif kind not in _ALLOWED:
        what = "this function" if isinstance(node, exp.Func) else "this"
        yield _fault(node, f"{what} may not be used.")
    elif kind in _CLAUSE_PARTS and any(
        part not in _CLAUSE_PARTS[kind] for part, value in node.args.items() if value
    ):
        yield _fault(node, "write it plainly, or leave it out.")
    else:
        yield from _refused_value(node)


def _refused_value(node: exp.Expr) -> Iterator[SqlFault]:
    """Faults of a node of an allowed kind."""
    if isinstance(node, exp.Identifier) and node.name.startswith("_"):
        yield _fault(node, "names may not begin with _.")
    elif isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
        yield _fault(node, "only tables may be selected from.")
    elif isinstance(node, exp.With) and node.parent is not node.root():
        yield _fault(node, "WITH may stand only at the beginning of the statement.")
    elif isinstance(node, exp.Table) and node.alias_column_names:
        yield _fault(node, "give the columns their names in the SELECT.")
    elif isinstance(node, exp.DataType) and node.this not in _TYPES:
        yield _fault(node, "this type may not be used.")
    elif isinstance(node, exp.Var) and node.name.upper() not in _UNITS:
        yield _fault(node, "this may not be used.")
    elif isinstance(node, exp.Like | exp.ILike):
        yield from _refused_pattern(node)
    elif isinstance(node, exp.Limit | exp.Offset | exp.Fetch):
        number = node.args.get("count") or node.expression
        if number is not None and not (isinstance(number, exp.Literal) and not number.is_string):
            yield _fault(node, "write a number.")


def _refused_pattern(node: exp.Like | exp.ILike) -> Iterator[SqlFault]:
    """A pattern is a short text of the statement: PostgreSQL tries many ways to match long ones."""
    pattern = node.expression
    texts = [each.name for each in pattern.find_all(exp.Literal)]
    length, wildcards = sum(map(len, texts)), sum(text.count("%") for text in texts)
    if pattern.find(exp.Column, exp.Query) or not texts:
        yield _fault(node, "compare with a text, such as LIKE 'Ferry%'.")
    elif length > MAX_PATTERN_CHARACTERS or wildcards > MAX_WILDCARDS:
        yield _fault(
            node,
            f"use at most {MAX_PATTERN_CHARACTERS} characters and {MAX_WILDCARDS} times % in LIKE.",
        )


def _single_rows(tree: exp.Expr) -> frozenset[str]:
    """Names of common table expressions that give one row."""
    return frozenset(each.alias for each in tree.find_all(exp.CTE) if _gives_one_row(each.this))


def _gives_one_row(query: exp.Expr) -> bool:
    """Whether it only aggregates, without groups."""
    return (
        isinstance(query, exp.Select)
        and bool(query.args.get("from_"))
        and not query.args.get("group")
        and all(
            any(
                each.find_ancestor(exp.Window, exp.Select) is query
                for each in projection.find_all(exp.AggFunc)
            )
            for projection in query.expressions
        )
    )


def _refused_join(
    join: exp.Join, select: exp.Select, singles: frozenset[str]
) -> Iterator[SqlFault]:
    """Every joined row must be found by an equal value, but for one row: each with each would be a
    square of the rows."""
    if join.args.get("using"):
        return
    if condition := join.args.get("on"):
        joined = join.this.alias_or_name
        for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            part = each.unnest()
            if isinstance(part, exp.EQ) and not part.find(exp.Query):
                left, right = (
                    {column.table for column in side.find_all(exp.Column)}
                    for side in (part.this, part.expression)
                )
                if {joined} in (left, right) and left.isdisjoint(right) and left and right:
                    return
    first = select.args["from_"].this if select.args.get("from_") else None
    for source in (join.this, first):
        if isinstance(source, exp.Table) and source.name in singles:
            return
        if isinstance(source, exp.Subquery) and _gives_one_row(source.this):
            return
    yield _fault(
        join,
        "join by an equal value, with the names of the tables: ON a.x = b.y. Or use UNION ALL.",
    )


def _cast_to_numeric(tree: exp.Expr) -> None:
    """Where PostgreSQL has a function or operator for `numeric` only: rounding to decimals, %."""
    for call in list(tree.find_all(exp.Round, exp.Trunc, exp.Mod)):
        if isinstance(call, exp.Mod):
            call.set("this", exp.cast(call.this.copy(), "decimal"))
            call.set("expression", exp.cast(call.expression.copy(), "decimal"))
        elif call.args.get("decimals"):
            call.set("this", exp.cast(call.this.copy(), "decimal"))


def _write_names_out(tree: exp.Expr) -> None:
    """Write names as PostgreSQL reads them: those without quotes in small letters, then all in
    quotes."""
    for each in tree.find_all(exp.Identifier):
        name = each.name if each.args.get("quoted") else each.name.lower()
        each.set("this", name)
        each.set("quoted", True)


def _unknown(tree: exp.Query, views: Sequence[View]) -> Iterator[SqlFault]:
    """Faults of names: only offered views, their columns, and what the query itself names."""
    offered = {view.name for view in views}
    known: set[str] = set()
    for each in tree.find_all(exp.CTE):
        if each.alias in offered | known:
            yield _fault(each, "this name is taken: call it otherwise.")
        # Seen from here on: what stands before it does not mean it.
        for table in each.this.find_all(exp.Table):
            if table.name not in offered | known:
                yield SqlFault("table", table.name, _no_table(table.name, views))
        known.add(each.alias)
    sources = {each.alias_or_name for each in tree.find_all(exp.Table, exp.Subquery)}
    for table in tree.find_all(exp.Table):
        if table.name not in offered | known:
            yield SqlFault("table", table.name, _no_table(table.name, views))
    columns = {each.name for view in views for each in view.columns}
    for column in tree.find_all(exp.Column):
        # PostgreSQL would take these for a whole row, or for a column of the system.
        if not column.table and column.name in sources and not column.is_star:
            yield _fault(column, "this is a table. Write the column with its table's name.")
        if column.name in _RULES.pseudo_columns and column.name not in columns:
            yield _fault(column, "columns of the system may not be used.")
    catalogue = Catalogue("", tuple(view.as_catalogued for view in views))
    resolver = QueryChecker(catalogue, _RULES)
    try:
        resolver.query(tree)
    except RecursionError:
        yield SqlFault("syntax", "", "The SQL is nested too deeply. Write it flatter.")
    # Unknown tables are named above, also where a name is only known later.
    yield from (fault for fault in resolver.faults if fault.kind != "table")


def _no_table(name: str, views: Sequence[View]) -> str:
    names = ", ".join(view.name for view in views)
    return f"There is no table {quote_name(name)} here. There are: {names}."
