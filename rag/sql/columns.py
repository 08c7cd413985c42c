"""Whether a column means one thing, and what is wrong where it means none or several."""

from sqlglot import exp

from rag.sql.catalogue import Catalogue, Name
from rag.sql.dialects import Rules
from rag.sql.faults import Fault, hint, shown
from rag.sql.sources import Frame, Source

#: Written without quotes as an argument of a function, they are no columns.
_UNITS = frozenset(
    {"year", "years", "quarter", "month", "months", "week", "weeks", "day", "days", "hour", "hours"}
    | {"minute", "minutes", "second", "seconds", "millisecond", "microsecond", "dow", "doy"}
    | {"isodow", "isoyear", "epoch", "decade", "century", "yy", "yyyy", "mm", "dd", "hh", "mi"}
    | {"ss", "weekday", "dayofyear"}
)


#: What stands here is meant as a column, whatever the quotes.
_SELECTING = (exp.Select, exp.Alias, exp.Ordered, exp.Group, exp.AggFunc)


def written(identifier: exp.Expr) -> Name:
    """A name as it is written."""
    return Name(identifier.name, bool(identifier.args.get("quoted")))


class ColumnFaults:
    """Looks columns up in the frames around them, the nearest first, and gathers what is wrong."""

    def __init__(self, catalogue: Catalogue, rules: Rules) -> None:
        self._catalogue = catalogue
        self._rules = rules
        self.faults: list[Fault] = []

    def note(self, fault: Fault) -> None:
        """Something else that is wrong."""
        self.faults.append(fault)

    def check(self, column: exp.Column, frames: tuple[Frame, ...], aliases: frozenset[str]) -> None:
        """`aliases` are names of what is selected, where they are known."""
        if column.args.get("table"):
            self._qualified(column, frames)
        elif column.name.casefold() not in aliases and not column.is_star:
            self._bare(column, frames)

    def joined(self, identifier: exp.Expr, frame: Frame) -> None:
        """A column of USING, which what is joined and something before it must have."""
        name = written(identifier)
        *before, last = frame.sources
        for sources in ([last], before):
            known = any(source.columns is None or self._has(source, name) for source in sources)
            if not known:
                self._unknown(name, sources)

    def _qualified(self, column: exp.Column, frames: tuple[Frame, ...]) -> None:
        name, owner = written(column.this), written(column.args["table"])
        schema = written(column.args["db"]) if column.args.get("db") else None
        for frame in frames:
            if (source := frame.called(owner, schema)) is not None:
                if not column.is_star and source.columns is not None:
                    self._require(source, name)
                return
        if self._rules.fields and self._is_field(schema or owner, owner, frames):
            return
        names = [source.name for frame in frames for source in frame.sources if source.name]
        label = f"{schema.text}.{owner.text}" if schema else owner.text
        self.note(
            Fault(
                "alias",
                f"{label}.{name.text}",
                f"{shown(f'{label}.{name.text}')}: no table of this query is called"
                f" {shown(label)}. {hint(label, names, what='There are')}",
            )
        )

    def _is_field(self, first: Name, second: Name, frames: tuple[Frame, ...]) -> bool:
        """Whether `first` is a column that may have fields, or a table with such a column."""
        for frame in frames:
            source = frame.called(first, None)
            if self._found(frame, first) or (source and self._has(source, second)):
                return True
        return False

    def _require(self, source: Source, name: Name) -> None:
        if not self._has(source, name) and name.text.casefold() not in self._rules.pseudo_columns:
            self._unknown(name, [source])

    def _bare(self, column: exp.Column, frames: tuple[Frame, ...]) -> None:
        name = written(column.this)
        for frame in frames:
            found = self._found(frame, name)
            if len(found) > 1:
                owners = " and ".join(source.name for source in found)
                message = f"{shown(name.text)} may be a column of {owners}. Say of which."
                return self.note(Fault("ambiguous", name.text, message))
            if found or frame.is_open:
                return None
        if self._is_no_column(column, name, frames):
            return None
        nearest = next((frame.sources for frame in frames if frame.sources), [])
        return self._unknown(name, nearest)

    def _is_no_column(self, column: exp.Column, name: Name, frames: tuple[Frame, ...]) -> bool:
        if name.text.casefold() in self._rules.pseudo_columns:
            return True
        if name.is_quoted:
            selected = isinstance(column.parent, _SELECTING)
            return self._rules.lenient_quotes and not selected
        if self._rules.whole_rows and any(frame.called(name, None) for frame in frames):
            return True
        call = column.parent
        takes_units = isinstance(call, exp.Func) and not isinstance(call, exp.AggFunc)
        return takes_units and name.text.casefold() in _UNITS

    def _unknown(self, name: Name, sources: list[Source]) -> None:
        owners = [source for source in sources if source.columns is not None]
        known = list(dict.fromkeys(each for source in owners for each in source.columns or ()))
        where = ", ".join(source.label for source in owners)
        if not owners:
            start = f"{shown(name.text)} is no column: there is no FROM to take it from."
        elif len(owners) == 1:
            start = f"{where} has no column {shown(name.text)}."
        else:
            start = f"None of {where} has a column {shown(name.text)}."
        parts = [start, hint(name.text, known)]
        if elsewhere := self._catalogue.with_column(name)[:3]:
            parts.append(f"A column of this name is in {', '.join(elsewhere)}.")
        self.note(Fault("column", name.text, " ".join(filter(None, parts))))

    def _has(self, source: Source, name: Name) -> bool:
        return source.has(name, self._rules.case)

    def _found(self, frame: Frame, name: Name) -> list[Source]:
        return frame.with_column(name, self._rules.case)
