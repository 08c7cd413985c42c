"""Every table and column of a query, looked up in the catalogue as the query's scopes have it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlglot import exp

from documents.catalogue.tables import Table
from rag.sql.catalogue import Catalogue, Name
from rag.sql.columns import ColumnFaults, written
from rag.sql.dialects import Rules
from rag.sql.faults import Fault, hint, shown
from rag.sql.sources import Columns, Frame, Source, all_columns

Ctes = Mapping[str, Columns]

#: Parts of a SELECT that `_Resolver.select` looks at on their own.
_FROM = ("from_", "joins", "laterals", "expressions", "with_", "where")
#: Where the names of what is selected are known besides those of what is selected from.
_WITH_NAMES = ("order", "sort")
_WITH_ALIASES = ("group", "having", "qualify", "distinct", "windows", *_WITH_NAMES)


class Resolver:
    """Looks through one query; `faults` and `used` are what it finds."""

    def __init__(self, catalogue: Catalogue, rules: Rules) -> None:
        self._catalogue = catalogue
        self._rules = rules
        self._columns = ColumnFaults(catalogue, rules)
        self._ctes: Ctes = {}
        self.used: dict[str, Table] = {}

    @property
    def faults(self) -> list[Fault]:
        """In the order in which they were met, each once."""
        return list(dict.fromkeys(self._columns.faults))

    def query(self, node: exp.Expr, outer: tuple[Frame, ...] = ()) -> Columns:
        """The columns that a query gives. `outer` are the frames around it, the nearest first."""
        with self._with(node, outer):
            if isinstance(node, exp.Select):
                return self._select(node, outer)
            if isinstance(node, exp.SetOperation):
                return self._set_operation(node, outer)
            if isinstance(node, exp.Subquery):
                inner = self.query(node.this, outer)
                self._ordered(node, inner, outer)
                return inner
            if isinstance(node, exp.Table):
                frame = Frame()
                self._source(node, frame, outer)
                return all_columns(frame.sources)
            self._expressions([node], (Frame(), *outer))
            return None

    @contextmanager
    def _with(self, node: exp.Expr, outer: tuple[Frame, ...]) -> Iterator[None]:
        """The common table expressions that `node` begins with are known within it."""
        clause: Any = node.args.get("with_")
        before = self._ctes
        for cte in clause.expressions if clause else ():
            own = tuple(cte.alias_column_names)
            name = cte.alias.casefold()
            if clause.args.get("recursive") or self._rules.self_reference:
                self._ctes = {**self._ctes, name: own or _named(cte.this)}
            given = self.query(cte.this, outer)
            self._ctes = {**self._ctes, name: _renamed(given, own)}
        try:
            yield
        finally:
            self._ctes = before

    def _set_operation(self, node: exp.SetOperation, outer: tuple[Frame, ...]) -> Columns:
        first = self.query(node.this, outer)
        self.query(node.expression, outer)
        self._ordered(node, first, outer)
        return first

    def _ordered(self, node: exp.Expr, columns: Columns, outer: tuple[Frame, ...]) -> None:
        """What stands behind a whole query knows the names that it gives, and no others."""
        frame = Frame([Source("", columns)])
        for part in ("order", "limit", "offset"):
            self._expressions([node.args.get(part)], (frame, *outer))

    def _select(self, node: exp.Select, outer: tuple[Frame, ...]) -> Columns:
        frame = Frame()
        if clause := node.args.get("from_"):
            self._source(clause.this, frame, outer)
        conditions = self._join(node.args.get("joins"), frame, outer)
        for lateral in node.args.get("laterals") or ():
            self._source(lateral, frame, outer)
        frames = (frame, *outer)
        self._expressions(conditions, frames)
        aliases = {each.alias.casefold() for each in node.expressions if each.alias}
        self._expressions(node.expressions, frames, aliases if self._rules.alias_in_select else ())
        inside = aliases if self._rules.alias_in_where else set()
        self._expressions([node.args.get("where")], frames, inside)
        given = self._given(node.expressions, frame)
        names = aliases | {name.casefold() for name in given or ()}
        for part, value in node.args.items():
            if part not in _FROM:
                known = names if part in _WITH_NAMES else aliases
                self._expressions(
                    value if isinstance(value, list) else [value],
                    frames,
                    known if part in _WITH_ALIASES else set(),
                )
        return given

    def _given(self, projections: Iterable[exp.Expr], frame: Frame) -> Columns:
        names: list[str] = []
        for each in projections:
            if not each.is_star:
                names.append(each.output_name or self._unnamed(each))
                continue
            of = frame.sources
            if isinstance(each, exp.Column):
                named = frame.called(written(each.args["table"]), None)
                of = [named] if named else []
            columns = all_columns(of) if of else None
            if columns is None or _leaves_out(each):
                return None
            names += columns
        return tuple(names)

    def _unnamed(self, projection: exp.Expr) -> str:
        """What databases call a column that the query gives no name: as the function, mostly."""
        if isinstance(projection, exp.Subquery) and isinstance(projection.this, exp.Select):
            inner = projection.this.expressions[0]
            return str(inner.output_name) or self._unnamed(inner)
        return projection.sql(dialect=self._rules.name).partition("(")[0].strip().lower()

    # --- FROM ------------------------------------------------------------------------------------

    def _join(self, joins: Any, frame: Frame, outer: tuple[Frame, ...]) -> list[exp.Expr]:
        """Add what is joined; its conditions, to be looked at when all of FROM is known."""
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

    def _source(self, node: exp.Expr, frame: Frame, outer: tuple[Frame, ...]) -> None:
        if isinstance(node, exp.Table):
            frame.sources.append(self._table(node, frame, outer))
        elif isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
            # Brackets around a join.
            self._source(node.this, frame, outer)
        elif isinstance(node, exp.Subquery):
            columns = self.query(node, outer)
            frame.sources.append(_derived(node, columns))
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = self.query(node.this, (frame, *outer))
            frame.sources.append(_derived(node, columns))
        else:
            # A function that gives rows, or VALUES: it may speak of what stands before it.
            self._expressions([node], (frame, *outer))
            frame.sources.append(_of_function(node))
        if pivots := node.args.get("pivots"):
            pivoted = frame.sources.pop()
            frame.sources.append(Source(pivots[-1].alias or pivoted.name, None))
        self._expressions(self._join(node.args.get("joins"), frame, outer), (frame, *outer))

    def _table(self, node: exp.Table, frame: Frame, outer: tuple[Frame, ...]) -> Source:
        own = tuple(node.alias_column_names)
        if not isinstance(node.this, exp.Identifier):
            self._expressions([node.this], (frame, *outer))
            return Source(node.alias_or_name, own or None)
        name = written(node.this)
        if not node.args.get("db") and name.text.casefold() in self._ctes:
            return Source(node.alias_or_name, _renamed(self._ctes[name.text.casefold()], own))
        table = self._find(node, name)
        columns = tuple(column.name for column in table.columns) if table else ()
        schema = "" if node.alias else node.db or (table.name.schema if table else "")
        return Source(node.alias_or_name, _renamed(columns or None, own), schema, table)

    def _find(self, node: exp.Table, name: Name) -> Table | None:
        schema = written(node.args["db"]) if node.args.get("db") else None
        found = self._catalogue.find(name, schema, self._rules.case)
        if not found and self._rules.has_dual and name.text.casefold() == "dual":
            return None
        if len(found) == 1:
            self.used[str(found[0].name)] = found[0]
            return found[0]
        label = f"{schema.text}.{name.text}" if schema else name.text
        if found:
            names = ", ".join(str(table.name) for table in found)
            message = f"The table {shown(label)} may be any of {names}. Name its schema."
            self._columns.note(Fault("ambiguous", label, message))
        else:
            known = hint(label, self._catalogue.names, what="There are")
            self._columns.note(Fault("table", label, f"There is no table {shown(label)}. {known}"))
        return None

    # --- expressions -----------------------------------------------------------------------------

    def _expressions(
        self,
        nodes: Iterable[Any],
        frames: tuple[Frame, ...],
        aliases: Iterable[str] = (),
        bound: frozenset[str] = frozenset(),
    ) -> None:
        """Look at every column in `nodes`. `aliases` are names that are known besides; `bound` are
        parameters of a lambda around them."""
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


def _derived(node: exp.Expr, columns: Columns) -> Source:
    own = tuple(getattr(node, "alias_column_names", ()))
    return Source(node.alias, _renamed(columns, own))


def _of_function(node: exp.Expr) -> Source:
    """What a function or VALUES gives: the columns that its alias names, and their number."""
    own = list(getattr(node, "alias_column_names", ()))
    numbers = (each.args.get("offset") for each in node.find_all(exp.Unnest))
    own += [number.name for number in numbers if isinstance(number, exp.Identifier) and own]
    return Source(node.alias, tuple(own) or None)


def _renamed(columns: Columns, own: tuple[str, ...]) -> Columns:
    """The columns under the names that an alias gives to the first of them."""
    if not own:
        return columns
    return own if columns is None else (*own, *columns[len(own) :])


def _named(node: exp.Expr) -> Columns:
    """What a query says that it gives, before it was looked at."""
    names = tuple(node.named_selects) if isinstance(node, exp.Query) else ()
    return None if not names or any(name in ("", "*") for name in names) else names


def _leaves_out(projection: exp.Expr) -> bool:
    """Whether it is a star with exceptions or other names."""
    star = projection.find(exp.Star)
    return star is not None and any(star.args.values())
