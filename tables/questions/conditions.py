"""Conditions of a question: comparisons with numbers, times, values that occur. Begin with
`Conditions.read_conditions`."""

from dataclasses import dataclass, replace

from tables.questions.matching import Match
from tables.questions.plan import Filter, Operator
from tables.questions.reader import NotOfTables
from tables.questions.shapes import CURRENCIES, MONEY
from tables.questions.times import Times
from tables.questions.words import concepts_of, fold, word_forms

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


@dataclass
class Conditions(Times):
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
        numeric = self._numeric(start, end, unit)
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
            if columns or not unit:
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

    def _numeric(self, start: int, end: int, unit: str) -> list[Match]:
        """The words that name columns of numbers, which may have this unit."""
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
        return numeric

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
            if self._type(columns[0]) == "number" and (
                match.strength == 2 or self.shape.columns[columns[0]].unit in CURRENCIES
            ):
                continue  # “Unused seats” are no zeros of “Seats used”, nor “without VAT” of VAT
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
