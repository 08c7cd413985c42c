"""Words, numbers and times of a question. Begin with `read_question`. Words by language are in
`words.toml`. Without Django.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path

with (Path(__file__).parent / "words.toml").open("rb") as _file:
    _TOML: dict[str, dict[str, str]] = tomllib.load(_file)

_WORD = re.compile(r"\d+(?:[.,'’]\d+)*(?![\w])|[^\W_]+|[%€$£¥]|°C")
_DATES = re.compile(
    r"(?<![\w.])(?:(?P<year>[12]\d{3})-(?P<month>\d\d?)-(?P<day>\d\d?)"
    r"|(?P<day2>\d\d?)\.(?P<month2>\d\d?)\.(?P<year2>[12]\d{3})"
    r"|(?P<first>\d\d?)/(?P<second>\d\d?)/(?P<year3>[12]\d{3}))(?!\w)"
)
#: First parts of German compounds, which are words of their own elsewhere.
_COMPOUND = re.compile(r"(durchschnitts|gesamt)(?=\w{4})")
#: Most words of a phrase, and of a name in a table that is looked for.
MAX_PHRASE = 6

Marks = dict[str, str]


@lru_cache(maxsize=50_000)
def fold(text: str) -> str:
    """In small letters, without accents; of a word, which is remembered."""
    return fold_text(text)


def fold_text(text: str) -> str:
    """In small letters, without accents."""
    if text.isascii():
        return text.lower()
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@lru_cache(maxsize=50_000)
def word_forms(word: str) -> frozenset[str]:
    """The folded word with and without an ending of number, gender or case: two words are forms of
    one if they share any."""
    forms = {word}
    for ending in ("s", "e", "n", "es", "en", "er", "em", "ern"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            forms.add(word[: -len(ending)])
    for ending in ("a", "o", "as", "os"):
        if word.endswith(ending) and len(word) - len(ending) >= 5:
            forms.add(word[: -len(ending)])
    if word.endswith("ies") and len(word) > 4:
        forms.add(f"{word[:-3]}y")
    return frozenset(forms)


def split_words(text: str) -> list[str]:
    """The folded words of a text."""
    return [part for found in _WORD.finditer(text) for part in _parts(fold(found[0]))]


def _parts(word: str) -> list[str]:
    compound = _COMPOUND.match(word)
    return [compound[1].removesuffix("s"), word[compound.end() :]] if compound else [word]


def _phrases(words: str) -> list[tuple[str, ...]]:
    return [tuple(split_words(phrase)) for phrase in words.replace("\n", " ").split(",")]


def _lexicon() -> dict[tuple[str, ...], Marks]:
    """Phrases with what they mean: kind → value."""
    found: dict[tuple[str, ...], Marks] = {}
    kinds = {**dict(_TOML["marks"].items()), **_TOML["ignored"]}
    for kind, words in kinds.items():
        for phrase in _phrases(words):
            found.setdefault(phrase, {})[kind] = ""
    sections = ("most", "least", "more", "less", "months", "quarters", "numbers", "units")
    for kind in sections:
        for value, words in _TOML[kind].items():
            for phrase in _phrases(words):
                marks = found.setdefault(phrase, {})
                # “oldest” is the greatest age or the least date: whatever the table has.
                marks[kind] = f"{marks[kind]} {value}" if kind in marks else value
    return found


_LEXICON = _lexicon()
#: Marks of which a question needs one if tables are to be asked.
MEASURES = frozenset(
    [
        "count",
        "how_much",
        "spent",
        "sum",
        "mean",
        "most",
        "least",
        "often",
        "seldom",
        "top",
        "bottom",
        "list",
        "difference",
        "more",
        "less",
    ]
)
#: With a number these do, too: “which bikes weigh less than 20 kg”.
_LIMITS = frozenset(("above", "below", "at_least", "at_most", "or_more", "or_less", "exactly"))


def _concepts(*sections: str) -> dict[str, tuple[str, ...]]:
    """Words of one word or more → the concepts that they mean."""
    found: dict[str, tuple[str, ...]] = {}
    for section in sections:
        for concept, words in _TOML[section].items():
            for phrase in _phrases(words):
                key = " ".join(phrase)
                found[key] = tuple(dict.fromkeys((*found.get(key, ()), concept)))
    return found


_HEADER_CONCEPTS, _QUESTION_CONCEPTS = _concepts("concepts"), _concepts("concepts", "asks")


def concepts_of(phrase: str, *, is_question: bool) -> tuple[str, ...]:
    """What a folded word or phrase of a header, or of a question, is about."""
    return (_QUESTION_CONCEPTS if is_question else _HEADER_CONCEPTS).get(phrase, ())


@dataclass(frozen=True, slots=True)
class Span:
    """Words of a question from `start` to `end` that mean something: kind → value."""

    start: int
    end: int
    marks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Time:
    """A day, month, quarter or year of a question; without a `year` of any year. `op` is `in`,
    `<`, `<=`, `>` or `>=`."""

    start: int
    end: int
    op: str
    year: int | None = None
    month: int | None = None
    quarter: int | None = None
    day: int | None = None

    def days(self, year: int) -> tuple[date, date]:
        """The first day in this year, and the first one after it."""
        if self.day and self.month:
            first = date(year, self.month, self.day)
            return first, first + timedelta(days=1)
        month = self.month or (3 * self.quarter - 2 if self.quarter else 1)
        months = month - 1 + (1 if self.month else 3 if self.quarter else 12)
        return date(year, month, 1), date(year + months // 12, months % 12 + 1, 1)


@dataclass(slots=True)
class Question:
    """A question taken apart: folded words and, of each word, the spans that begin with it.
    `numbers` are the values by place, `times` what it says of dates."""

    words: list[str]
    spans: list[Span]
    language: str
    numbers: dict[int, float] = field(default_factory=dict)
    times: list[Time] = field(default_factory=list)

    @property
    def content_words(self) -> list[str]:
        """The words but for small ones."""
        small = {
            at
            for span in self.spans
            if span.marks.keys() == {"words"}
            for at in range(span.start, span.end)
        }
        return [word for at, word in enumerate(self.words) if at not in small]

    def span(self, at: int) -> Span | None:
        """The span that begins at this word."""
        return next((span for span in self.spans if span.start == at), None)

    def has(self, *kinds: str) -> bool:
        """Whether any span means one of these."""
        return any(kind in span.marks for span in self.spans for kind in kinds)

    def first(self, *kinds: str) -> Span | None:
        """The first span that means one of these."""
        return next((s for s in self.spans if any(kind in s.marks for kind in kinds)), None)


def has_measure(text: str) -> bool:
    """Whether a question has a word that asks for something that tables answer."""
    words = split_words(text)
    wanted = MEASURES | _LIMITS if any(map(str.isdigit, text)) else MEASURES
    return any(wanted & span.marks.keys() for span in _spans(words))


def _spans(words: list[str]) -> list[Span]:
    """The longest phrases of the lexicon, from left to right."""
    spans, at = [], 0
    while at < len(words):
        for end in range(min(at + MAX_PHRASE, len(words)), at, -1):
            if marks := _LEXICON.get(tuple(words[at:end])):
                spans.append(Span(at, end, marks))
                at = end
                break
        else:
            at += 1
    return spans


def read_question(text: str, *, today: date, language: str = "") -> Question:
    """Take a question apart. `language` is its ISO code where it is known."""
    held: list[date] = []

    def hold(found: re.Match[str]) -> str:
        year = int(found["year"] or found["year2"] or found["year3"])
        if found["first"]:
            pair = int(found["first"]), int(found["second"])
            # In English the month comes first, unless it can be none.
            month, day = pair if is_english and pair[0] <= 12 else pair[::-1]
        else:
            month = int(found["month"] or found["month2"])
            day = int(found["day"] or found["day2"])
        try:
            held.append(date(year, month, day))
        except ValueError:
            return found[0]
        return f" heldday{len(held) - 1} "

    language = language or _language(split_words(text))
    is_english = language not in ("de", "es")
    words = split_words(_DATES.sub(hold, text))
    spans = [
        Span(span.start, span.end, {k: v for k, v in span.marks.items() if k != "which"})
        if words[span.start] == "was" and language == "en"
        else span
        for span in _spans(words)
    ]
    question = Question(words, spans, language)
    for at, word in enumerate(words):
        if word[0].isdigit() and (number := parse_number(word, language)) is not None:
            is_thousand = at + 1 < len(words) and words[at + 1] in (
                "thousand",
                "tausend",
                "mil",
                "k",
            )
            question.numbers[at] = number * 1000 if is_thousand else number
    for span in question.spans:
        if "numbers" in span.marks:
            question.numbers.setdefault(span.start, float(span.marks["numbers"]))
    question.times = _times(question, held, today)
    return question


def _language(words: list[str]) -> str:
    counts = {
        code: sum(word in known for word in words)
        for code, known in (
            (code, set(split_words(_TOML["languages"][code]))) for code in _TOML["languages"]
        )
    }
    return max(counts, key=lambda code: counts[code]) if any(counts.values()) else "en"


def parse_number(word: str, language: str) -> float | None:
    """A number as this language writes it; the other way where only that makes sense, such as `1.5`
    in German. None where it is none, or may be meant either way."""
    plain = word.replace("'", "").replace("’", "")
    decimal, group = (",", ".") if language in ("de", "es") else (".", ",")
    whole, _, fraction = plain.partition(decimal)
    is_whole = re.fullmatch(rf"\d{{1,3}}(?:{re.escape(group)}\d{{3}})+|\d+", whole)
    # “4.500” may be meant either way.
    if is_whole and (not fraction or (fraction.isdigit() and len(fraction) != 3)):
        return float(f"{whole.replace(group, '')}.{fraction or 0}")
    if re.fullmatch(r"\d{1,3}[.,]000", plain):
        return float(re.sub("[.,]", "", plain))
    if re.fullmatch(r"\d+[.,]\d{1,2}", plain):
        return float(plain.replace(",", "."))
    return None


def _times(question: Question, held: list[date], today: date) -> list[Time]:
    """The times that the words name. What is a number elsewhere, such as a year, stays one, too."""
    found: list[Time] = []
    words, at = question.words, 0
    while at < len(words):
        time = _time_at(question, at, held, today)
        if time is not None:
            found.append(_with_operator(question, time))
        at = time.end if time else at + 1
    return found


def _year_at(question: Question, at: int) -> int | None:
    word = question.words[at] if at < len(question.words) else ""
    return int(word) if re.fullmatch(r"(?:19|20)\d\d", word) else None


def _time_at(question: Question, at: int, held: list[date], today: date) -> Time | None:  # noqa: PLR0911
    words = question.words
    span = question.span(at)
    marks: Mapping[str, str] = span.marks if span else {}
    if words[at].startswith("heldday"):
        day = held[int(words[at].removeprefix("heldday"))]
        return Time(at, at + 1, "in", day.year, day.month, day=day.day)
    if span and {"today", "yesterday"} & marks.keys():
        day = today - timedelta(days="yesterday" in marks)
        return Time(at, span.end, "in", day.year, day.month, day=day.day)
    if span and ("months" in marks or "quarters" in marks):
        return _month_at(question, span)
    if span and ("last" in marks or "this" in marks) and (period := question.span(span.end)):
        return _relative(question, Span(at, period.end, {**marks, **period.marks}), today)
    behind = question.span(span.end) if span else None
    if span and behind and {"month", "quarter", "year"} & marks.keys() and "last" in behind.marks:
        return _relative(question, Span(at, behind.end, {**marks, "last": ""}), today)
    if year := _year_at(question, at):
        if (after := question.span(at + 1)) and "quarters" in after.marks:
            return Time(at, after.end, "in", year, None, int(after.marks["quarters"]))
        return Time(at, at + 1, "in", year)
    return None


def _month_at(question: Question, span: Span) -> Time:
    """“March”, “3 de marzo de 2026”, “March 3”, “second quarter of 2025”."""
    words, start, end = question.words, span.start, span.end
    month = int(span.marks["months"]) if "months" in span.marks else None
    quarter = int(span.marks["quarters"]) if "quarters" in span.marks else None
    day = None
    before = start - 1 - (start > 1 and words[start - 1] in ("of", "de"))
    for place in (end, before) if month else ():
        number = question.numbers.get(place, 0)
        if day is None and place >= 0 and 0 < number <= 31 and words[place].isdigit():
            day, start, end = int(number), min(start, place), max(end, place + 1)
    after = end + (end < len(words) and words[end] in ("of", "de", "del", "in"))
    year = _year_at(question, after)
    return Time(start, after + 1 if year else end, "in", year, month, quarter, day)


def _relative(question: Question, span: Span, today: date) -> Time | None:
    """“Last month”, “dieses Jahr”, “el trimestre pasado”, from today."""
    back = int("last" in span.marks)
    if "year" in span.marks:
        return Time(span.start, span.end, "in", today.year - back)
    if "month" in span.marks:
        months = today.year * 12 + today.month - 1 - back
        return Time(span.start, span.end, "in", months // 12, months % 12 + 1)
    if "quarter" in span.marks:
        quarters = today.year * 4 + (today.month - 1) // 3 - back
        return Time(span.start, span.end, "in", quarters // 4, None, quarters % 4 + 1)
    return None


_TIME_OPERATORS = {"before": "<", "until": "<=", "after": ">", "since": ">="}


def _with_operator(question: Question, time: Time) -> Time:
    """The time with the word before it: since, until, before, after."""
    start = time.start
    while start and question.words[start - 1] in (
        "the",
        "el",
        "dem",
        "den",
        "am",
        "year",
        "jahr",
        "ano",
        "end",
        "beginning",
    ):
        if question.words[start - 1] in ("end", "beginning"):
            return time
        start -= 1
    for span in question.spans:
        if span.end == start:
            for kind, op in _TIME_OPERATORS.items():
                if kind in span.marks:
                    return Time(
                        span.start, time.end, op, time.year, time.month, time.quarter, time.day
                    )
    return time
