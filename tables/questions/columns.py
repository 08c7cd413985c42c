"""Which column a question computes with. Begin with `Columns._number_column`."""

from collections.abc import Sequence

from tables.questions.conditions import Conditions
from tables.questions.matching import Match
from tables.questions.plan import Filter
from tables.questions.reader import NotOfTables
from tables.questions.shapes import CURRENCIES, rate_of
from tables.questions.words import ADDITIVE, NOT_ADDITIVE, concepts_of, spans_of

#: What tables of money that comes in are about, and of money that is paid out.
_INCOME = frozenset(
    ("revenue", "customer", "donation", "donor", "booking", "guest", "member", "tenant", "course")
)
_OUTLAY = frozenset(("supplier", "employee", "bought"))


#: What is added up over time.
_ADDED = frozenset(("participants", "goals", "visits", "appearances", "distance", "arrears"))


def _is_of_month(words: list[str]) -> bool:
    """Whether a header says of which month or quarter its numbers are."""
    periods = {"months", "quarters", "halves"}
    return any(span.marks.keys() & periods for span in spans_of(words))


class Columns(Conditions):
    """Chooses the column of a measure."""

    def _number_column(self, *, how_much: bool = False) -> int:
        """The column of numbers to compute with: one that is named, else the only one."""
        if (column := self._of_unit()) is not None:
            return column
        named = [m for m in self.mentions if self._typed(m, "number") and self._is_free_or_sum(m)]
        if named:
            # Words such as “total” may be the measure alone.
            free = [match for match in named if self._is_free(match)] or named
            best = max(match.strength for match in free)
            chosen = next(match for match in free if match.strength == best)
            # “Total” says what to compute before it names a column.
            is_sum = chosen.end - chosen.start == 1 and not self._is_free(chosen)
            self._use(chosen.start, chosen.end, 1 if is_sum else chosen.strength)
            alike = [m for m in free if (m.start, m.strength) == (chosen.start, best)]
            columns = list(dict.fromkeys(i for m in alike for i in self._typed(m, "number")))
            each = self.shape.rates.get(rate_of(self.words[chosen.start]), [])
            columns = [i for i in columns if i not in each] or columns  # not “price per kilo”
            if len(columns) > 1:
                # Further words may tell which: “spent in total” of Net, Tax and Total.
                others = [set(self._typed(m, "number")) for m in named if m not in alike]
                shared = [i for i in columns if any(i in other for other in others)]
                columns = shared if len(shared) == 1 else columns
            for match in named:
                if set(match.columns) & set(columns):
                    self._use(match.start, match.end)
            said = set(concepts_of(self.words[chosen.start], is_question=True))
            is_sold = bool(said & {"quantity", "revenue"})
            if how_much and best == 1 and is_sold and not set(columns) & set(self._money()):
                # “How much did we sell?” may ask for money, whatever “sell” is nearest to.
                columns += [i for i in self._money() if i not in columns]
            columns = self._actual(columns)
            return int(self._one_of(columns if best > 1 else self._of_any_time(columns)))
        columns = self.shape.measurable
        if how_much or len(columns) > 1:
            columns = self._money() or columns
        return int(self._one_of(self._of_any_time(self._actual(columns))))

    def _of_unit(self) -> int | None:
        """“How many euros”, “how many kilos”: the only column of that unit."""
        for span in self.question.spans:
            behind = self.question.span(span.end)
            if not span.marks.keys() & {"how_much", "count"} or behind is None:
                continue
            unit = behind.marks.get("units", "")
            columns = [i for i in self.shape.measurable if self.shape.columns[i].unit == unit]
            if unit and len(columns) == 1:
                self._use(behind.start, behind.end, 1)
                for match in self.mentions:
                    if columns[0] in match.columns:
                        self._use(match.start, match.end, match.strength)
                return columns[0]
        return None

    def _of_any_time(self, columns: list[int]) -> list[int]:
        """Without columns of one month, such as “April 2026”, which nothing names."""
        found = [index for index in columns if not _is_of_month(self.shape.names[index])]
        if not found:
            raise NotOfTables
        return found

    def _sums(self) -> list[int]:
        """The columns that are added up: of money, else of anything."""
        added = [index for index in self.shape.measurable if self._adds(index)]
        return [index for index in added if index in self._money()] or added

    def _is_earned(self) -> bool:
        """Whether the question asks for money that came in, and the tables are about that."""
        if self.question.has("raised"):
            return bool(self._money()) and self._is_of_gifts()
        about = self._about()
        is_income = bool(about & _INCOME) and not about & _OUTLAY
        return self.question.has("earned") and bool(self._money()) and is_income

    def _is_of_gifts(self) -> bool:
        return bool(self._about() & {"donation", "donor"})

    def _about(self) -> set[str]:
        """What the tables and their columns are about."""
        return {each for each, columns in self.shape.concepts.items() if columns} | {
            *self.shape.table_concepts
        }

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

    def _adds(self, column: int) -> bool | None:
        """Whether the numbers of a column are added up over time; None where it is not known."""
        names, unit = self.shape.names[column], self.shape.columns[column].unit
        is_rate = any(column in columns for columns in self.shape.rates.values())
        if any(name in NOT_ADDITIVE for name in names) or (is_rate and unit not in CURRENCIES):
            return False
        said = {c for name in names for c in concepts_of(name, is_question=False)}
        if (
            any(name in ADDITIVE for name in names)
            or said & _ADDED
            or unit in ("h", "kWh", "Wh", "MWh")
        ):
            return True
        return True if unit in CURRENCIES and not self._is_price(column) else None

    def _names_total(self) -> bool:
        """Whether “total” is the name of a column: “the average total”."""
        return any(
            (span := self.question.span(m.start)) is not None
            and "sum" in span.marks
            and m.strength == 4
            and self._typed(m, "number")
            for m in self.mentions
        )

    def _extreme_column(self, concept: str) -> int:
        """The column whose extreme is asked for."""
        if concept not in ("any", "much"):
            columns = [
                i
                for i in self.shape.concepts[concept]
                if self._type(i) == ("date" if concept in ("date", "joined") else "number")
            ]
            if concept == "date" and len(years := self.shape.years) == 1:
                ages = {span.marks.get("most") for span in self.question.spans}
                if not columns or "age" in ages:
                    return years[0]  # “The oldest fountain”, by the year in which it was built
            if not columns and concept == "rating":
                raise NotOfTables
            for match in self.mentions:
                if self._is_free(match) and set(match.columns) & set(columns):
                    self._use(match.start, match.end, match.strength)
                    if match.strength > 1:
                        columns = [i for i in columns if i in match.columns]
            if not columns:
                raise NotOfTables
            births = [i for i in columns if i in self.shape.concepts["birth"]]
            if len(births) == 1 and any(
                "age" in (span.marks.get("most"), span.marks.get("least"))
                for span in self.question.spans
            ):
                return births[0]  # “The youngest child”
            # “The oldest car” was registered first, and not tested first.
            ends = [i for each in ("end", "due", "renewal") for i in self.shape.concepts[each]]
            columns = [i for i in columns if i not in ends] or columns
            dated = concept == "date"
            return int(self._one_of(self._plain_dates(columns) if dated else self._actual(columns)))
        dates = [
            m
            for m in self.mentions
            if self._typed(m, "date") and self._is_free(m) and m.strength > 1
        ]
        if dates and not any(self._typed(m, "number") and self._is_free(m) for m in self.mentions):
            self._use(dates[0].start, dates[0].end, dates[0].strength)
            return int(self._typed(dates[0], "date")[0])
        is_named = any(self._typed(m, "number") for m in self.mentions)
        if concept == "much" and len(self.shape.stocks) == 1 and not is_named:
            return self.shape.stocks[0]  # “What do we have the most of?”
        return self._number_column()
