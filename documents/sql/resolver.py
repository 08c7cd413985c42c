"""Resolve every table and column of a query against the catalogue, scope by scope.
Begin with `QueryChecker`; `SqlFault` says what is wrong.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from sqlglot import exp

from common.text import truncated
from documents.catalogue.tables import Table, split_identifier
from documents.sql.catalogue import (
    ALIAS_IN_SELECT,
    ALIAS_IN_WHERE,
    DUAL,
    FIELDS,
    LENIENT_QUOTES,
    SELF_REFERENCE,
    WHOLE_ROWS,
    CaseRule,
    Catalogue,
    DialectRules,
    SqlName,
)

FaultKind = Literal["syntax", "refused", "table", "column", "ambiguous", "alias"]

MAX_LISTED_NAMES = 12
_MAX_SUGGESTIONS = 3
_MIN_SPELLING_SIMILARITY = 0.5
_MAX_NAME_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class SqlFault:
    """`name` is the table or column at fault, as written; empty if the fault concerns no name."""

    kind: FaultKind
    name: str
    message: str

    def __str__(self) -> str:
        return self.message


def quote_name(name: str) -> str:
    """A name for use in a sentence."""
    return f"“{truncated(name, _MAX_NAME_CHARACTERS)}”"


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Known names with similar spelling or shared words, most similar first."""
    forms: dict[str, str] = {}
    for each in known:
        forms.setdefault(each.casefold(), each)
        forms.setdefault(split_identifier(each), each)
    spellings = dict.fromkeys([name.casefold(), split_identifier(name)])
    close = [
        forms[form]
        for each in spellings
        for form in get_close_matches(
            each, forms, n=_MAX_SUGGESTIONS, cutoff=_MIN_SPELLING_SIMILARITY
        )
    ]
    parts = set(split_identifier(name).split())
    sharing = [each for form, each in forms.items() if parts & set(form.split())]
    return list(dict.fromkeys([*close, *sharing]))[:_MAX_SUGGESTIONS]


def suggest_names(name: str, known: Sequence[str], *, what: str = "It has") -> str:
    """Suggest what `name` should be: one that differs in case only, similar ones, or all names if
    none is similar."""
    if same := [each for each in known if each.casefold() == name.casefold()]:
        return f'Write it "{truncated(same[0], _MAX_NAME_CHARACTERS)}", with the double quotes.'
    if close := similar_names(name, known):
        return f"Nearest: {', '.join(map(_shorten_name, close))}."
    names = ", ".join(map(_shorten_name, known[:MAX_LISTED_NAMES]))
    more = ", …" if len(known) > MAX_LISTED_NAMES else ""
    return f"{what}: {names}{more}." if known else ""


def _shorten_name(name: str) -> str:
    return truncated(name, _MAX_NAME_CHARACTERS)


#: Column names in order; None if unknown, when any name is accepted.
ColumnNames = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class FromItem:
    """A table or subquery in FROM. `schema` is that of a table, by which it may be qualified too;
    `table` is its catalogue entry, if it has one."""

    name: str
    columns: ColumnNames
    schema: str = ""
    table: Table | None = None

    @property
    def label(self) -> str:
        """Its name in messages: the table's, or the alias."""
        return str(self.table.name) if self.table else self.name

    def has(self, name: SqlName, case: CaseRule) -> bool:
        """Whether it certainly has the column."""
        # The case rule applies to catalogued names; derived ones come from the query itself.
        own: CaseRule = case if self.table else "any"
        return any(name.means(each, own) for each in self.columns or ())


