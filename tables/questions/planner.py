"""Questions in English, German or Spanish become plans: what to compute of which tables. Begin with
`plan_question`. Nothing is guessed: each word that says what is asked for must be understood.
Without Django.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile
from typing import Any, Literal

from tables.questions.matching import (
    CURRENCIES,
    Match,
    SchemaIndex,
    Shape,
    concept_matches,
    shapes_of,
)
from tables.questions.plan import (
    Filter,
    Measure,
    Operator,
    Period,
    Plan,
    TableSchema,
    Unsure,
)
from tables.questions.words import (
    Question,
    Span,
    Time,
    concepts_of,
    has_measure,
    read_question,
    split_words,
)

#: How near each of some words is to each of some names, both in order: 0 unrelated, 1 the same.
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
#: How near a word must be to a name to mean it, and how much nearer than to the next.
MIN_SIMILARITY, MIN_LEAD = 0.75, 0.08
#: Questions with more words are none of a table's.
MAX_WORDS = 60

_COMPARISONS: dict[str, Operator] = {
    "above": ">",
    "below": "<",
    "at_least": ">=",
    "at_most": "<=",
    "until": "<=",
    "since": ">=",
    "exactly": "=",
}


#: Which end is asked for, and of what: a concept, `any`, or `much` of “most”.
_Extreme = tuple[Literal["most", "least"], str]


class _NotOfTables(Exception):
    """The tables cannot answer this."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A plan with the words that it leaves unexplained, and how well it fits: the sum of the
    strengths of the names that it uses."""

    plan: Plan
    unknown: tuple[int, ...]
    strength: float
    is_ambiguous: bool


def plan_question(
    text: str,
    tables: Sequence[TableSchema],
    *,
    today: date,
    language: str = "",
    similarity: Similarity | None = None,
) -> Plan | Unsure | None:
    """The plan that answers the question; two readings where it is not sure, or None where the
    question is none of a table's. Times such as “last month” are seen from `today`."""
    if not tables or not has_measure(text):
        return None
    question = read_question(text, today=today, language=language)
    if len(question.words) > MAX_WORDS or question.has("unsupported"):
        return None
    readings: list[_Reading] = []
    for shape in shapes_of(tables):
        matches = _meaningful(question, SchemaIndex(shape, question).matches(question))
        readings += _read_shape(question, shape, matches, similarity)
    if not readings:
        return None
    readings.sort(key=lambda each: (len(each.unknown), -each.strength))
    best = readings[0]
    equals = [
        each
        for each in readings
        if len(each.unknown) == len(best.unknown) and each.strength >= best.strength - 0.5
    ]
    plans = tuple(dict.fromkeys(each.plan for each in equals))
    if not best.unknown and len(plans) == 1 and not best.is_ambiguous:
        return best.plan
    if len(best.unknown) > 1:
        return None
    return Unsure(readings=plans[:2], unknown=tuple(question.words[at] for at in best.unknown))


def _meaningful(question: Question, matches: Sequence[Match]) -> list[Match]:
    """Without names found in small words and, in part, in words of the grammar."""
    kept = []
    for match in matches:
        span = question.span(match.start)
        is_covered = span is not None and match.end <= span.end
        is_small = is_covered and span is not None and "words" in span.marks
        if (is_small and match.strength < 4) or (
            is_covered
            and match.strength < 3
            and span is not None
            and not span.marks.keys() & {"units", "rows"}
            and not (match.kind == "table" and "months" in span.marks)
        ):
            continue
        if is_small and span is not None and match.kind != "column" and len(span.marks) >= 1:
            continue
        if match.strength == 2 and match.end - match.start == 1 and match.start in question.numbers:
            continue
        kept.append(match)
    return kept


