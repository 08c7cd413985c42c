"""By what a question groups and ranks: “by customer”, “per month”, “the three cheapest”. Begin with
`Groups`."""

from dataclasses import dataclass
from typing import Literal

from tables.questions.columns import Columns
from tables.questions.plan import Period
from tables.questions.reader import NotOfTables
from tables.questions.words import Span

#: Words for “by” that a noun for groups follows.
_EACH = frozenset(("each", "every", "jede", "jeder", "jedes", "jeden", "cada"))
#: Which end is asked for, and of what: a concept, `any`, or `much` of “most”.
Extreme = tuple[Literal["most", "least"], str]


def extremes_of(span: Span) -> list[str]:
    """Of what a superlative is, in the order of preference."""
    return f"{span.marks.get('most', '')} {span.marks.get('least', '')}".split()


@dataclass
class Groups(Columns):
    """Reads groups and superlatives. `limit_at` is the place of the number in “the three
    cheapest”."""

    limit_at: int | None = None

    def _group(self) -> tuple[int | None, Period | None]:
        """The column after “by” or “per”, and the period where it is a date."""
        for span in self.question.spans:
            if "group" not in span.marks or not self._is_free(span):
                continue
            at = self._after_small(span.end)
            if span.start in self.rates:
                continue  # “per month” is a part of the column's name
            named = self._named_at(at)
            if self.question.has("mean") and at < len(self.words) and self._is_each_row(at):
                self._use(span.start, max([at + 1, *(match.end for match in named)]), 4)
                continue
            if self._period(at):
                named = [match for match in named if match.strength > 1]
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
            if self.words[span.start] in _EACH and not named and self.is_table_at(at):
                raise NotOfTables  # “each vet” of visits to a vet
        for span in self.question.spans:
            in_name = any(
                match.start <= span.start < match.end and match.end - match.start > 1
                for match in self.matches
            )
            in_name = in_name or span.start in self.rates
            if "each" in span.marks and self._is_free(span) and not in_name:
                dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
                if dates:
                    self._use(span.start, span.end)
                    each: Period = span.marks["each"]  # type: ignore[assignment]
                    return self._one_of(self._plain_dates(dates)), each
        return None, None

    def _is_each_row(self, at: int) -> bool:
        """Whether “per” this word is of each row, so that a mean has no groups."""
        named = self._named_at(at)
        columns = [i for match in named for i in self._typed(match, "text")]
        is_row = all(self.shape.columns[index].is_unique for index in columns)
        # Other columns may have no cell twice by chance.
        return is_row and bool(columns or not named) and self.is_table_at(at)

    def _period(self, at: int) -> tuple[int, Period] | None:
        span = self.question.span(at)
        dates = [i for i, column in enumerate(self.shape.columns) if column.type == "date"]
        periods: tuple[Period, ...] = ("month", "quarter", "year", "week", "day")
        for period in periods:
            if span and period in span.marks and dates:
                return self._one_of(self._plain_dates(dates)), period
        return None

    def _extreme(self) -> Extreme | None:
        """The superlative: which end, of what, and where."""
        for span in self.question.spans:
            for kind in ("most", "least"):
                if kind in span.marks and self._is_free(span):
                    concepts = [
                        concept
                        for concept in span.marks[kind].split()
                        if concept in ("any", "much")
                        or self.shape.concepts.get(concept)
                        or (concept == "date" and len(self.shape.years) == 1)
                    ]
                    is_rated = "rating" in span.marks[kind].split()
                    if not concepts and any(
                        (match.strength > 1 or is_rated) and self._typed(match, "number")
                        for match in (self.mentions if is_rated else self._named_at(span.end))
                    ):
                        concepts = ["any"]  # “the shortest life expectancy”, “best by sales”
                    if concepts:
                        self._use(span.start, span.end)
                        self._use_more(kind)
                        # “The highest tree” is the tallest, unless another number is named.
                        special = [each for each in concepts if each not in ("any", "much")]
                        if special and any(
                            match.strength > 1 and self._typed(match, "number")
                            for match in self.mentions
                        ):
                            special = []
                        return ("most" if kind == "most" else "least"), (special or concepts)[0]
        return None

    def _use_more(self, kind: str) -> None:
        """Further words that say the same: “the top 3 largest”."""
        for span in self.question.spans:
            if kind in span.marks and "any" in span.marks[kind].split() and self._is_free(span):
                self._use(span.start, span.end)

    def _limit(self) -> int | None:
        """“Top 3”, “the five highest”: a number that no condition uses."""
        if not self.question.has("most", "least", "top", "bottom", "often", "seldom"):
            return None
        for at, number in self.question.numbers.items():
            in_time = any(time.start <= at < time.end for time in self.question.times)
            in_time = in_time or self._is_in_name(at)
            if at not in self.used and not in_time and number == int(number) and 0 < number <= 1000:
                self._use(at, at + 1)
                self.limit_at = at
                return int(number)
        return None