@dataclass(slots=True)
class QueryScope:
    """Everything in one FROM. Columns of USING and NATURAL JOIN count as one."""

    sources: list[FromItem] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)

    def find(self, name: SqlName, schema: SqlName | None) -> FromItem | None:
        """The item with this name or alias."""
        for source in self.sources:
            if name.means(source.name) and (schema is None or schema.means(source.schema)):
                return source
        return None

    def with_column(self, name: SqlName, case: CaseRule) -> list[FromItem]:
        """The items that certainly have it; only the first if the column is merged."""
        found = [source for source in self.sources if source.has(name, case)]
        return found[:1] if name.text.casefold() in self.merged else found

    @property
    def is_open(self) -> bool:
        """Whether an item may have any column."""
        return any(source.columns is None for source in self.sources)

    def merge(self, names: Iterable[str]) -> None:
        """Treat the columns with these names as one."""
        self.merged.update(name.casefold() for name in names)

    def common_names(self) -> set[str]:
        """Columns of the last item that an earlier one has too."""
        *before, last = self.sources
        there = {name.casefold() for source in before for name in source.columns or ()}
        return there & {name.casefold() for name in last.columns or ()}


def star_columns(sources: Iterable[FromItem]) -> ColumnNames:
    """The columns that `*` selects; None if unknown."""
    names: list[str] = []
    for source in sources:
        if source.columns is None:
            return None
        names += source.columns
    return tuple(names)


#: Unquoted as a function's argument, these are date units and no columns.
_DATE_UNITS = frozenset(
    {"year", "years", "quarter", "month", "months", "week", "weeks", "day", "days", "hour", "hours"}
    | {"minute", "minutes", "second", "seconds", "millisecond", "microsecond", "dow", "doy"}
    | {"isodow", "isoyear", "epoch", "decade", "century", "yy", "yyyy", "mm", "dd", "hh", "mi"}
    | {"ss", "weekday", "dayofyear"}
)


#: In these expressions even a name in double quotes is a column.
_COLUMN_CONTEXTS = (exp.Select, exp.Alias, exp.Ordered, exp.Group, exp.AggFunc)


def name_of(identifier: exp.Expr) -> SqlName:
    """The name of an identifier, and whether it is quoted."""
    return SqlName(identifier.name, bool(identifier.args.get("quoted")))


class ColumnChecker:
    """Look up columns in the scopes around them, the nearest first, and collect faults."""

    def __init__(self, catalogue: Catalogue, rules: DialectRules) -> None:
        self._catalogue = catalogue
        self._rules = rules
        self.faults: list[SqlFault] = []

    def check(
        self, column: exp.Column, frames: tuple[QueryScope, ...], aliases: frozenset[str]
    ) -> None:
        """Check a column; `aliases` are output names visible at this place."""
        if column.args.get("table"):
            self._qualified(column, frames)
        elif column.name.casefold() not in aliases and not column.is_star:
            self._unqualified(column, frames)

    def joined(self, identifier: exp.Expr, frame: QueryScope) -> None:
        """Check a column of USING: the joined table and one before it must have it."""
        name = name_of(identifier)
        *before, last = frame.sources
        for sources in ([last], before):
            known = any(source.columns is None or self._has(source, name) for source in sources)
            if not known:
                self._unknown(name, sources)

    def _qualified(self, column: exp.Column, frames: tuple[QueryScope, ...]) -> None:
        name, owner = name_of(column.this), name_of(column.args["table"])
        schema = name_of(column.args["db"]) if column.args.get("db") else None
        for frame in frames:
            if (source := frame.find(owner, schema)) is not None:
                if (
                    not column.is_star
                    and source.columns is not None
                    and (
                        not self._has(source, name)
                        and name.text.casefold() not in self._rules.pseudo_columns
                    )
                ):
                    self._unknown(name, [source])
                return
        # The first name may be a column that has fields, or a table with such a column.
        first = schema or owner
        if self._rules.name in FIELDS and any(
            self._found(frame, first)
            or ((source := frame.find(first, None)) and self._has(source, owner))
            for frame in frames
        ):
            return
        names = [source.name for frame in frames for source in frame.sources if source.name]
        label = f"{schema.text}.{owner.text}" if schema else owner.text
        self.faults.append(
            SqlFault(
                "alias",
                f"{label}.{name.text}",
                f"{quote_name(f'{label}.{name.text}')}: no table of this query is called"
                f" {quote_name(label)}. {suggest_names(label, names, what='There are')}",
            )
        )

    def _unqualified(self, column: exp.Column, frames: tuple[QueryScope, ...]) -> None:
        name = name_of(column.this)
        for frame in frames:
            found = self._found(frame, name)
            if len(found) > 1:
                owners = " and ".join(source.name for source in found)
                message = f"{quote_name(name.text)} may be a column of {owners}. Say of which."
                self.faults.append(SqlFault("ambiguous", name.text, message))
            if found or frame.is_open:
                return
        call = column.parent
        if name.text.casefold() in self._rules.pseudo_columns:
            return
        if name.is_quoted:
            if self._rules.name in LENIENT_QUOTES and not isinstance(call, _COLUMN_CONTEXTS):
                return
        elif self._rules.name in WHOLE_ROWS and any(frame.find(name, None) for frame in frames):
            return
        else:
            takes_units = isinstance(call, exp.Func) and not isinstance(call, exp.AggFunc)
            if takes_units and name.text.casefold() in _DATE_UNITS:
                return
        self._unknown(name, next((frame.sources for frame in frames if frame.sources), []))

    def _unknown(self, name: SqlName, sources: list[FromItem]) -> None:
        owners = [source for source in sources if source.columns is not None]
        known = list(dict.fromkeys(each for source in owners for each in source.columns or ()))
        where = ", ".join(source.label for source in owners)
        if not owners:
            start = f"{quote_name(name.text)} is no column: there is no FROM to take it from."
        elif len(owners) == 1:
            start = f"{where} has no column {quote_name(name.text)}."
        else:
            start = f"None of {where} has a column {quote_name(name.text)}."
        parts = [start, suggest_names(name.text, known)]
        if elsewhere := self._catalogue.with_column(name)[:3]:
            parts.append(f"A column of this name is in {', '.join(elsewhere)}.")
        self.faults.append(SqlFault("column", name.text, " ".join(filter(None, parts))))

    def _has(self, source: FromItem, name: SqlName) -> bool:
        return source.has(name, self._rules.case)

    def _found(self, frame: QueryScope, name: SqlName) -> list[FromItem]:
        return frame.with_column(name, self._rules.case)