def _read_shape(
    question: Question, shape: Shape, matches: list[Match], similarity: Similarity | None
) -> list[_Reading]:
    """The readings of a question for one shape: two where it is ambiguous."""
    found = []
    for pick in (0, 1):
        builder = _Builder(question, shape, matches, pick)
        try:
            reading = builder.read()
            if len(reading.unknown) == 1 and reading.strength >= 1 and similarity is not None:
                added = _by_meaning(question, shape, reading.unknown, similarity)
                if added:
                    builder = _Builder(question, shape, [*matches, *added], pick)
                    reading = builder.read()
        except _NotOfTables:
            break
        found.append(reading)
        if not builder.is_ambiguous:
            break
    return found


def _by_meaning(
    question: Question, shape: Shape, unknown: Sequence[int], similarity: Similarity
) -> list[Match]:
    """What the unexplained words mean by a model: the name that is clearly nearest."""
    names: list[tuple[str, Literal["table", "column", "value"], int]] = []
    names += [(table.name, "table", at) for at, table in enumerate(shape.tables) if table.name]
    names += [(column.name, "column", at) for at, column in enumerate(shape.columns)]
    names += [
        (value, "value", at)
        for at, column in enumerate(shape.columns)
        if column.type == "text" and len(column.values) <= 50
        for value in column.values
    ]
    found = []
    words = [question.words[at] for at in unknown]
    for at, scores in zip(unknown, similarity(words, [name for name, _, _ in names]), strict=True):
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        best = order[0]
        second = scores[order[1]] if len(order) > 1 else 0.0
        if scores[best] >= MIN_SIMILARITY and scores[best] - second >= MIN_LEAD:
            name, kind, index = names[best]
            found.append(Match(at, at + 1, kind, (index,), (name,) if kind == "value" else (), 1))
    return found


