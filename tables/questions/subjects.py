"""What a question asks for, “which customers” or “how many invoices”, and the column that names a
row. Begin with `Subjects._subject`."""

from dataclasses import dataclass

from tables.questions.conditions import PERSONS, WITH
from tables.questions.groups import Groups
from tables.questions.matching import Match
from tables.questions.plan import Measure, Period
from tables.questions.reader import NotOfTables
from tables.questions.words import concepts_of

#: What columns are about that name a row better than its number does.
_NAMING = frozenset(("name", "product", "project", "device", "customer", "employee", "course"))
#: Questions for persons begin with these.
WHO = frozenset(("who", "whom", "wer", "wem", "quien", "quienes"))
#: Nouns of which each row may have one, and which are not counted by their kinds.
_THINGS = frozenset(("thing", "vehicle", "tree", "plant", "book"))
#: A clause about the noun before them.
_RELATIVE = frozenset(("that", "which", "who", "der", "die", "das", "que"))
#: What is there of a thing.
_STOCK = frozenset(("stock", "lager", "vorrat", "vorratig", "existencias", "almacen", "hand"))


@dataclass
class Subjects(Groups):
    """Reads what is asked for, and what is counted of it."""

    def _is_of_persons(self, index: int) -> bool:
        """Whether a column says who."""
        words = self.shape.names[index]
        if WHO & set(words):
            return True
        phrases = (*words, " ".join(words))
        return any(PERSONS & set(concepts_of(each, is_question=False)) for each in phrases)

    def _distinct(self, subject: Match | None) -> int:
        """The column of which the different values are meant."""
        columns = self._typed(subject, "text") if subject else []
        if subject is None or not columns:
            raise NotOfTables
        self._use(subject.start, subject.end, subject.strength)
        return int(self._one_of(columns))

    def _subject(self) -> Match | None:
        """What is asked for: the name after “which”, “how many” or “top 3”."""
        if self.limit_at is not None:
            for match in self._named_at(self._after_small(self.limit_at + 1)):
                texts = self._typed(match, "text")
                is_row = any(self.shape.columns[i].is_unique for i in texts)
                is_other = is_row and bool(WHO & set(self.words[:2]))
                if texts and self._is_free(match) and not is_other:
                    return match
        first = self._after_small(0)
        for match in self._named_at(first):
            is_with = match.end < len(self.words) and self.words[match.end] in WITH
            if is_with and self._typed(match, "text") and self._is_free(match):
                return match
        if first + 1 < len(self.words) and self.words[first + 1] in WITH and self._period(first):
            self._use(first, first + 1)
            return Match(first, first + 1, "column", (self._period(first)[0],), (), 3)  # type: ignore[index]
        kinds = {"which", "count", "top", "bottom", "most", "least", "list", "how_much"}
        kinds |= {"often", "seldom"}
        for span in self.question.spans:
            if not span.marks.keys() & kinds:
                continue
            at = span.end
            while at < len(self.words) and (
                at in self.question.numbers
                or (
                    (small := self.question.span(at))
                    and small.marks.keys() & {"words", "most", "least", "distinct", "more", "less"}
                    and not self._named_at(at)
                )
            ):
                at += 1
            asks = [m for m in self._named_at(span.start) if "which" in span.marks]
            for match in (*asks, *self._named_at(at)):
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

    def _asks_for_values(self, subject: Match | None) -> bool:
        """Whether the values of a column are asked for, of which some occur in several rows."""
        if subject is None or not self.question.has("which", "list") or subject.strength < 3:
            return False
        if (asking := self.question.span(subject.start)) and "which" in asking.marks:
            return False  # “What is …”, of a column that is called “What”
        columns = self._typed(subject, "text")
        is_table = any(m.kind == "table" and m.start == subject.start for m in self.matches)
        has_number = any(self._typed(match, "number") for match in self.mentions)
        return (
            bool(columns)
            and not any(self.shape.columns[i].is_unique for i in columns)
            and not (is_table or has_number)
        )

    def _ranks_rows(self, subject: Match) -> bool:
        """Whether a clause says of the rows how they rank: “Where did the trip go that cost the
        most?”"""
        return any(
            word in _RELATIVE
            and at
            and at not in range(subject.start, subject.end + 2)
            and self.is_table_at(at - 1)
            for at, word in enumerate(self.words)
        )

    def _ranks_sums(self, subject: Match) -> bool:
        """Whether the numbers that a ranking names are added: “top 3 customers by amount”; without
        any, whether what is ranked is none of the rows: “top 3 customers” of invoices."""
        columns = {i for match in self.mentions for i in self._typed(match, "number")}
        if not columns:
            tables = [m for m in self.matches if m.kind == "table" and m.start == subject.start]
            if subject.strength >= 3:
                return all(match.strength < subject.strength for match in tables)
            return not self.is_table_at(subject.start)
        return all(self._adds(column) for column in columns)

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
            dates = self._typed(subject, "date")
            if len(dates) > 1 and len(dates) == len(columns):  # “When does the contract end?”
                others = [m for m in self.mentions if m is not subject]
                dated = {i for m in others for i in self._typed(m, "date")} & set(dates)
                columns = [self._one_of(sorted(dated) or dates)]
            if columns and columns[0] != group:
                self._use(subject.start, subject.end, subject.strength)
                return columns[0]
        named = [m for m in self.mentions if m.strength >= 3 and self._is_free(m)]
        texts = [i for m in named for i in self._typed(m, "text") if i != group]
        texts += [
            i
            for i, column in enumerate(self.shape.columns)
            if column.is_unique
            and self.shape.is_numbering(0)
            and not self.shape.is_numbering(i)
            and any(
                _NAMING & set(concepts_of(word, is_question=False)) for word in self.shape.names[i]
            )
        ]
        texts += self._label_columns()
        same = {each.column for each in self.filters if each.op == "=" and len(each.values) == 1}
        return next((i for i in texts if i not in same), texts[0] if texts else None)

    def _label_columns(self) -> list[int]:
        """The columns of texts; before a first one that repeats, one that has far more values."""
        texts = [i for i, column in enumerate(self.shape.columns) if column.type == "text"]
        counts = [len(self.shape.columns[index].values) for index in texts]
        if counts and max(counts) >= 2 * counts[0]:
            texts.insert(0, texts[counts.index(max(counts))])
        return list(dict.fromkeys(texts))

    def _stocked(self) -> tuple[Measure, int | None] | None:
        """Of “how many X are in stock”: the pieces that there are; None for other questions."""
        for match in self.mentions:
            if self._is_free(match) and _STOCK & set(self.words[match.start : match.end]):
                numbers = self._typed(match, "number")
                if len(numbers) == 1:
                    self._use(match.start, match.end, match.strength)
                    # Without a product it may ask for the number of products.
                    self.is_unsure = self.is_unsure or not self.filters
                    return "sum", numbers[0]
        return None

    def _counted(
        self, subject: Match | None, *, is_distinct: bool = False
    ) -> tuple[Measure, int | None]:
        """Of “how many X”: X are numbers of a column to add, values of one to count, or rows."""
        if is_distinct and not (
            subject is None and self.filters and any(c.is_unique for c in self.shape.columns)
        ):
            return "count", self._distinct(subject)
        if subject is None:
            return "count", None
        is_table = any(
            m.kind == "table" and m.start == subject.start and m.strength >= subject.strength
            for m in self.matches
        )
        numbers = self._typed(subject, "number")
        if subject.strength == 1:  # “How many sales” are no amounts of money.
            numbers = [i for i in numbers if i not in self._money()]
        if numbers and not is_table:
            self._use(subject.start, subject.end, subject.strength)
            if subject.strength == 3 and numbers[0] == 0 and not self._adds(0):
                return "count", None  # “How many responses” of “Response”, the numbers of rows
            return "sum", self._one_of(numbers)
        texts = self._typed(subject, "text")
        # “How many cars” of a fleet, where each model is in several rows, are its rows.
        is_table = is_table or (
            self._is_about_table(subject.start)
            and not any(self.shape.columns[index].is_unique for index in texts)
            and any(column.is_unique for column in self.shape.columns)
        )
        if not texts or is_table:
            return "count", None
        self._use(subject.start, subject.end, subject.strength)
        column: int = self._one_of(texts)
        is_of_rows = self.shape.columns[column].is_unique or self._is_of_rows(column, subject)
        return "count", None if is_of_rows else column

    def _is_of_rows(self, column: int, subject: Match) -> bool:
        """Whether rows are counted rather than what differs in a column that repeats."""
        if column in self.shape.concepts["weekday"]:
            return True  # “How many days”
        is_thing = bool(_THINGS & set(concepts_of(self.words[subject.start], is_question=True)))
        is_title = self._is_title(column, subject)
        # “How many bikes”: each row has one, though many are of one kind. “How many books are still
        # out”: each loan is of a book. Without a condition books may be titles.
        self.is_unsure = self.is_unsure or ((is_thing or is_title) and not self.filters)
        return is_thing or (is_title and bool(self.filters))

    def _is_title(self, column: int, subject: Match) -> bool:
        """Whether a column that repeats has names of things, such as “Título del libro”, of which
        the question has the thing."""
        names = self.shape.names[column]
        said = {c for name in names for c in concepts_of(name, is_question=False)}
        return (
            subject.strength == 2
            and not self.shape.columns[column].is_unique
            and "name" in said
            and not said & (PERSONS - {"name"})
        )
