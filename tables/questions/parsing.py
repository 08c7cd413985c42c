"""Questions taken apart: words, numbers and times. Begin with `read_question`. Without Django."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

from tables.questions.words import (
    Question,
    Span,
    Time,
    language_of,
    parse_number,
    spans_of,
    split_words,
)

_DATES = re.compile(
    r"(?<![\w.])(?:(?P<year>[12]\d{3})-(?P<month>\d\d?)-(?P<day>\d\d?)"
    r"|(?P<day2>\d\d?)\.(?P<month2>\d\d?)\.(?P<year2>[12]\d{3}|\d\d)"
    r"|(?P<first>\d\d?)/(?P<second>\d\d?)/(?P<year3>[12]\d{3})"
    r"|(?P<year4>20\d\d)-(?P<month4>\d\d)|(?P<month5>\d\d?)/(?P<year5>20\d\d))(?![\w-])"
)
_THOUSANDS, _MILLIONS = (
    frozenset(("thousand", "tausend", "mil", "k")),
    frozenset(("million", "millions", "millionen", "mio", "millon", "millones")),
)
#: “The 1st of August”.
_ORDINAL = re.compile(r"\b(\d\d?)(?:st|nd|rd|th)\b", re.I)
#: A time that a word or phrase stands for, before its place in the question is known.
_ANYWHERE = (0, 0, "in")
#: “Sin pagar” is said of what is not “pagado”.
_UNDONE = re.compile(
    r"\b(?:sin|por) (pagar|cobrar|devolver|entregar|resolver|vender|facturar)\b", re.I
)
_DONE = {"cobrar": "pagado", "devolver": "devuelto", "resolver": "resuelto", "vender": "vendido"}


def _undone(found: re.Match[str]) -> str:
    verb = found[1].lower()
    return f"no {_DONE.get(verb, f'{verb[:-2]}ado')}"


def read_question(text: str, *, today: date, language: str = "") -> Question:
    """Take a question apart. `language` is its ISO code where it is known."""
    written: list[Time] = []
    language = language or language_of(split_words(text))
    is_english = language not in ("de", "es")

    def hold(found: re.Match[str]) -> str:
        year, month, day = _written_date(found, is_english=is_english)
        try:
            date(year, month, day or 1)
        except ValueError:
            return found[0]
        written.append(Time(*_ANYWHERE, year, month, 1, day))
        return f" heldday{len(written) - 1} "

    text = _ORDINAL.sub(r"\1", text)
    words = split_words(_UNDONE.sub(_undone, _DATES.sub(hold, text)))
    spans = [
        Span(span.start, span.end, {k: v for k, v in span.marks.items() if k != "which"})
        if words[span.start] == "was" and language == "en"
        else span
        for span in spans_of(words)
    ]
    question = Question(words, spans, language)
    for at, word in enumerate(words):
        if word[0].isdigit():
            number = parse_number(word.removesuffix("k"), language)
            if number is not None:
                behind = words[at + 1] if at + 1 < len(words) else ""
                is_thousand = word.endswith("k") or behind in _THOUSANDS
                question.numbers[at] = number * 1000 if is_thousand else number
                if behind in _MILLIONS:
                    question.millions.add(at)
    for span in question.spans:
        if "numbers" in span.marks:
            question.numbers.setdefault(span.start, float(span.marks["numbers"]))
    question.times = _times(question, written, today)
    return question


def _written_date(found: re.Match[str], *, is_english: bool) -> tuple[int, int, int | None]:
    """Year, month and day of a date in figures; without a day of a month."""
    year = int(next(filter(None, (found[f"year{n}"] for n in ("", 2, 3, 4, 5)))))
    year += 2000 if year < 100 else 0
    if found["first"]:
        pair = int(found["first"]), int(found["second"])
        # In English the month comes first, unless it can be none.
        return year, *(pair if is_english and pair[0] <= 12 else pair[::-1])
    month = int(next(filter(None, (found[f"month{n}"] for n in ("", 2, 4, 5)))))
    day = found["day"] or found["day2"]
    return year, month, int(day) if day else None


def _times(question: Question, written: list[Time], today: date) -> list[Time]:
    """The times that the words name. What is a number elsewhere, such as a year, stays one, too."""
    found: list[Time] = []
    words, at = question.words, 0
    while at < len(words):
        time = _time_at(question, at, written, today)
        if time is not None:
            found.append(_with_operator(question, time))
        at = time.end if time else at + 1
    return found


def _year_at(question: Question, at: int) -> int | None:
    word = question.words[at] if at < len(question.words) else ""
    return int(word) if re.fullmatch(r"(?:19|20)\d\d", word) else None


def _time_at(question: Question, at: int, written: list[Time], today: date) -> Time | None:  # noqa: PLR0911
    words = question.words
    span = question.span(at)
    marks: Mapping[str, str] = span.marks if span else {}
    if words[at].startswith("heldday"):
        return replace(written[int(words[at].removeprefix("heldday"))], start=at, end=at + 1)
    if span and {"today", "yesterday"} & marks.keys():
        day = today - timedelta(days="yesterday" in marks)
        return Time(at, span.end, "in", day.year, day.month, 1, day.day)
    if span and marks.keys() & {"months", "quarters", "halves"}:
        return _part_of_year(question, span)
    if span and marks.keys() & {"last", "this", "next"}:
        if time := _relative(question, at, span.end, span, today):
            return time
    elif span and marks.keys() & {"month", "quarter", "year", "week"}:  # “el mes pasado”
        behind = question.span(span.end)
        if behind and behind.marks.keys() & {"last", "next"}:
            return _calendar_period(Span(at, behind.end, {**behind.marks, **marks}), today)
    if year := _year_at(question, at):
        after = question.span(at + 1)
        if after and after.marks.keys() & {"quarters", "halves"}:
            month, months = _months_of(after)
            return Time(at, after.end, "in", year, month, months)
        return Time(at, at + 1, "in", year)
    return None


def _months_of(span: Span) -> tuple[int, int]:
    """The first month that a name means, and how many."""
    marks = span.marks
    if "months" in marks:
        return int(marks["months"]), 1
    if "quarters" in marks:
        return 3 * int(marks["quarters"]) - 2, 3
    return 6 * int(marks["halves"]) - 5, 6


def _part_of_year(question: Question, span: Span) -> Time:
    """“March”, “3 de marzo de 2026”, “March 3”, “second quarter of 2025”."""
    words, start, end = question.words, span.start, span.end
    month, months = _months_of(span)
    day = None
    before = start - 1 - (start > 1 and words[start - 1] in ("of", "de"))
    for place in (end, before) if months == 1 else ():
        number = question.numbers.get(place, 0)
        if day is None and place >= 0 and 0 < number <= 31 and words[place].isdigit():
            day, start, end = int(number), min(start, place), max(end, place + 1)
    after = end + (end < len(words) and words[end] in ("of", "de", "del", "in"))
    year = _year_at(question, after)
    return Time(start, after + 1 if year else end, "in", year, month, months, day)


def _relative(question: Question, at: int, end: int, span: Span, today: date) -> Time | None:
    """“Last month”, “dieses Jahr”, “the last 30 days”, from today."""
    number = question.numbers.get(end)
    period = question.span(end if number is None else end + 1)
    if period is None:
        return None
    if number is not None and "last" in span.marks:
        days = number * next((n for p, n in (("day", 1), ("week", 7)) if p in period.marks), 0)
        if not 0 < days <= 3660 or days != int(days):
            return None  # whole months are counted in more than one way
        after = today + timedelta(days=1)
        return Time(at, period.end, "in", span=(after - timedelta(days=int(days)), after))
    if number is None:
        return _calendar_period(Span(at, period.end, {**span.marks, **period.marks}), today)
    return None


def _calendar_period(span: Span, today: date) -> Time | None:
    """This, the last or the next year, quarter, month or week (from Monday)."""
    step = 1 if "next" in span.marks else -1 if "last" in span.marks else 0
    at = span.start, span.end, "in"
    if "year" in span.marks:
        return Time(*at, today.year + step)
    if "month" in span.marks:
        months = today.year * 12 + today.month - 1 + step
        return Time(*at, months // 12, months % 12 + 1, 1)
    if "quarter" in span.marks:
        quarters = today.year * 4 + (today.month - 1) // 3 + step
        return Time(*at, quarters // 4, quarters % 4 * 3 + 1, 3)
    if "week" in span.marks:
        monday = today + timedelta(days=7 * step - today.weekday())
        return Time(*at, span=(monday, monday + timedelta(days=7)))
    return None


_TIME_OPERATORS = {"before": "<", "until": "<=", "after": ">", "since": ">="}
_BEFORE_TIMES = frozenset(("the", "el", "la", "dem", "den", "der", "am", "year", "jahr", "ano"))


def _with_operator(question: Question, time: Time) -> Time:
    """The time with the word before it: since, until, before, after."""
    start = time.start
    while start and question.words[start - 1] in _BEFORE_TIMES:
        start -= 1
    for span in question.spans:
        if span.end == start:
            for kind, op in _TIME_OPERATORS.items():
                if kind in span.marks:
                    return replace(time, start=span.start, op=op)
    return time