def _is_derived(word: str, name: str) -> bool:
    """Whether a verb is of a table's name, such as “delivered” of “Deliveries”."""
    pairs = zip(word, name, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared >= 5 and shared >= 0.7 * max(len(word), len(name))


@dataclass
class _Builder:
    """Builds the plan of one shape. Of the first ambiguous choice it takes the one at `pick`."""

    question: Question
    shape: Shape
    matches: list[Match]
    pick: int = 0
    used: set[int] = field(default_factory=set)
    filters: list[Filter] = field(default_factory=list)
    strength: float = 0.0
    is_ambiguous: bool = False

    def __post_init__(self) -> None:
        self.words = self.question.words
        named = [match for match in self.matches if match.kind == "column"]
        places = {
            at for match in named if match.strength > 1 for at in range(match.start, match.end)
        }
        self.mentions = named + [
            match
            for match in concept_matches(self.question, self.shape)
            if match.start not in places
        ]
        self.mentions.sort(key=lambda match: (match.start, -match.strength))

    def read(self) -> _Reading:
        """The reading. Raises _NotOfTables where there is none."""
        self._conditions()
        self._times()
        compared = self._values()
        self._booleans()
        plan = self._measure(compared)
        self._names()
        plan = plan.model_copy(update={"tables": self._tables()})
        unknown = tuple(self._unknown())
        return _Reading(plan, unknown, self.strength, self.is_ambiguous)

    # What is used up

    def _use(self, start: int, end: int, strength: float = 0.0) -> None:
        self.used.update(range(start, end))
        self.strength += strength

    def _is_free(self, match: Match | Span) -> bool:
        return not self.used & set(range(match.start, match.end))

    def _one_of(self, candidates: Sequence[Any]) -> Any:
        """The only candidate; one of the first two of several, which makes it ambiguous."""
        if len(candidates) > 1:
            is_first, self.is_ambiguous = not self.is_ambiguous, True
            return candidates[self.pick if is_first else 0]
        return candidates[0]

    def _use_span(self, *kinds: str) -> Span | None:
        """Use up the first free span that means one of these."""
        for span in self.question.spans:
            if span.marks.keys() & set(kinds) and self._is_free(span):
                self._use(span.start, span.end)
                return span
        return None

    def _type(self, index: int) -> str:
        return self.shape.columns[index].type

    def _typed(self, match: Match, *types: str) -> list[int]:
        return [
            index
            for index in match.columns
            if self._type(index) in types
            and (self._type(index) != "number" or index in self.shape.measurable)
        ]

    # Conditions on numbers: "more than 4,000", "between 2 and 5 kg", "500 or more"

    def _conditions(self) -> None:
        times = {at for time in self.question.times for at in range(time.start, time.end)}
        for at in sorted(self.question.numbers):
            in_name = any(
                m.start <= at < m.end and m.end - m.start > 1 and m.strength >= 2
                for m in self.matches
            )
            if at in self.used or in_name or (at in times and not self._is_compared_number(at)):
                continue
            self._condition(at)

    def _before(self, at: int) -> Span | None:
        """The span that ends before this word, a currency sign apart."""
        if at and self.words[at - 1] in "€$£¥":
            at -= 1
        return next((span for span in self.question.spans if span.end == at), None)

    def _is_compared_number(self, at: int) -> bool:
        """Whether a number that might be a year is compared with a column that is none of dates."""
        span = self._before(at)
        if span is None or not span.marks.keys() & {"above", "below", "at_least", "at_most"}:
            return False
        return not span.marks.keys() & {"since", "until"}

    def _condition(self, at: int) -> None:
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
        elif span:
            for kind, sign in _COMPARISONS.items():
                if kind in span.marks:
                    op, start = sign, span.start
        end, unit = self._unit(at, end)
        after = self.question.span(end)
        if op is None and after and after.marks.keys() & {"or_more", "or_less"}:
            op, end = (">=" if "or_more" in after.marks else "<="), after.end
        column = self._compared_column(start, end, unit, concept, is_equal=op is None)
        if column is None:
            return
        index, match = column
        self._check_unit(index, unit)
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
        span = self.question.span(end)
        if span and "numbers" in span.marks and float(span.marks["numbers"]) >= 100:
            end, span = span.end, self.question.span(span.end)  # "4 thousand", counted already
        if span and "units" in span.marks:
            return span.end, span.marks["units"]
        if end < len(self.words) and self.words[end] == "k":
            end += 1
        return end, unit

    def _check_unit(self, index: int, unit: str) -> None:
        own = self.shape.columns[index].unit
        if unit and own and unit.casefold() != own.casefold():
            raise _NotOfTables
        if unit and not own and unit not in CURRENCIES:
            # Without a unit of its own the header must say it: “Weight (kg)”.
            named = set(self.shape.names[index])
            if unit.casefold() not in named and not (unit == "%" or unit in ("h", "min")):
                raise _NotOfTables

    def _compared_column(
        self, start: int, end: int, unit: str, concept: str, *, is_equal: bool
    ) -> tuple[int, Match | None] | None:
        """The column of numbers that a number belongs to."""
        numeric = [match for match in self.mentions if self._typed(match, "number")]
        behind = [m for m in numeric if m.start == end and self._is_free(m)]
        before = [m for m in numeric if m.end <= start and self._is_free(m)]
        if is_equal:
            # A number alone is compared only beside its column: “5 stars”, “rating 5”.
            before = [m for m in before if m.end == start]
        if concept and concept != "any":
            columns = [
                index
                for index in self.shape.concepts.get(concept, ())
                if self._type(index) == "number"
            ]
            return (self._one_of(columns), None) if columns else None
        for matches in (behind, before[::-1]):
            if matches:
                nearest = max(
                    (m for m in matches if m.start == matches[0].start), key=lambda m: m.strength
                )
                columns = self._typed(nearest, "number")
                if unit:
                    of_unit = [i for i in columns if self.shape.columns[i].unit == unit]
                    columns = of_unit or columns
                return self._one_of(columns), nearest
        if is_equal:
            return None
        columns = self.shape.measurable
        if unit:
            columns = [i for i in columns if self.shape.columns[i].unit == unit] or [
                i for i in columns if unit.casefold() in self.shape.names[i]
            ]
        return (self._one_of(columns), None) if columns else None

    # Times: "in March", "since 2024", "last month"

    def _times(self) -> None:
        times = self.question.times
        if len(times) == 2 and (span := self._before(times[0].start)) and "between" in span.marks:
            joint = self.question.span(times[0].end)
            if joint and joint.end == times[1].start and joint.marks.keys() & {"and", "until"}:
                self._span_of_days(span, *times)
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
            if not dates:
                continue
            mentioned = [
                m
                for m in self.mentions
                if m.strength > 1 and self._typed(m, "date") and self._is_free(m)
            ]
            column = (
                mentioned[0].columns[0]
                if len(mentioned) == 1
                else self._one_of(self._plain_dates(dates))
            )
            for each in mentioned:
                if column in each.columns:
                    self._use(each.start, each.end, each.strength)
            self._time_filter(time, column)

    def _span_of_days(self, span: Span, first: Time, last: Time) -> None:
        """“Between January and March”: a condition from the first day to the last one."""
        dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
        if not dates:
            return
        index = self._one_of(self._plain_dates(dates))
        column = self.shape.columns[index]
        year = first.year or last.year
        if year is None and column.least and column.most and column.least.year == column.most.year:
            year = column.least.year
        if year is None:
            raise _NotOfTables
        days = first.days(first.year or year)[0], last.days(last.year or year)[1]
        self.filters.append(Filter(column=index, op="within", values=days))
        self._use(span.start, last.end)

    def _plain_dates(self, dates: list[int]) -> list[int]:
        """The column that is only called “Date”, if there is one."""
        plain = [
            index
            for index in dates
            if all("date" in concepts_of(w, is_question=False) for w in self.shape.names[index])
        ]
        return plain if len(plain) == 1 else dates

    def _time_filter(self, time: Time, index: int) -> None:
        column = self.shape.columns[index]
        if time.year is not None:
            years = [time.year]
        elif column.least and column.most:
            years = [
                year
                for year in range(column.least.year, column.most.year + 1)
                if time.days(year)[1] > column.least and time.days(year)[0] <= column.most
            ][-2:][::-1]
        else:
            years = []
        if not years:
            raise _NotOfTables
        first, after = time.days(self._one_of(years))
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
        joints = sum("or" in span.marks for span in self.question.spans)
        if not is_comparison and joints > sum(len(values) - 1 for values in found.values()):
            raise _NotOfTables  # “Or” between conditions of different columns.
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
            times = [each for each in self.filters if each.op == "within"]
            if len(times) == 2:
                compared = times[0], times[1]
                self.filters = [each for each in self.filters if each not in times]
        elif len([each for each in self.filters if each.op == "within"]) > 1:
            raise _NotOfTables  # “In March and April” is no single span.
        return compared

    def _named_values(self) -> dict[int, list[tuple[Match, bool]]]:
        """The values that the question names, by column, and whether each is excluded."""
        by_place: dict[int, list[Match]] = {}
        for match in self.matches:
            if match.kind == "value" and self._is_free(match):
                by_place.setdefault(match.start, []).append(match)
        found: dict[int, list[tuple[Match, bool]]] = {}
        for start, matches in sorted(by_place.items()):
            chosen = self._chosen_value(start, matches)
            if chosen is None or not self._is_free(chosen):
                continue
            match, is_not = chosen, self._negated(chosen.start)
            column = match.columns[0]
            if match.strength == 2 and not self.shape.columns[column].is_whole:
                raise _NotOfTables  # Other values may have these words, too.
            found.setdefault(column, []).append((match, is_not))
            self._use(match.start, match.end, match.strength)
        return found

    def _is_comparison(self) -> bool:
        """Whether two things are compared: “more … or”, “cheaper than”, “difference … and”."""
        has_joint = self.question.has("or", "than", "and") or "que" in self.words
        return has_joint and (
            self.question.has("difference")
            or any(
                self._is_free(span) and span.marks.keys() & {"more", "less"}
                for span in self.question.spans
            )
        )

    def _chosen_value(self, start: int, matches: list[Match]) -> Match | None:
        """What the words at a place mean, of the columns that have such values."""
        other = [m for m in self.matches if m.start == start and m.kind != "value"]
        best = max(match.strength for match in matches)
        if any(m.strength > best or (m.strength == best and m.kind == "table") for m in other):
            return None  # rather the name of the table or of a column
        if best == 2 and any(m.strength >= 2 for m in other):
            return None
        span = self.question.span(start)
        if span and span.marks.keys() - {"words", "rows", "units", "numbers"} and best < 4:
            return None
        matches = [match for match in matches if match.strength == best]
        beside = {
            index
            for mention in self.mentions
            if mention.strength > 1 and (mention.end == start or mention.start == matches[0].end)
            for index in mention.columns
        }
        near = [match for match in matches if match.columns[0] in beside]
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

    def _booleans(self) -> None:
        for match in self.mentions:
            columns = self._typed(match, "boolean")
            if columns and self._is_free(match) and not self._precedes_group(match.start):
                column = self._one_of(columns)
                if any(each.column == column for each in self.filters):
                    continue
                is_not = self._negated(match.start)
                self.filters.append(Filter(column=column, op="=", values=(not is_not,)))
                self._use(match.start, match.end, match.strength)

    # The measure

    def _measure(self, compared: tuple[Filter, Filter] | None) -> Plan:
        group, period = self._group()
        extreme = None if compared else self._extreme()
        often = self._use_span("often", "seldom")
        limit = self._limit()
        comparative = None
        if compared is not None:
            comparative = self._use_span("more", "less")
            for kind in ("difference", "or", "and", "than", "between"):
                self._use_span(kind)
        subject = self._subject()
        asked = {kind for kind in ("sum", "mean", "count", "how_much") if self._use_span(kind)}
        ranked = extreme or often or self.question.first("top", "bottom")
        if ranked and group is None and subject is not None and not asked & {"count", "how_much"}:
            is_much = often is not None or extreme is None or extreme[1] == "much"
            is_much = is_much or bool(asked)
            group, period = self._subject_group(subject, is_much=is_much) or (None, None)
        label = self._label(subject, group)
        if compared is not None and not asked & {"sum", "mean", "count"}:
            measure, column = self._compared_measure(comparative, compared)
        elif often and not asked:
            measure, column = "count", None
        else:
            measure, column = self._computed(asked, subject, extreme, group, label)
        order: Literal["", "most", "least"] = ""
        if measure in ("most", "least"):
            limit = limit or 1
        elif ranked and group is not None:
            is_least = (extreme and extreme[0] == "least") or self.question.has("seldom", "bottom")
            order, limit = "least" if is_least else "most", limit or 1
        elif extreme:
            raise _NotOfTables  # “How many … the most …”
        self._use_span("top", "bottom")
        return Plan(
            tables=(),
            columns=tuple(each.name for each in self.shape.columns),
            measure=measure,
            column=column,
            filters=tuple(self.filters),
            group=group,
            period=period,
            order=order,
            limit=limit,
            compared=compared,
            label=label,
            language=self.question.language,
        )

    def _computed(  # noqa: PLR0911 (one line for each measure)
        self,
        asked: set[str],
        subject: Match | None,
        extreme: _Extreme | None,
        group: int | None,
        label: int | None,
    ) -> tuple[Measure, int | None]:
        """The measure and its column. Raises _NotOfTables where nothing is to be computed."""
        question = self.question
        if asked >= {"mean", "sum"} or asked >= {"how_much", "count"}:
            raise _NotOfTables  # Two questions in one.
        if "mean" in asked:
            return "mean", self._number_column()
        if "count" in asked and not extreme:
            return self._counted(subject)
        if "sum" in asked or ("how_much" in asked and not extreme):
            column = self._number_column(how_much="how_much" in asked)
            is_value = "sum" not in asked and group is None and self._is_price(column)
            return "list" if is_value else "sum", column
        if extreme and group is not None:
            named = any(self._typed(m, "number") and self._is_free(m) for m in self.mentions)
            if extreme[1] == "much" and not named and not question.has("spent"):
                return "count", None
            return "sum", self._number_column()
        if extreme:
            return extreme[0], self._extreme_column(extreme[1])
        if question.has("spent"):
            return "sum", self._number_column(how_much=True)
        if question.has("top", "bottom"):
            column = self._number_column()
            return ("sum" if group is not None else self._end()), column
        is_limited = any(each.op not in ("=", "!=") for each in self.filters)
        if self.filters and (self._use_span("list") or (is_limited and question.has("which"))):
            return "list", label
        raise _NotOfTables

    def _end(self) -> Measure:
        return "least" if self.question.has("bottom") else "most"

    def _compared_measure(
        self, comparative: Span | None, compared: Sequence[Filter]
    ) -> tuple[Measure, int]:
        """What two things are compared by: what “heavier” names, or the column that is named."""
        marks = comparative.marks if comparative else {}
        concept = (marks.get("more") or marks.get("less") or "any").split()[0]
        is_named = concept == "any"
        column = self._number_column(how_much=True) if is_named else self._extreme_column(concept)
        return "list" if self._is_price(column, compared) else "sum", column

    def _group(self) -> tuple[int | None, Period | None]:
        """The column after “by” or “per”, and the period where it is a date."""
        for span in self.question.spans:
            if "group" not in span.marks or not self._is_free(span):
                continue
            at = span.end
            while (
                (small := self.question.span(at))
                and "words" in small.marks
                and not self._named_at(at)
            ):
                at = small.end
            named = self._named_at(at)
            for match in named:
                columns = self._typed(match, "text", "boolean", "date")
                columns += [
                    i
                    for i in match.columns
                    if self._type(i) == "number"
                    and match.strength > 1
                    and i not in self.shape.measurable
                ]
                if columns and self._is_free(match):
                    column: int = self._one_of(columns)
                    self._use(span.start, match.end, match.strength)
                    return column, "month" if self._type(column) == "date" else None
            if period := self._period(at):
                self._use(span.start, at + 1)
                return period
        for at, word in enumerate(self.words):
            if word in ("monthly", "monatlich", "mensual", "yearly") and (
                found := self._period(at)
            ):
                self._use(at, at + 1)
                return found
        return None, None

    def _named_at(self, at: int) -> list[Match]:
        named = [match for match in self.mentions if match.start == at]
        return sorted(named, key=lambda match: -match.strength)

    def _period(self, at: int) -> tuple[int, Period] | None:
        span = self.question.span(at)
        dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
        periods: tuple[Period, ...] = ("month", "quarter", "year")
        for period in periods:
            if span and period in span.marks and dates:
                return self._one_of(self._plain_dates(dates)), period
        return None

    def _extreme(self) -> _Extreme | None:
        """The superlative: which end, of what, and where."""
        for span in self.question.spans:
            for kind in ("most", "least"):
                if kind in span.marks and self._is_free(span):
                    concepts = [
                        concept
                        for concept in span.marks[kind].split()
                        if concept in ("any", "much") or self.shape.concepts.get(concept)
                    ]
                    if concepts:
                        self._use(span.start, span.end)
                        return ("most" if kind == "most" else "least"), concepts[0]
        return None

    def _limit(self) -> int | None:
        """“Top 3”, “the five highest”: a number that no condition uses."""
        if not self.question.has("most", "least", "top", "bottom", "often", "seldom"):
            return None
        for at, number in self.question.numbers.items():
            in_time = any(time.start <= at < time.end for time in self.question.times)
            if at not in self.used and not in_time and number == int(number) and 0 < number <= 1000:
                self._use(at, at + 1)
                return int(number)
        return None

    def _subject(self) -> Match | None:
        """What is asked for: the name after “which”, “how many” or “top 3”."""
        kinds = {"which", "count", "top", "bottom", "most", "least", "list", "how_much"}
        for span in self.question.spans:
            if not span.marks.keys() & kinds:
                continue
            at = span.end
            while at < len(self.words) and (
                at in self.question.numbers
                or (
                    (small := self.question.span(at))
                    and small.marks.keys() & {"words", "most", "least"}
                    and not self._named_at(at)
                )
            ):
                at += 1
            asks = [m for m in self._named_at(span.start) if "which" in span.marks]
            for match in (*self._named_at(at), *asks):
                if self._is_free(match) or match in asks:
                    return match
            period = self.question.span(at)
            if (
                period
                and period.marks.keys() & {"month", "quarter", "year"}
                and self._period(at)
                and "which" in span.marks
            ):
                self._use(period.start, period.end)
                return Match(period.start, period.end, "column", (self._period(at)[0],), (), 3)  # type: ignore[index]
        return None

    def _subject_group(self, subject: Match, *, is_much: bool) -> tuple[int, Period | None] | None:
        """The column whose values are ranked, where it is these and not single rows: `is_much`
        where “most” counts or adds."""
        columns = self._typed(subject, "text", "date")
        repeated = [i for i in columns if not self.shape.columns[i].is_unique]
        if not repeated:
            return None
        column: int = repeated[0] if len(repeated) == 1 else self._one_of(repeated)
        period = None
        if self._type(column) == "date":
            if (found := self._period(subject.start)) is None:
                return None
            period = found[1]
        if is_much or period or self.question.has("spent") or self._asks_revenue():
            self._use(subject.start, subject.end, subject.strength)
            return column, period
        return None

    def _asks_revenue(self) -> bool:
        """Whether amounts are asked for that are added rather than compared singly."""
        return any(
            "revenue" in concepts_of(self.words[match.start], is_question=True)
            for match in self.mentions
            if self._typed(match, "number")
        )

    def _label(self, subject: Match | None, group: int | None) -> int | None:
        """The column that names a row: what is asked for, else the first of texts."""
        if subject is not None and self._is_free(subject):
            columns = self._typed(subject, "text", "date")
            if columns and columns[0] != group:
                self._use(subject.start, subject.end, subject.strength)
                return columns[0]
        texts = [i for i, column in enumerate(self.shape.columns) if column.type == "text"]
        return texts[0] if texts else None

    def _counted(self, subject: Match | None) -> tuple[Measure, int | None]:
        """Of “how many X”: X are numbers of a column to add, values of one to count, or rows."""
        if subject is None:
            return "count", None
        is_table = any(
            m.kind == "table" and m.start == subject.start and m.strength >= subject.strength
            for m in self.matches
        )
        numbers = self._typed(subject, "number")
        if numbers and not is_table:
            self._use(subject.start, subject.end, subject.strength)
            return "sum", self._one_of(numbers)
        texts = self._typed(subject, "text")
        if texts and not is_table:
            self._use(subject.start, subject.end, subject.strength)
            column: int = self._one_of(texts)
            return "count", None if self.shape.columns[column].is_unique else column
        return "count", None

    def _number_column(self, *, how_much: bool = False) -> int:
        """The column of numbers to compute with: one that is named, else the only one."""
        named = [m for m in self.mentions if self._typed(m, "number") and self._is_free_or_sum(m)]
        if named:
            best = max(match.strength for match in named)
            chosen = next(match for match in named if match.strength == best)
            self._use(chosen.start, chosen.end, chosen.strength)
            columns = self._typed(chosen, "number")
            if len(columns) > 1:
                # Further words may tell which: “spent in total” of Net, Tax and Total.
                others = [set(self._typed(m, "number")) for m in named if m is not chosen]
                shared = [i for i in columns if any(i in other for other in others)]
                columns = shared if len(shared) == 1 else columns
            for match in named:
                if set(match.columns) & set(columns):
                    self._use(match.start, match.end)
            if how_much and best == 1:
                # “How much did we sell?” may ask for money, whatever “sell” is nearest to.
                columns += [i for i in self._money() if i not in columns]
            return int(self._one_of(columns))
        columns = self.shape.measurable
        if how_much or len(columns) > 1:
            columns = self._money() or columns
        if not columns:
            raise _NotOfTables
        return int(self._one_of(columns))

    def _money(self) -> list[int]:
        return [i for i in self.shape.measurable if self.shape.columns[i].unit in CURRENCIES]

    def _is_free_or_sum(self, match: Match) -> bool:
        """Whether a name is free, or is a word of the measure itself, such as “total”."""
        if self._is_free(match):
            return True
        span = self.question.span(match.start)
        return span is not None and "sum" in span.marks and match.end == span.end

    def _is_price(self, column: int, compared: Sequence[Filter] = ()) -> bool:
        """Whether a column holds prices of single things, which nobody adds up."""
        names = set(self.shape.names[column])
        is_amount = any("amount" in concepts_of(name, is_question=False) for name in names)
        is_money = any("price" in concepts_of(name, is_question=False) for name in names)
        unique = any(
            self.shape.columns[each.column].is_unique
            for each in (*self.filters, *compared)
            if each.op == "=" and len(each.values) == 1
        )
        return unique or (is_money and not is_amount)

    def _extreme_column(self, concept: str) -> int:
        """The column whose extreme is asked for."""
        if concept not in ("any", "much"):
            columns = [
                i
                for i in self.shape.concepts[concept]
                if self._type(i) == ("date" if concept == "date" else "number")
            ]
            if not columns and concept == "rating":
                raise _NotOfTables
            for match in self.mentions:
                if self._is_free(match) and set(match.columns) & set(columns):
                    self._use(match.start, match.end, match.strength)
                    if match.strength > 1:
                        columns = [i for i in columns if i in match.columns]
            if not columns:
                raise _NotOfTables
            return int(self._one_of(self._plain_dates(columns) if concept == "date" else columns))
        dates = [
            m
            for m in self.mentions
            if self._typed(m, "date") and self._is_free(m) and m.strength > 1
        ]
        if dates and not any(self._typed(m, "number") and self._is_free(m) for m in self.mentions):
            self._use(dates[0].start, dates[0].end, dates[0].strength)
            return int(self._typed(dates[0], "date")[0])
        return self._number_column()

    # What is left

    def _names(self) -> None:
        """Use up what names the table, and words of columns that are used or shown."""
        for match in self.matches:
            if match.kind == "table" and not self.used >= set(range(match.start, match.end)):
                is_whole = any(
                    len(split_words(self.shape.tables[at].name)) == match.end - match.start
                    for at in match.columns
                )
                share = 1.5 if is_whole and match.strength >= 3 else 0.5
                self._use(match.start, match.end, match.strength * share)
        shown = {
            index
            for index, column in enumerate(self.shape.columns)
            if column.type in ("text", "date")
        }
        in_use = {each.column for each in self.filters} | shown
        for match in self.mentions:
            if self._is_free(match) and set(match.columns) & in_use:
                self._use(match.start, match.end, match.strength / 2)
        words = [
            word
            for table in self.shape.tables
            for word in split_words(f"{table.name} {table.title}")
        ]
        names = {concept for word in words for concept in concepts_of(word, is_question=False)}
        for at, word in enumerate(self.words):
            if names & set(concepts_of(word, is_question=True)):
                self._use(at, at + 1, 1)
            elif at not in self.used and any(_is_derived(word, name) for name in words):
                self._use(at, at + 1)

    def _tables(self) -> tuple[int, ...]:
        """The tables of the shape, or those that the question names: “in the list of March”."""
        chosen = set(range(len(self.shape.tables)))
        for match in self.matches:
            if (
                match.kind == "table"
                and match.end - match.start
                and len(match.columns) < len(chosen)
            ):
                chosen &= set(match.columns)
        if not chosen:
            raise _NotOfTables
        return tuple(self.shape.tables[at].id for at in sorted(chosen))

    def _unknown(self) -> list[int]:
        """The words that nothing explains."""
        known = set(self.used)
        joints = {"words", "rows", "and", "or", "which", "list"}
        for span in self.question.spans:
            if span.marks.keys() & joints:
                known.update(range(span.start, span.end))
            elif ("group" in span.marks and span.end in self.used) or "spent" in span.marks:
                known.update(range(span.start, span.end))  # “delivered by Norwerk”
        return [at for at in range(len(self.words)) if at not in known]
