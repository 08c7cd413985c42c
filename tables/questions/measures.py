"""What a question asks to compute, by which groups, of which tables: `PlanBuilder.read` gives the
plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tables.questions.groups import Extreme, extremes_of
from tables.questions.matching import Match, stem_of
from tables.questions.plan import Filter, Measure, Period, Plan
from tables.questions.reader import NotOfTables
from tables.questions.row_nouns import is_known_noun, may_name_rows, names_exactly
from tables.questions.shapes import table_names
from tables.questions.subjects import WHO, Subjects
from tables.questions.words import (
    PLAIN_VERBS,
    Span,
    concepts_of,
)

#: Parts of German verbs that end a question: “Wann läuft der Vertrag ab?”
_PARTICLES = frozenset(("ab", "an", "auf", "aus", "ein", "vor", "zu"))
#: Words for the amount of one thing.
_SINGLE = ("amount", "value", "betrag", "wert", "importe", "monto", "valor")
#: First words of questions for a number rather than for rows.
_WHAT = frozenset(("what", "whats", "was", "que", "cual", "cuales"))
#: Verbs for the price of one thing, and whose costs are sums.
_COSTS = frozenset(("cost", "costs", "kostet", "cuesta", "vale"))
#: Verbs for any amount of money.
_COST_WORDS = _COSTS | {"kosten", "kostete", "kosteten", "cuestan", "costaron", "valen", "costing"}
_ONE = frozenset(("a", "an", "ein", "eine", "einen", "un", "una"))
_US = frozenset(("us", "we", "did", "uns", "wir", "nos"))


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan with the words that it leaves unexplained, and how well it fits: the sum of the
    strengths of the names that it uses. With `names_rows` the only unexplained word seems to be
    what a row is: “members” of a table that does not say so."""

    plan: Plan
    unknown: tuple[int, ...]
    strength: float
    is_unsure: bool
    names_rows: bool = False


