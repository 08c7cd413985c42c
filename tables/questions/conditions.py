"""Conditions of a question: comparisons with numbers, times, values that occur. Begin with
`Conditions.read_conditions`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from tables.questions.matching import CURRENCIES, MONEY, Match
from tables.questions.plan import Filter, Operator
from tables.questions.reader import NotOfTables, ShapeReader
from tables.questions.words import Span, Time, concepts_of, fold, word_forms

_COMPARISONS: dict[str, Operator] = {
    "above": ">",
    "below": "<",
    "at_least": ">=",
    "at_most": "<=",
    "until": "<=",
    "since": ">=",
    "exactly": "=",
}


#: Prepositions with an article, as they are without.
_CONTRACTED = {"del": "de", "al": "a", "vom": "von", "zum": "zu"}
_OPPOSITES: dict[Operator | None, Operator] = {">": "<=", "<": ">=", ">=": "<", "<=": ">"}
#: Before what each row or group is, never before one value.
_PER = frozenset(("per", "each", "every", "je", "pro", "jede", "jeden", "jedes", "cada"))
#: How headers begin that say their unit in another way.
_UNIT_BEGINNINGS = {
    "km": ("kilomet",),
    "h": ("stunden", "hours", "horas"),
    "min": ("minut",),
    "kg": ("kilogra",),
    "%": ("percent", "prozent", "porcent"),
}
#: Whom a bare number may be the age of.
PERSONS = frozenset(
    (
        *("customer", "employee", "supplier", "donor", "guest", "member", "student", "teacher"),
        *("player", "driver", "patient", "tenant", "author", "name", "responsible"),
    )
)
#: What rows may be, though their table does not say it.
ROW_CONCEPTS = (PERSONS - {"supplier"}) | {
    *("vehicle", "device", "room", "course", "route", "coffee", "wine", "book", "event", "task"),
    *("thing", "tree", "film", "repair", "parcel", "child", "bug", "trip", "appointment", "video"),
    *("vaccination", "campaign", "shift", "house", "animal", "expense"),
    *("machine", "tool", "recipe", "plant", "apartment", "branch", "flight"),
}
#: “With and without”.
WITH = frozenset(("with", "mit", "con"))
_AND = frozenset(("and", "or", "und", "oder", "y", "o"))
_NO = frozenset(("without", "ohne", "sin"))
#: Words of headers whose numbers are millions.
_MILLION_NAMES = frozenset(("million", "millions", "millionen", "mio", "millones", "mill"))


_PARTICIPLE = re.compile(r"ge([a-z]{3,})(?:t|en)")


def _is_participle(word: str, names: Sequence[str]) -> bool:
    """Whether a German word is what was done in a year or on a day: “gepflanzt”, “Pflanzjahr”."""
    found = _PARTICIPLE.fullmatch(word)
    return found is not None and any(
        name.startswith(found[1]) and name.endswith(("jahr", "datum", "tag")) for name in names
    )


def _days(time: Time, year: int) -> tuple[date, date]:
    """The first day of a time, in this year if it names none, and the first one after it."""
    try:
        return time.days(time.year or year)
    except ValueError:  # February 30
        raise NotOfTables from None


@dataclass
class Conditions(ShapeReader):
    """Reads the conditions of a question into `filters`. `loose_joints` counts the words “or” that
    do not join values of one column."""

    loose_joints: int = 0

    def read_conditions(self) -> tuple[Filter, Filter] | None:
        """Read them all; returns two that are compared, if two are."""
        self._rates()
        self._columns_compared()
        self._conditions()
        self._times()
        compared = self._values() or self._with_and_without()
        self._booleans()
        self._empties()
        self._join_alternatives()
        return compared

    # Two columns of a row: "below their reorder level", "over budget"

    def _columns_compared(self) -> None:
        for span in self.question.spans:
            kind = next((kind for kind in _COMPARISONS if kind in span.marks), None)
            if kind is None:
                continue
            at = self._after_small(span.end)
            behind = self.question.span(at)
            if behind and "mean" in behind.marks:
                raise NotOfTables  # “Above average” is compared with a result.
            right = [m for m in self._named_at(at) if m.strength > 1 and self._typed(m, "number")]
            if not right or right[0].end in self.question.numbers:
                continue
            other = int(self._one_of(self._typed(right[0], "number")))
            left = [
                match
                for match in self.mentions
                if match.end <= span.start and match.strength > 1 and self._typed(match, "number")
            ]
            unit = self.shape.columns[other].unit
            columns = (
                self._typed(left[-1], "number")
                if left
                else [
                    index
                    for index in self.shape.measurable
                    if index != other and self.shape.columns[index].unit == unit
                ]
            )
            if len(columns) != 1 or columns[0] == other:
                continue
            self.filters.append(Filter(column=columns[0], op=_COMPARISONS[kind], other=other))
            self._use(span.start, right[0].end, right[0].strength)
            if left:
                self._use(left[-1].start, left[-1].end, left[-1].strength)

    # Conditions on numbers: "more than 4,000", "between 2 and 5 kg", "500 or more"

    def _conditions(self) -> None:
        times = {at for time in self.question.times for at in range(time.start, time.end)}
        for at in sorted(self.question.numbers):
            in_name = self._is_in_name(at)
            if at in self.used or in_name or (at in times and not self._is_compared_number(at)):
                continue
            self._condition(at)

    def _is_in_name(self, at: int) -> bool:
        """Whether a number is a word of a name: “150 and more” of a column."""
        return any(
            m.start <= at < m.end and m.end - m.start > 1 and m.strength >= 2 for m in self.matches
        )

    def _is_compared_number(self, at: int) -> bool:
        """Whether a number that might be a year is compared with a column that is none of dates."""
        span = self._before(at)
        if span is None or not span.marks.keys() & {"above", "below", "at_least", "at_most"}:
            return False
        return not span.marks.keys() & {"since", "until"}

    def _condition(self, at: int) -> None:  # noqa: PLR0912 (one for each form)
        """Add the condition of the number at this place, if it is one of a column."""
        span = self._before(at)
        start, end = at, at + 1
        values: tuple[float, ...] = (self.question.numbers[at],)
        op: Operator | None = None
        concept = ""
        if span and ("than" in span.marks or self.words[span.start : span.end] == ["que"]):
            comparative = self._before(span.start)
            if comparative is None:
                return
            op = ">" if "more" in comparative.marks else "<"
            concept = comparative.marks.get("more") or comparative.marks.get("less", "")
            concept, start = concept.split(" ")[0], comparative.start
            if not concept:
                return
        elif span and "between" in span.marks:
            near = range(at + 1, min(at + 5, len(self.words)))
            second = next((each for each in near if each in self.question.numbers), None)
            if second is None:
                return
            values = (values[0], self.question.numbers[second])
            op, start, end = "between", span.start, second + 1
        elif span or any(match.end == at for match in self.mentions):
            # “Above 20”, “above age 20”
            named = [m for m in self.mentions if m.end == at and self._typed(m, "number")]
            further = self._before(named[0].start) if named else None
            for each in (span, further):
                for kind, sign in _COMPARISONS.items():
                    if each and kind in each.marks and op is None:
                        op, start = sign, each.start
            if op in _OPPOSITES and self._negated(start):
                op = _OPPOSITES[op]
        end, unit = self._unit(at, end)
        after = self.question.span(end)
        if op is None and after and after.marks.keys() & {"or_more", "or_less"}:
            op, end = (">=" if "or_more" in after.marks else "<="), after.end
        if op is None and after and "or" in after.marks and after.end in self.question.numbers:
            values, end = (values[0], self.question.numbers[after.end]), after.end + 1  # “4 or 5”
        column = self._compared_column(start, end, unit, concept, is_equal=op is None)
        if column is None:
            return
        index, match = column
        self._check_unit(index, unit)
        if at in self.question.millions and not _MILLION_NAMES & set(self.shape.names[index]):
            values = tuple(1e6 * value for value in values)
        self.filters.append(Filter(column=index, op=op or "=", values=values))
        self._use(start, end)
        if match:
            self._use(match.start, match.end, match.strength)

    def _unit(self, at: int, end: int) -> tuple[int, str]:
        """The unit beside a number, and where the words end."""
        unit = ""
        if at and self.words[at - 1] in "€$£¥":
            unit = span.marks["units"] if (span := self.question.span(at - 1)) else ""
            self._use(at - 1, at)
        for own in {column.unit for column in self.shape.columns if len(column.unit) > 1}:
            if end < len(self.words) and self.words[end] == fold(own):
                return end + 1, own
        span = self.question.span(end)
        if span and "numbers" in span.marks and float(span.marks["numbers"]) >= 100:
            end, span = span.end, self.question.span(span.end)  # "4 thousand", counted already
        if span and "units" in span.marks:
            return span.end, span.marks["units"]
        if end < len(self.words) and (self.words[end] == "k" or at in self.question.millions):
            end += 1
            if (span := self.question.span(end)) and "units" in span.marks:
                return span.end, span.marks["units"]
        elif span and span.marks.keys() & {"day", "week", "month", "year"}:
            units = [fold(column.unit) for column in self.shape.columns if column.unit]
            if any(word_forms(each) & word_forms(self.words[end]) for each in units):
                return span.end, unit
        return end, unit

    def _check_unit(self, index: int, unit: str) -> None:
        own = self.shape.columns[index].unit
        if unit and own and unit.casefold() != own.casefold():
            raise NotOfTables
        if not unit or own or unit in (*CURRENCIES, "%", "h", "min"):
            return
        if not self._is_measured_in(index, unit):
            raise NotOfTables  # Without a unit of its own the header must say it: “Weight (kg)”.

    def _compared_column(
        self, start: int, end: int, unit: str, concept: str, *, is_equal: bool
    ) -> tuple[int, Match | None] | None:
        """The column of numbers that a number belongs to."""
        numeric = [match for match in self.mentions if self._typed(match, "number")]
        if unit:
            # The unit itself may be in the name of a column that is measured in another one.
            numeric = [
                m
                for m in numeric
                if not (start < m.start and m.end == end)
                or any(self._is_measured_in(i, unit) for i in m.columns)
            ]
        if unit in CURRENCIES:
            sums = {i for each in MONEY for i in self.shape.concepts[each]}
            numeric = [m for m in numeric if sums & set(self._typed(m, "number"))]
        next_word = self._after_small(end)
        behind = [m for m in numeric if m.start in (end - 1, next_word) and next_word < m.end]
        behind = [m for m in behind if self._is_free(m)]
        inside = [m for m in numeric if start < m.start and m.end < end and self._is_free(m)]
        before = [m for m in numeric if m.end <= start and self._is_free(m)]
        if is_equal:
            # A number alone is compared only beside its column: “5 stars”, “rating 5”.
            before = [m for m in before if self._after_small(m.end) == start]
        if concept and concept != "any":
            columns = [
                index
                for index in self.shape.concepts.get(concept, ())
                if self._type(index) == "number"
            ]
            return (self._one_of(columns), None) if columns else None
        is_named = inside or any(match.strength > 1 for match in behind)
        if not (is_equal or unit or is_named) and self._names_rows(next_word):
            raise NotOfTables  # “More than two invoices” compares a count of rows.
        for matches in (inside, *((before, behind) if is_equal else (behind, before[::-1]))):
            if matches:
                nearest = max(
                    (m for m in matches if m.start == matches[0].start), key=lambda m: m.strength
                )
                columns = self._typed(nearest, "number")
                if unit:
                    of_unit = [i for i in columns if self.shape.columns[i].unit == unit]
                    columns = of_unit or columns
                return self._one_of(self._actual(columns)), nearest
        if is_equal:
            return None
        columns = self.shape.measurable
        if unit:
            exact = [i for i in columns if self.shape.columns[i].unit == unit]
            columns = exact or [i for i in columns if self._is_measured_in(i, unit)]
            if not columns and unit in CURRENCIES and not self._has_currency():
                sums = {i for each in MONEY for i in self.shape.concepts[each]}
                columns = [i for i in self.shape.measurable if i in sums]
        elif not self._counts_amounts(start):
            self.is_unsure = True  # “Donors over 60”: pounds or years.
        return (self._one_of(self._actual(columns)), None) if columns else None

    def _has_currency(self) -> bool:
        return any(column.unit in CURRENCIES for column in self.shape.columns)

    def _is_measured_in(self, index: int, unit: str) -> bool:
        """Whether a header says the unit, other than “per” it: “Distance km”, “Kilometerstand”."""
        if self.shape.columns[index].unit == unit:
            return True
        names, beginning = self.shape.names[index], _UNIT_BEGINNINGS.get(unit, ())
        is_named = unit.casefold() in names or any(name.startswith(beginning) for name in names)
        return is_named and index not in self.shape.rates.get(unit, ())

    def _counts_amounts(self, start: int) -> bool:
        """Whether what is compared with a bare number is a row that is an amount, such as an
        invoice, rather than a person or thing."""
        small = {
            at
            for span in self.question.spans
            if "words" in span.marks
            for at in range(span.start, span.end)
        }
        nouns = [at for at in range(start) if at not in small]
        if not nouns or PERSONS & set(concepts_of(self.words[nouns[-1]], is_question=True)):
            return False
        return any(self.is_table_at(at) for at in nouns)

    def _names_rows(self, at: int) -> bool:
        """Whether a word is what rows are called, or are named by."""
        span = self.question.span(at)
        if at >= len(self.words) or (span and "group" in span.marks):
            return False
        return (
            (span is not None and "rows" in span.marks)
            or self._is_of_table(at)
            or self._is_about_table(at)
            or any(match.kind == "table" and match.start == at for match in self.matches)
            or any(self._typed(match, "text") for match in self._named_at(at))
        )

    # Times: "in March", "since 2024", "last month"

    def _times(self) -> None:
        times = self.question.times
        if len(times) == 2:
            joint = self.question.span(times[0].end)
            is_joined = (
                joint is not None
                and self._after_small(joint.end) == times[1].start
                and joint.marks.keys() & {"and", "until", "or"}
            )
            span = self._before(times[0].start)
            # “From January until March”, where the words may be those of one time.
            is_since = times[0].op == ">=" or (span is not None and "between" in span.marks)
            is_from = is_since and times[1].op == "<="
            if is_from or (is_joined and span and "between" in span.marks):
                start = times[0].start
                if span and "between" in span.marks:
                    start = span.start
                self._span_of_days(start, *times)
            elif is_joined and not self._is_comparison():
                self._adjacent_times(*times)
        dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
        for time in self.question.times:
            if self.used & set(range(time.start, time.end)):
                continue
            named = [
                m
                for m in self.matches
                if m.start <= time.start < m.end or time.start <= m.start < time.end
            ]
            if any(m.kind in ("value", "table") and m.strength > 1 for m in named) and not dates:
                continue  # “March” is a value, or in the name of a table
            if any(m.kind == "value" and m.strength >= 3 and m.start < time.start for m in named):
                continue  # The year is the end of a value: “Château Rouge 2019”
            if (column := self._year_column(time)) is not None:
                self._year_filter(time, column)
                continue
            if not dates:
                continue
            mentioned = [m for m in self.mentions if self._typed(m, "date") and self._is_free(m)]
            named_ones = [m for m in mentioned if m.strength > 1]
            # “Due in May”: a verb that one column is about.
            mentioned = named_ones or [m for m in mentioned if self._is_of_one_date(m, dates)]
            columns = {index for m in mentioned for index in self._typed(m, "date")}
            column = columns.pop() if len(columns) == 1 else self._one_of(self._plain_dates(dates))
            for each in mentioned:
                if column in each.columns:
                    self._use(each.start, each.end, each.strength)
            self._time_filter(time, column)

    def _year_column(self, time: Time) -> int | None:
        """The column of years, such as “Year built”, that a time is compared with: where the
        question names it, or there are no dates. Beside dates that it does not name either, it is
        ambiguous which are meant."""
        if not self._is_year(time):
            return None
        columns = self.shape.years
        if len(columns) != 1:
            return None
        named = [m for m in self.mentions if m.strength > 1 or not m.columns[1:]]
        words = [self.words[m.start] for m in named if columns[0] in m.columns]
        words += [word for word in self.words if _is_participle(word, self.shape.names[columns[0]])]
        if not words:
            dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
            if any(set(match.columns) & set(dates) for match in self.mentions):
                return None
            choice: int | None = self._one_of([columns[0], None]) if dates else columns[0]
            return choice
        for at, word in enumerate(self.words):
            if word in words:
                self._use(at, at + 1, 2)
        return columns[0]

    @staticmethod
    def _is_year(time: Time) -> bool:
        is_whole = (time.month, time.months, time.day, time.span) == (1, 12, None, None)
        return time.year is not None and is_whole

    def _year_filter(self, time: Time, column: int) -> None:
        op: Operator = "=" if time.op == "in" else time.op  # type: ignore[assignment]
        self.filters.append(Filter(column=column, op=op, values=(float(time.year or 0),)))
        self._use(time.start, time.end)

    def _is_of_one_date(self, match: Match, dates: list[int]) -> bool:
        return len(dates) > 1 and len(self._typed(match, "date")) == 1

    def _adjacent_times(self, first: Time, last: Time) -> None:
        """“In March and April”: one span where the second time begins as the first one ends."""
        year = first.year or last.year or 2000
        if (first.op, last.op) == ("in", "in") and (_days(first, year)[1] == _days(last, year)[0]):
            self._span_of_days(first.start, first, last)

    def _span_of_days(self, start: int, first: Time, last: Time) -> None:
        """“Between January and March”: a condition from the first day to the last one."""
        of_years = self._year_column(first) if self._is_year(last) else None
        if of_years is not None:
            years = (float(first.year or 0), float(last.year or 0))
            self.filters.append(Filter(column=of_years, op="between", values=years))
            self._use(start, last.end, 1)
            return
        dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
        if not dates:
            return
        index = self._one_of(self._plain_dates(dates))
        column = self.shape.columns[index]
        year = first.year or last.year
        if year is None and column.least and column.most and column.least.year == column.most.year:
            year = column.least.year
        if year is None:
            raise NotOfTables
        days = _days(first, year)[0], _days(last, year)[1]
        self.filters.append(Filter(column=index, op="within", values=days))
        self._use(start, last.end)

    def _plain_dates(self, dates: list[int]) -> list[int]:
        """The column that is only called “Date”, if there is one; of what was spent the day of
        buying or paying, of a stay its first day."""
        if self.question.has("spent"):
            concepts = [c for each in ("bought", "paid") for c in self.shape.concepts.get(each, ())]
            if len(bought := [index for index in dates if index in concepts]) == 1:
                return bought
        stay = [set(self.shape.concepts.get(each, ())) for each in ("arrival", "departure")]
        if len(stay[0]) == 1 and all(stay) and set(dates) == stay[0] | stay[1]:
            return [*stay[0]]  # A stay in August begins in August.
        plain = [
            index
            for index in dates
            if all("date" in concepts_of(w, is_question=False) for w in self.shape.names[index])
        ]
        return plain if len(plain) == 1 else dates

    def _time_filter(self, time: Time, index: int) -> None:
        column = self.shape.columns[index]
        if time.span is not None:
            years = [time.span[0].year]
        elif time.year is not None:
            years = [time.year]
        elif column.least and column.most:
            years = [
                year
                for year in range(column.least.year, column.most.year + 1)
                if _days(time, year)[1] > column.least and _days(time, year)[0] <= column.most
            ][-2:][::-1]
        else:
            years = []
        if not years:
            raise NotOfTables
        first, after = _days(time, self._one_of(years))
        filters: dict[str, Filter] = {
            "in": Filter(column=index, op="within", values=(first, after)),
            "<": Filter(column=index, op="<", values=(first,)),
            "<=": Filter(column=index, op="<", values=(after,)),
            ">": Filter(column=index, op=">=", values=(after,)),
            ">=": Filter(column=index, op=">=", values=(first,)),
        }
        self.filters.append(filters[time.op])
        self._use(time.start, time.end)

    # Values that occur

    def _values(self) -> tuple[Filter, Filter] | None:
        """Add the conditions of values; returns those of two values or times to compare."""
        is_comparison = self._is_comparison()
        found = self._named_values()
        joints = sum("or" in s.marks and self._is_free(s) for s in self.question.spans)
        if not is_comparison:
            self.loose_joints = max(joints - sum(len(values) - 1 for values in found.values()), 0)
        compared: tuple[Filter, Filter] | None = None
        for column, values in found.items():
            filters = [
                Filter(column=column, op="!=" if is_not else "=", values=match.values)
                for match, is_not in values
            ]
            if is_comparison and len(filters) == 2 and compared is None:
                compared = filters[0], filters[1]
            elif any(is_not for _, is_not in values):
                self.filters += filters
            else:
                joined = tuple(dict.fromkeys(v for each in filters for v in each.values))
                self.filters.append(Filter(column=column, op="=", values=joined))
        if is_comparison and compared is None:
            compared = self._compared_numbers()
        if is_comparison and compared is None:
            times = [each for each in self.filters if each.op == "within"]
            if len(times) == 2:
                compared = times[0], times[1]
                self.filters = [each for each in self.filters if each not in times]
        elif len([each for each in self.filters if each.op == "within"]) > 1:
            raise NotOfTables  # “In March and April” is no single span.
        return compared

    def _narrow_parts(self, by_place: dict[int, list[Match]]) -> None:
        """Where words apart name parts of values of one column, such as “full” and “closures”, the
        values that have them all."""
        parts: dict[int, list[tuple[int, Match]]] = {}
        for start, matches in by_place.items():
            for match in matches:
                if match.strength == 2:
                    parts.setdefault(match.columns[0], []).append((start, match))
        for named in parts.values():
            shared = set.intersection(*(set(match.values) for _, match in named))
            if len(named) > 1 and shared:
                for start, match in named:
                    kept = tuple(value for value in match.values if value in shared)
                    at = by_place[start].index(match)
                    by_place[start][at] = replace(match, values=kept)

    def _compared_numbers(self) -> tuple[Filter, Filter] | None:
        """“Season 3 and season 2”: two numbers of one column."""
        equal = [f for f in self.filters if f.op == "=" and self._type(f.column) == "number"]
        if len(equal) != 2 or equal[0].column != equal[1].column:
            return None
        self.filters = [each for each in self.filters if each not in equal]
        return equal[0], equal[1]

    def _named_values(self) -> dict[int, list[tuple[Match, bool]]]:
        """The values that the question names, by column, and whether each is excluded."""
        by_place: dict[int, list[Match]] = {}
        for match in self.matches:
            if match.kind == "value" and self._is_free(match):
                by_place.setdefault(match.start, []).append(match)
        found: dict[int, list[tuple[Match, bool]]] = {}
        self._narrow_parts(by_place)
        for start, matches in sorted(by_place.items()):
            chosen = self._chosen_value(start, matches)
            if chosen is None or not self._is_free(chosen):
                continue
            match, is_not = chosen, self._negated(chosen.start)
            column = match.columns[0]
            if match.strength == 2 and not self.shape.columns[column].is_whole:
                raise NotOfTables  # Other values may have these words, too.
            found.setdefault(column, []).append((match, is_not))
            self._use(match.start, match.end, match.strength)
        return found

    def _is_comparison(self) -> bool:
        """Whether two things are compared: “more … or”, “cheaper than”, “difference … and”."""
        has_joint = self.question.has("or", "than", "and") or "que" in self.words
        return has_joint and (
            self.question.has("difference")
            or any(
                self._is_free(span)
                and (span.marks.keys() & {"more", "less"} or self._is_more_of(span))
                for span in self.question.spans
            )
        )

    def _is_more_of(self, span: Span) -> bool:
        """“Más de” without a number behind it: “más de arroz que de pasta”."""
        return (
            (span.marks.keys() == {"above"} or span.marks.keys() == {"below"})
            and self.words[span.start : span.end] in (["mas", "de"], ["menos", "de"])
            and (span.end not in self.question.numbers and "que" in self.words[span.end :])
        )

    def _chosen_value(self, start: int, matches: list[Match]) -> Match | None:
        """What the words at a place mean, of the columns that have such values."""
        other = [m for m in self.matches if m.start == start and m.kind != "value"]
        best = max(match.strength for match in matches)
        if any(m.strength > best or (m.strength == best and m.kind == "table") for m in other):
            return None  # rather the name of the table or of a column
        if best == 2 and any(m.strength >= 2 for m in other):
            return None
        span = self.question.covering(start)
        if (
            span
            and span.marks.keys() - {"words", "rows", "units", "numbers", "unpaid"}
            and best < 4
        ):
            return None
        if start and self.words[start - 1] in _PER:
            return None
        about = set(concepts_of(self.words[start], is_question=True))
        if best == 2 and about & ROW_CONCEPTS and matches[0].end == start + 1:
            return None  # “How many shows” are not those of “Trade show”.
        matches = [match for match in matches if match.strength == best]
        beside = {
            index
            for mention in self.mentions
            if mention.strength > 1 and (mention.end == start or mention.start == matches[0].end)
            for index in mention.columns
        }
        near = [match for match in matches if match.columns[0] in beside]
        if not near and start:
            before = _CONTRACTED.get(self.words[start - 1], self.words[start - 1])
            near = [m for m in matches if self.shape.names[m.columns[0]] == [before]]  # “de”, “a”
        chosen: Match = self._one_of(near or matches)
        for mention in self.mentions:
            if (
                chosen.columns[0] in mention.columns
                and mention.strength > 1
                and (mention.end == start or mention.start == chosen.end)
                and not self._precedes_group(mention.start)
            ):
                self._use(mention.start, mention.end)
        return chosen

    def _precedes_group(self, at: int) -> bool:
        """Whether a word of grouping or of asking is before this word: the column is asked for."""
        span = self._before(at)
        return span is not None and bool(span.marks.keys() & {"group", "which"})

    def _negated(self, start: int) -> bool:
        at = start
        while (
            at and (span := self._before(at)) and "words" in span.marks and "not" not in span.marks
        ):
            at = span.start
        span = self._before(at)
        if span and "not" in span.marks:
            self._use(span.start, span.end)
            return True
        return False

    def _with_and_without(self) -> tuple[Filter, Filter] | None:
        """“With and without balcony”: the two conditions of a comparison."""
        for at, word in enumerate(self.words[:-3]):
            if word not in WITH or self.words[at + 1] not in _AND or self.words[at + 2] not in _NO:
                continue
            named = [m for m in self._named_at(self._after_small(at + 3)) if m.strength > 1]
            columns = [i for match in named for i in self._typed(match, "boolean")]
            if len(columns) == 1:
                self._use(at, named[0].end, named[0].strength)
                yes, no = (Filter(column=columns[0], op="=", values=(v,)) for v in (True, False))
                return yes, no
        return None

    def _booleans(self) -> None:
        named: dict[int, list[Match]] = {}
        for match in self.mentions:
            columns = self._typed(match, "boolean")
            concepts = concepts_of(self.words[match.start], is_question=True)
            about = {index for each in concepts for index in self.shape.concepts.get(each, ())}
            if match.strength == 2 and about & {each.column for each in self.filters}:
                self._use(match.start, match.end)  # “renew in June”: the date, not “Auto-renew”
                continue
            if match.strength == 2 and any(
                self._typed(each, "number") for each in self._named_at(match.start)
            ):
                continue  # “Wie viel Beitrag”: not those of “Beitrag bezahlt”
            asking = self._span_to(match.start)
            is_asked = asking is not None and "count" in asking.marks
            if match.strength == 2 and (is_asked or ROW_CONCEPTS & set(concepts)):
                continue  # “How many wines”: not those of “Organic wine”
            if columns and self._is_free(match) and not self._precedes_group(match.start):
                named.setdefault(self._one_of(columns), []).append(match)
        for column, matches in named.items():
            if any(each.column == column for each in self.filters):
                continue
            is_not = True in [self._negated(match.start) for match in matches]
            self.filters.append(Filter(column=column, op="=", values=(not is_not,)))
            for match in matches:
                self._use(match.start, match.end, match.strength)

        self._unpaid()
        stocks, span = self.shape.stocks, self.question.first("out_of_stock")
        if span and len(stocks) == 1 and self._is_free(span):
            self.filters.append(Filter(column=stocks[0], op="empty"))
            self._use(span.start, span.end, 2)
        if span := self.question.first("on_time"):
            late = [i for i in self.shape.concepts["delay"] if self._type(i) == "boolean"]
            if len(late) == 1 and self._is_free(span):
                is_not = self._negated(span.start)
                self.filters.append(Filter(column=late[0], op="=", values=(is_not,)))
                self._use(span.start, span.end, 1)

    def _unpaid(self) -> None:
        """“Outstanding”, where a column says what is paid, or when."""
        span = self.question.first("unpaid")
        if span is None or not self._is_free(span):
            return
        columns = [i for i in self.shape.concepts["paid"] if self._type(i) in ("boolean", "date")]
        if len(columns) == 1 and not any(each.column in columns for each in self.filters):
            is_paid = self._negated(span.start)
            if self._type(columns[0]) == "boolean":
                self.filters.append(Filter(column=columns[0], op="=", values=(is_paid,)))
            else:
                self.filters.append(Filter(column=columns[0], op="filled" if is_paid else "empty"))
            self._use(span.start, span.end, 2)

    def _empties(self) -> None:
        """“Without parking spaces”, “not delivered” of a date: cells that are empty."""
        for match in self.mentions:
            columns = self._typed(match, "number", "text", "date")
            if len(columns) != 1 or not self._is_free(match) or match.strength == 1:
                continue
            if match.strength == 2 and self._type(columns[0]) == "number":
                continue  # “Unused seats” are no zeros of “Seats used”
            if self._negated(match.start):
                self.filters.append(Filter(column=columns[0], op="empty"))
                self._use(match.start, match.end, match.strength)

    def _join_alternatives(self) -> None:
        """“Overdue or over 1,000”: two conditions of which one is enough."""
        if self.loose_joints and len(self.filters) == 2 and self.loose_joints == 1:
            first, second = self.filters
            if first.column != second.column and "!=" not in (first.op, second.op):
                self.alternatives, self.filters = (first, second), []
                return
        if self.loose_joints:
            raise NotOfTables