Ctes = Mapping[str, ColumnNames]

#: Clauses of a SELECT that `QueryChecker._select` handles separately.
_HANDLED_CLAUSES = ("from_", "joins", "laterals", "expressions", "with_", "where")
#: Clauses that see output names and aliases besides the columns of FROM.
_CLAUSES_SEEING_OUTPUT = ("order", "sort")
_CLAUSES_SEEING_ALIASES = (
    "group",
    "having",
    "qualify",
    "distinct",
    "windows",
    *_CLAUSES_SEEING_OUTPUT,
)


class QueryChecker:
    """Checks one query; results are in `faults` and `used`."""

    def __init__(self, catalogue: Catalogue, rules: DialectRules) -> None:
        self._catalogue = catalogue
        self._rules = rules
        self._columns = ColumnChecker(catalogue, rules)
        self._ctes: Ctes = {}
        self.used: dict[str, Table] = {}
        #: The entry of each name of a table, by the `id` of its node.
        self.entries: dict[int, Table] = {}

    @property
    def faults(self) -> list[SqlFault]:
        """In the order found, without duplicates."""
        return list(dict.fromkeys(self._columns.faults))

    def query(self, node: exp.Expr, outer: tuple[QueryScope, ...] = ()) -> ColumnNames:
        """Check a query and return its output columns. `outer` are the enclosing scopes, nearest
        first."""
        with self._with(node, outer):
            if isinstance(node, exp.Select):
                return self._select(node, outer)
            if isinstance(node, exp.SetOperation):
                first = self.query(node.this, outer)
                self.query(node.expression, outer)
                self._ordered(node, first, outer)
                return first
            if isinstance(node, exp.Subquery):
                inner = self.query(node.this, outer)
                self._ordered(node, inner, outer)
                return inner
            if isinstance(node, exp.Table):
                frame = QueryScope()
                self._source(node, frame, outer)
                return star_columns(frame.sources)
            self._expressions([node], (QueryScope(), *outer))
            return None

    @contextmanager
    def _with(self, node: exp.Expr, outer: tuple[QueryScope, ...]) -> Iterator[None]:
        """Common table expressions of `node` are visible within it."""
        clause: Any = node.args.get("with_")
        before = self._ctes
        for cte in clause.expressions if clause else ():
            own = tuple(cte.alias_column_names)
            name = cte.alias.casefold()
            if clause.args.get("recursive") or self._rules.name in SELF_REFERENCE:
                # The columns that the query declares, before it is checked.
                declared = tuple(cte.this.named_selects) if isinstance(cte.this, exp.Query) else ()
                is_known = declared and not {"", "*"} & set(declared)
                self._ctes = {**self._ctes, name: own or (declared if is_known else None)}
            given = self.query(cte.this, outer)
            self._ctes = {**self._ctes, name: _apply_aliases(given, own)}
        try:
            yield
        finally:
            self._ctes = before

    def _ordered(self, node: exp.Expr, columns: ColumnNames, outer: tuple[QueryScope, ...]) -> None:
        """ORDER BY, LIMIT and OFFSET of a whole query see its output names only."""
        frame = QueryScope([FromItem("", columns)])
        for part in ("order", "limit", "offset"):
            self._expressions([node.args.get(part)], (frame, *outer))

    def _select(self, node: exp.Select, outer: tuple[QueryScope, ...]) -> ColumnNames:
        frame = QueryScope()
        if clause := node.args.get("from_"):
            self._source(clause.this, frame, outer)
        conditions = self._join(node.args.get("joins"), frame, outer)
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, frame, outer)
        frames = (frame, *outer)
        self._expressions(conditions, frames)
        aliases = {each.alias.casefold() for each in node.expressions if each.alias}
        self._expressions(
            node.expressions, frames, aliases if self._rules.name in ALIAS_IN_SELECT else ()
        )
        inside = aliases if self._rules.name in ALIAS_IN_WHERE else set()
        self._expressions([node.args.get("where")], frames, inside)
        given = self._output_columns(node.expressions, frame)
        names = aliases | {name.casefold() for name in given or ()}
        for part, value in node.args.items():
            if part not in _HANDLED_CLAUSES:
                known = names if part in _CLAUSES_SEEING_OUTPUT else aliases
                self._expressions(
                    value if isinstance(value, list) else [value],
                    frames,
                    known if part in _CLAUSES_SEEING_ALIASES else set(),
                )
        return given

    def _output_columns(self, projections: Iterable[exp.Expr], frame: QueryScope) -> ColumnNames:
        names: list[str] = []
        for each in projections:
            if not each.is_star:
                names.append(each.output_name or self._default_column_name(each))
                continue
            of = frame.sources
            if isinstance(each, exp.Column):
                named = frame.find(name_of(each.args["table"]), None)
                of = [named] if named else []
            columns = star_columns(of) if of else None
            star = each.find(exp.Star)  # `*`, perhaps with exceptions or renamed columns
            if columns is None or (star is not None and any(star.args.values())):
                return None
            names += columns
        return tuple(names)

    def _default_column_name(self, projection: exp.Expr) -> str:
        """The default name databases give an unnamed output column: mostly the function's."""
        if isinstance(projection, exp.Subquery) and isinstance(projection.this, exp.Select):
            inner = projection.this.expressions[0]
            return str(inner.output_name) or self._default_column_name(inner)
        return projection.sql(dialect=self._rules.name).partition("(")[0].strip().lower()

    # --- FROM ------------------------------------------------------------------------------------

    def _join(self, joins: Any, frame: QueryScope, outer: tuple[QueryScope, ...]) -> list[exp.Expr]:
        """Add joined tables and return their conditions, which are checked once FROM is
        complete."""
        conditions: list[exp.Expr] = []
        for join in joins or ():
            self._source(join.this, frame, outer)
            using = join.args.get("using") or ()
            if join.args.get("method") == "NATURAL":
                frame.merge(frame.common_names())
            for each in using:
                self._columns.joined(each, frame)
            frame.merge(each.name for each in using)
            conditions += [each for each in [join.args.get("on")] if each is not None]
        return conditions

    def _source(self, node: exp.Expr, frame: QueryScope, outer: tuple[QueryScope, ...]) -> None:
        if isinstance(node, exp.Table):
            frame.sources.append(self._table(node, frame, outer))
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            # Parentheses around a join.
            self._source(node.this, frame, outer)
        elif isinstance(node, exp.Subquery):
            columns = self.query(node, outer)
            frame.sources.append(_derived_table(node, columns))
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = self.query(node.this, (frame, *outer))
            frame.sources.append(_derived_table(node, columns))
        else:
            # A table function or VALUES, which may refer to earlier items of FROM.
            self._expressions([node], (frame, *outer))
            # Output of a function or VALUES: the columns named by its alias.
            own = list(getattr(node, "alias_column_names", ()))
            numbers = (each.args.get("offset") for each in node.find_all(exp.Unnest))
            own += [number.name for number in numbers if isinstance(number, exp.Identifier) and own]
            function_source = FromItem(node.alias, tuple(own) or None)
            frame.sources.append(function_source)
        if pivots := node.args.get("pivots"):
            pivoted = frame.sources.pop()
            frame.sources.append(FromItem(pivots[-1].alias or pivoted.name, None))
        self._expressions(self._join(node.args.get("joins"), frame, outer), (frame, *outer))

    def _table(self, node: exp.Table, frame: QueryScope, outer: tuple[QueryScope, ...]) -> FromItem:
        own = tuple(node.alias_column_names)
        if not isinstance(node.this, exp.Identifier):
            self._expressions([node.this], (frame, *outer))
            return FromItem(node.alias_or_name, own or None)
        name = name_of(node.this)
        if not node.args.get("db") and name.text.casefold() in self._ctes:
            return FromItem(
                node.alias_or_name, _apply_aliases(self._ctes[name.text.casefold()], own)
            )
        table = self._find(node, name)
        columns = tuple(column.name for column in table.columns) if table else ()
        schema = "" if node.alias else node.db or (table.name.schema if table else "")
        return FromItem(node.alias_or_name, _apply_aliases(columns or None, own), schema, table)

    def _find(self, node: exp.Table, name: SqlName) -> Table | None:
        schema = name_of(node.args["db"]) if node.args.get("db") else None
        found = self._catalogue.find(name, schema, self._rules.case)
        if not found and self._rules.name in DUAL and name.text.casefold() == "dual":
            return None
        if len(found) == 1:
            self.used[str(found[0].name)] = self.entries[id(node)] = found[0]
            return found[0]
        label = f"{schema.text}.{name.text}" if schema else name.text
        if found:
            names = ", ".join(str(table.name) for table in found)
            message = f"The table {quote_name(label)} may be any of {names}. Name its schema."
            self._columns.faults.append(SqlFault("ambiguous", label, message))
        else:
            known = suggest_names(label, self._catalogue.names, what="There are")
            self._columns.faults.append(
                SqlFault("table", label, f"There is no table {quote_name(label)}. {known}")
            )
        return None

    # --- expressions -----------------------------------------------------------------------------

    def _expressions(
        self,
        nodes: Iterable[Any],
        frames: tuple[QueryScope, ...],
        aliases: Iterable[str] = (),
        bound: frozenset[str] = frozenset(),
    ) -> None:
        """Check every column in `nodes`. `aliases` are further visible names; `bound` are
        parameters of an enclosing lambda."""
        for node in nodes:
            if not isinstance(node, exp.Expr):
                continue
            if isinstance(node, exp.Query):
                self.query(node, frames)
            elif isinstance(node, exp.Column):
                if node.name.casefold() not in bound:
                    self._columns.check(node, frames, frozenset(aliases))
            else:
                inner = bound
                if isinstance(node, exp.Lambda):
                    inner |= {each.name.casefold() for each in node.expressions}
                self._expressions(node.iter_expressions(), frames, aliases, inner)


def _derived_table(node: exp.Expr, columns: ColumnNames) -> FromItem:
    own = tuple(getattr(node, "alias_column_names", ()))
    return FromItem(node.alias, _apply_aliases(columns, own))


def _apply_aliases(columns: ColumnNames, own: tuple[str, ...]) -> ColumnNames:
    """The columns with the alias's names for the first of them."""
    if not own:
        return columns
    return own if columns is None else (*own, *columns[len(own) :])