class PlanBuilder(Subjects):
    """Builds the plan of one shape."""

    def read(self) -> Reading:
        """The reading. Raises NotOfTables where there is none."""
        plan = self._measure(self.read_conditions())
        self._names(plan.column)
        plan = self._of_tables(plan)
        unknown = tuple(self._unknown(plan.column))
        # Something else must say that the question is one of these tables.
        used = plan.used_columns
        named = {i for i in used if self._type(i) != "date"}
        dated = {i for m in self.mentions if m.start in self.used for i in self._typed(m, "date")}
        is_sure = bool((named and self.strength >= 2) or dated & used)
        names_rows = len(unknown) == 1 and is_sure and may_name_rows(self, unknown[0])
        if names_rows and not is_known_noun(self.words[unknown[0]]):
            names_rows = names_exactly(self, named) or bool(dated & used)
        return Reading(plan, unknown, self.strength, self.is_unsure, names_rows)

    # The measure

    def _measure(  # noqa: PLR0912, PLR0915 (one step for each kind of words)
        self, compared: tuple[Filter, Filter] | None
    ) -> Plan:
        shares = [
            span
            for span in self.question.spans
            if "share" in span.marks
            and self._is_free(span)
            and span.start - 1 not in self.question.numbers  # “90 percent”
        ]
        for span in shares[:1]:
            self._use(span.start, span.end)
        has_share = bool(shares)
        group, period = self._group()
        is_by_group = group is not None
        extreme = None if compared else self._extreme()
        often = self._use_span("often", "seldom")
        limit = self._limit()
        comparative = None
        if compared is not None:
            comparative = self._use_span("more", "less")
            for span in self.question.spans:
                if comparative is None and self._is_more_of(span):
                    self._use(span.start, span.end)
            for kind in ("difference", "or", "and", "than", "between"):
                self._use_span(kind)
        subject = self._subject()
        if self._use_span("how_often"):
            self._use_span("count")
            return self._plan("count", None, compared=compared)
        kinds = ("sum", "mean", "count", "how_much", "distinct")
        asked = {kind for kind in kinds if self._use_span(kind)}
        for kind in asked - {"how_much"}:
            while self._use_span(kind):
                pass
        ranks = extreme or often
        if has_share and (compared or ranks or asked & {"mean", "distinct"}):
            raise NotOfTables
        if has_share:
            return self._share(group, period)
        averages = "mean" in asked and group is not None and not compared and not ranks
        if averages and (plan := self._averaged(asked, subject, group, period)):
            return plan
        is_plain = not (asked or ranks or self.filters or self.alternatives or compared)
        if is_plain and group is None and self._asks_for_values(subject):
            asked = {"distinct"}  # “Which categories are there?”
        if asked == {"distinct"} and group is None:
            group, subject, asked = self._distinct(subject), None, {"count"}
        ranked = extreme or often or self.question.first("top", "bottom")
        if ranked and group is None and subject is not None and not asked & {"count", "how_much"}:
            is_much = often is not None or extreme is None or extreme[1] == "much"
            is_top = limit is not None and self.question.has("top", "bottom")
            is_much = is_much or bool(asked) or (is_top and self._ranks_sums(subject))
            is_much = is_much or (extreme is not None and extreme[1] == "rating")
            is_much = is_much and not self._ranks_rows(subject)
            numbers = [i for m in self.mentions for i in self._typed(m, "number")]
            if numbers and not asked and all(self._adds(i) is False for i in numbers):
                is_much = extreme is not None and extreme[1] == "rating"  # the greatest rate
            group, period = self._subject_group(subject, is_much=is_much) or (None, None)
        label = self._label(subject, group)
        if compared is not None and not asked & {"sum", "mean", "count"}:
            measure, column = self._compared_measure(comparative, compared)
        elif often and not asked:
            if group is None:
                raise NotOfTables
            measure, column = "count", None
        elif extreme and extreme[1] != "much" and is_by_group and not asked - {"distinct"}:
            measure, column = extreme[0], self._extreme_column(extreme[1])
            if self._type(column) != "number" or limit:
                raise NotOfTables
        else:
            measure, column = self._computed(asked, subject, extreme, group, label)
        if measure == "count" and column == group:
            column = None  # “The countries and the number of singers in each country”
        order: Literal["", "most", "least"] = ""
        if measure in ("most", "least"):
            limit = None if is_by_group else limit or 1
        elif ranked and group is not None:
            is_least = (extreme and extreme[0] == "least") or self.question.has("seldom", "bottom")
            order, limit = "least" if is_least else "most", limit or 1
        elif extreme:
            raise NotOfTables  # “How many … the most …”
        self._use_span("top", "bottom")
        named = group if group is not None else label if measure != "count" else None
        if named is not None and compared is None and WHO & set(self.words[:2]):
            self.is_unsure = self.is_unsure or not self._is_of_persons(named)
        return self._plan(
            measure,
            column,
            group=group,
            period=period,
            order=order,
            limit=limit,
            compared=compared,
            label=label,
        )

    def _plan(self, measure: Measure, column: int | None, **others: Any) -> Plan:
        return Plan(
            tables=(),
            columns=tuple(each.name for each in self.shape.columns),
            types=tuple(each.type for each in self.shape.columns),
            measure=measure,
            column=column,
            filters=tuple(self.filters),
            alternatives=self.alternatives,
            language=self.question.language,
            **others,
        )

    def _share(self, group: int | None, period: Period | None) -> Plan:
        """What part of the rows, or of their numbers, the only condition has, or each group."""
        column = None
        compared = {each.column for each in self.filters}
        if any(
            set(self._typed(m, "number")) - compared and self._is_free(m) for m in self.mentions
        ):
            column = self._number_column()
            if self._adds(column) is not True:
                raise NotOfTables
        if group is not None:
            return self._plan("share", column, group=group, period=period)
        parts = [each for each in self.filters if self._type(each.column) != "date"]
        if len(parts) != 1 or self.alternatives:
            raise NotOfTables  # Of what, is not sure.
        self.filters = [each for each in self.filters if each not in parts]
        return self._plan("share", column, part=tuple(parts))

    def _averaged(
        self, asked: set[str], subject: Match | None, group: int | None, period: Period | None
    ) -> Plan | None:
        """The mean over groups: of counts, or of sums over time such as “spent per month”."""
        column: int | None = None
        if "count" in asked:
            measure, column = self._counted(subject)
            if measure == "count":
                return self._plan("count", column, group=group, period=period, is_averaged=True)
        elif period is None:
            return None
        else:
            is_money = "how_much" in asked or self.question.has("spent")
            column = self._number_column(how_much=is_money)
        assert column is not None
        adds = True if "sum" in asked else self._adds(column)
        is_single = any(word.endswith(_SINGLE) for word in self.words)
        if adds and is_single and not asked & {"sum", "how_much"}:
            adds = None  # “The average invoice amount per month”: of invoices or of months.
        if adds is None:
            adds = self._one_of((True, False))
        if period is None or not adds:
            return self._plan("mean", column, group=group, period=period)
        return self._plan("sum", column, group=group, period=period, is_averaged=True)

    def _computed(  # noqa: PLR0911, PLR0912 (one line for each measure)
        self,
        asked: set[str],
        subject: Match | None,
        extreme: Extreme | None,
        group: int | None,
        label: int | None,
    ) -> tuple[Measure, int | None]:
        """The measure and its column. Raises NotOfTables where nothing is to be computed."""
        question = self.question
        if asked >= {"how_much", "count"} or (asked >= {"mean", "sum"} and not self._names_total()):
            raise NotOfTables  # Two questions in one.
        if "mean" in asked:
            if "count" in asked:
                measure, column = self._counted(subject)
                if measure == "count":
                    raise NotOfTables  # An average of counts needs groups.
                return "mean", column
            is_named = any(self._typed(m, "number") for m in self.mentions)
            sums = self._sums() if group is not None and not is_named else []
            span = self.question.first("mean")
            noun = self.words[span.end] if span and span.end < len(self.words) else ""
            is_of_rows = (
                span is not None and not noun.endswith(("s", "en")) and self.is_table_at(span.end)
            )
            if len(sums) == 1 and is_of_rows and sums[0] in self._money():
                return "mean", sums[0]  # “Average donation per campaign”
            if group is not None and not is_named:
                raise NotOfTables  # “The average of invoices by customer”: of what, is not said.
            return "mean", self._number_column()
        if "count" in asked and not extreme:
            is_distinct = "distinct" in asked
            return self._stocked() or self._counted(subject, is_distinct=is_distinct)
        if (price := self._single_price(asked, group)) is not None and not extreme:
            return "list", price
        if "sum" in asked or ("how_much" in asked and not extreme):
            column = self._number_column(how_much="how_much" in asked)
            is_value = "sum" not in asked and group is None and self._is_price(column)
            is_value = is_value and not question.has("earned", "raised")
            return "list" if is_value else "sum", column
        if extreme and group is not None:
            named = any(self._typed(m, "number") and self._is_free(m) for m in self.mentions)
            if extreme[1] == "rating":
                return "mean", self._extreme_column("rating")
            if extreme[1] == "much" and not named and not question.has("spent"):
                return self._most_of()
            return "sum", self._number_column()
        if extreme:
            return extreme[0], self._extreme_column(extreme[1])
        if question.has("spent") or self._is_earned():
            column = self._number_column(how_much=True)
            if any(each.column == column for each in self.filters):
                raise NotOfTables  # “Shops where we spent more than 100” compares sums.
            return "sum", column
        if group is None and self._asks_revenue():
            return "sum", self._number_column(how_much=True)
        if question.has("top", "bottom"):
            named = any(self._typed(m, "number") and self._is_free(m) for m in self.mentions)
            if group is not None and not named:
                return self._of_entity()
            column = self._number_column()
            return ("sum" if group is not None else self._end()), column
        return self._of_group() if group is not None else self._listed(label)

    def _single_price(self, asked: set[str], group: int | None) -> int | None:
        """The only column of prices where the question is what one thing costs, and not what was
        paid for all of it."""
        words = set(self.words)
        is_price = bool(words & _COSTS) or (
            self.words[:3] == ["how", "much", "is"]
            and not any(self._typed(m, "number") and m.strength > 1 for m in self.mentions)
        )
        if asked - {"how_much"} or group is not None or words & _US or not is_price:
            return None
        prices = [i for i in self.shape.concepts["price"] if i in self._money()]
        prices = [i for i in prices if self._is_price(i)]
        things = [each for each in self.filters if each.op == "=" and len(each.values) == 1]
        if len(prices) != 1 or len(self.filters) != 1 or not things or self.alternatives:
            values = {m.start for m in self.matches if m.kind == "value" and m.start in self.used}
            if any(at and self.words[at - 1] in _ONE for at in values):
                raise NotOfTables  # “What does a repair cost?”: no price of one, and no sum.
            return None
        for match in self.mentions:
            if self.words[match.start] in _COSTS:
                self._use(match.start, match.end, match.strength)
        return prices[0]

    def _most_of(self) -> tuple[Measure, int | None]:
        """What “most” of groups means: rows, if these are named behind it, else rows or money."""
        spans = [s for s in self.question.spans if "much" in extremes_of(s)]
        nouns = [self._after_small(span.end) for span in spans]
        if self.question.language == "de":
            nouns += [at + 1 for at in nouns]  # “Nacht Dienste”, one word as it was written
        named = any(
            self._names_rows(at)
            or any(self._typed(match, "date") for match in self._named_at(at))
            or any(self._is_of_table(at - 1) for at in (span.start for span in spans) if at)
            or (
                may_name_rows(self, at)
                and (self.words[at].endswith("s") or concepts_of(self.words[at], is_question=True))
            )
            for at in nouns
        )
        options: list[tuple[Measure, int | None]] = [("count", None)]
        if not named:
            options += [("sum", column) for column in self._money() if not self._is_price(column)]
        chosen: tuple[Measure, int | None] = self._one_of(options[:2])
        return chosen

    def _of_entity(self) -> tuple[Measure, int | None]:
        """What “top 5 donors” are ranked by: the only amounts that are added up, else rows, which
        is not sure."""
        sums = self._sums()
        if len(sums) == 1:
            return "sum", sums[0]
        options: list[tuple[Measure, int | None]] = [*(("sum", i) for i in sums), ("count", None)]
        self.is_unsure = self.is_unsure or len(options) == 1
        chosen: tuple[Measure, int | None] = self._one_of(options[:2])
        return chosen

    def _of_group(self) -> tuple[Measure, int | None]:
        """What is computed by group where nothing says it: “hours per project”."""
        if any(self._typed(m, "number") and self._is_free(m) for m in self.mentions):
            column = self._number_column()
            if self._adds(column) is False and column not in self.shape.stocks:
                raise NotOfTables
            return "sum", column
        options: list[tuple[Measure, int | None]] = [("count", None)]
        options += [("sum", column) for column in self._money() if not self._is_price(column)]
        chosen: tuple[Measure, int | None] = self._one_of(options[:2])
        return chosen

    def _listed(self, label: int | None) -> tuple[Measure, int | None]:
        """The rows that the conditions leave, or one of their cells. Raises NotOfTables where
        nothing says that rows are asked for."""
        question = self.question
        if not self.filters and not self.alternatives:
            raise NotOfTables
        if question.is_for_existence:
            return "count", None
        if any(self._is_out_of_range(each) for each in self.filters):
            raise NotOfTables
        first = self._after_small(0)
        is_what = (
            self.words[0] in _WHAT
            or (self.words[0] == "wie" and not question.has("count"))
            or (
                any(self._typed(m, "number") for m in self._named_at(first))
                and not any(m.kind == "table" and m.start == first for m in self.matches)
            )
        )
        if is_what and any(self._typed(m, "number") and self._is_free(m) for m in self.mentions):
            column = self._number_column(how_much=True)
            is_single = self._is_price(column) or self._adds(column) is False
            if is_single or self._adds(column):
                return ("list" if is_single else "sum"), column
            if any(self._typed(m, "number") and m.strength >= 3 for m in self._named_at(first)):
                raise NotOfTables  # Numbers are asked for, and not the rows.
        conditions = (*self.filters, *self.alternatives)
        if label is not None and any(e.column == label and e.op == "=" for e in conditions):
            raise NotOfTables  # The answer would be the value of the question.
        times = {at for time in question.times for at in range(time.start, time.end)}
        asked = [span.end for span in question.spans if "which" in span.marks]
        names_rows = any(
            match.kind == "value" and match.start in asked for match in self.matches
        )  # “Which posters cost …”
        names_rows = (
            names_rows
            or question.has("out_of_stock")
            or any(
                match.kind == "table" or match.strength > 1 or self._typed(match, "text", "date")
                for match in (*self.matches, *self.mentions)
                if match.kind != "value" and match.start not in times
            )
            or any(self._is_of_table(at) for at in range(len(self.words)) if at not in times)
        )
        is_limited = len(conditions) > 1 or any(
            each.op != "=" or self._type(each.column) == "boolean" for each in conditions
        )
        is_asked = question.has("which") or is_limited
        if self._use_span("list") or (names_rows and is_asked):
            return "list", label
        raise NotOfTables

    def _is_out_of_range(self, each: Filter) -> bool:
        """Whether a span of days has none of the column's."""
        column = self.shape.columns[each.column]
        if each.op != "within" or column.least is None or column.most is None:
            return False
        first, after = each.values
        return first > column.most or after <= column.least  # type: ignore[operator]

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
        is_each = any(self.shape.columns[each.column].is_unique for each in compared)
        if not self._is_price(column, compared):
            return "sum", column
        if is_each or not self.question.has("earned", "raised", "spent"):
            return "list", column
        return "sum", column

    # What is left

    def _names(self, computed: int | None) -> None:
        """Use up what names the table, and words of columns that are used or shown; `computed`
        is the column that is computed with."""
        for match in self.matches:
            if match.kind == "table" and not self.used >= set(range(match.start, match.end)):
                is_whole = any(
                    len(words) == match.end - match.start
                    for at in match.columns
                    for words in table_names(self.shape.tables[at])
                )
                share = 1.5 if is_whole and match.strength >= 3 else 0.5
                self._use(match.start, match.end, match.strength * share)
        shown = {
            index
            for index, column in enumerate(self.shape.columns)
            if column.type in ("text", "date")
        }
        in_use = {each.column for each in self.filters} | shown | ({computed} - {None})
        for match in self.mentions:
            if self._is_free(match) and set(match.columns) & in_use:
                self._use(match.start, match.end, match.strength / 2)
        for at in range(len(self.words)):
            if self._is_of_table(at):
                self._use(at, at + 1, 2)
            elif self._is_about_table(at):
                self._use(at, at + 1, 1)

    def _of_tables(self, plan: Plan) -> Plan:
        """The plan for the tables of the shape, or those that the question names: “in the list of
        March”. Tables without a column that is computed with are none of them."""
        tables = self.shape.tables
        chosen = set(range(len(tables)))
        for match in self.matches:
            if (
                match.kind == "table"
                and match.end - match.start
                and len(match.columns) < len(tables)
            ):
                chosen &= set(match.columns)
        used = plan.used_columns
        chosen = {
            at for at in chosen if all(self.shape.places[at][index] is not None for index in used)
        }
        if not chosen:
            raise NotOfTables
        order = sorted(chosen)
        ids = tuple(tables[at].id for at in order)
        return plan.model_copy(update={"tables": ids, "layouts": self.shape.layouts(order)})

    def _unknown(self, computed: int | None) -> list[int]:
        """The words that nothing explains; `computed` is the column that is computed with."""
        known = set(self.used)
        joints = {"words", "rows", "and", "or", "which", "list"}
        columns = {computed, *(each.column for each in self.filters)}
        has_money = bool(columns & {*self._money()})
        if self._is_earned():
            joints |= {"earned", "raised"}
        if not self._is_of_gifts():
            joints |= {"spent", "pays"} if has_money else {"spent"}
        if computed in self.shape.concepts["arrears"]:
            joints.add("unpaid")
        unit = self.shape.columns[computed].unit if computed is not None else ""
        rates = {each for each, of in self.shape.rates.items() if computed in of}
        headers = [
            name for index in columns if index is not None for name in self.shape.names[index]
        ]
        for at, word in enumerate(self.words):
            # “Trinken” where “Trinkwasser” is asked for.
            stem = stem_of(word)
            is_in_header = len(stem) >= 5 and any(name.startswith(stem) for name in headers)
            if is_in_header or word in PLAIN_VERBS or (has_money and word in _COST_WORDS):
                known.add(at)
        for span in self.question.spans:
            if {"year", "month"} & span.marks.keys() and any(
                time.start == span.end for time in self.question.times
            ):
                known.update(range(span.start, span.end))  # “im Jahr 2025”
            if rates & span.marks.keys():
                known.update(range(span.start - 1, span.end))  # “im Jahr” of “€/Jahr”
            if span.marks.keys() & joints or (unit and span.marks.get("units") == unit):
                known.update(range(span.start, span.end))
            elif span.marks.keys() & {"group", "at_least"} and span.end in self.used:
                known.update(range(span.start, span.end))  # “delivered by Norwerk”, “ab Bremen”
        last = len(self.words) - 1
        ending = self._span_to(len(self.words))
        if self.question.language == "de" and self.words[-1] in _PARTICLES:
            known.add(last)
        elif ending is not None and "group" in ending.marks:
            known.add(last)  # “Which director do we have the most films by?”
        return [at for at in range(len(self.words)) if at not in known]
