"""Times of a question as conditions on dates: “in March”, “since 2024”, “last month”. Begin with
`Times._times`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from tables.questions.matching import Match
from tables.questions.plan import Filter, Operator
from tables.questions.reader import NotOfTables, ShapeReader
from tables.questions.words import Span, Time, concepts_of

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
class Times(ShapeReader):
    """Reads the times of a question into `filters`."""

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

    def _is_comparison(self) -> bool:
        """Whether two things are compared: “more … or”, “cheaper than”, “difference … and”."""
        free = [span for span in self.question.spans if self._is_free(span)]
        if any(self._is_more_of(span) for span in free):
            return True
        has_joint = self.question.has("or", "than", "and") or "que" in self.words
        return has_joint and (
            self.question.has("difference")
            or any(span.marks.keys() & {"more", "less"} for span in free)
        )

    def _is_more_of(self, span: Span) -> bool:
        """“More than” without a number behind it: “más de arroz que de pasta”, “mehr als Bässe”."""
        words = self.words[span.start : span.end]
        if words in (["mas", "de"], ["menos", "de"]):
            return span.end not in self.question.numbers and "que" in self.words[span.end :]
        return words in (["mehr", "als"], ["weniger", "als"], ["more", "than"]) and any(
            match.kind == "value" and match.start == span.end for match in self.matches
        )
