"""Dates: `1943-03-12`, “12 March 1943”, “März 1943”, “in 1943”. Pure."""

import re
from collections.abc import Iterator, Sequence
from datetime import date

from graph.extraction.forms import form
from graph.extraction.found import Mention, Source
from graph.extraction.spots import Spot
from graph.extraction.tally import Tally

#: Of one passage: a table of years is no text about any of them.
MOST = 24

_MONTHS: Sequence[str] = (
    "january jan januar jänner janvier janv enero ene",
    "february feb februar février févr fevrier febrero",
    "march mar märz maerz mars marzo",
    "april apr avril avr abril abr",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet juil julio",
    "august aug août aout agosto ago",
    "september sep sept septembre septiembre setiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre déc decembre diciembre dic",
)
_NUMBERS = {name: at for at, names in enumerate(_MONTHS, start=1) for name in names.split()}
_MONTH = "(?:" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"[12]\d{3}(?![\d%])(?![.,]\d)"
_OF = r"(?:(?:of|de|del|d['’])\s?)?"
#: Words before a number that make a year of it, and those that do unless things are counted.
_BEFORE = (
    "in|since|from|until|till|by|during|years?|early|mid|late|circa|ca|before|after|between|"
    "season|spring|summer|autumn|fall|winter|edition|election|born|died|"
    "im|jahre?|seit|ab|bis|von|vor|nach|anno|zwischen|sommer|"
    "en|depuis|dès|vers|avant|après|année|entre|née?|"
    "desde|hasta|hacia|año|antes|después|nacid[oa]"
)
_BEFORE_OR_COUNTS = "of|to|c|around|about|and|um|und|et|y"
_COUNTED = r"(?:\w{1,30}s|people|men|women|children)"
_PATTERN = re.compile(
    rf"""
    (?<![\w.,/-])(?:
        (?P<iso>[12]\d{{3}}([-/])(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12]\d|3[01])(?!\d))
      | (?P<dotted>(?:[12]\d|3[01]|0?[1-9])\.(?:1[0-2]|0?[1-9])\.[12]\d{{3}}(?!\d))
      | (?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th|er|ère|\.|º)?\s{_OF}(?P<m1>{_MONTH}),?\s
        {_OF}(?P<y1>{_YEAR})
      | (?P<m2>{_MONTH})\s(?P<day2>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?,?\s(?P<y2>{_YEAR})
      | (?P<m3>{_MONTH}),?\s{_OF}(?P<y3>{_YEAR})
      | (?P<from>{_YEAR})\s?[-–—/]\s?(?P<to>{_YEAR})
    )
  | (?<=\()(?P<year1>{_YEAR})(?=[)\s,;:–—-])
  | \b(?:{_BEFORE})\.?\s(?:the\syear\s)?\(?(?P<year2>{_YEAR})(?!\w|-\d)
  | \b(?:{_BEFORE_OR_COUNTS})\.?\s(?P<year3>{_YEAR})(?!\w|-\d|\s{_COUNTED}\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_YEARS = ("from", "to", "year1", "year2", "year3")
_NUMBER = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
#: Characters before a year and behind it that may belong to its date.
_REACH = 28


def mentions(source: Source) -> Iterator[Mention]:
    """The dates that the passages name, each as exactly as it is told."""
    tally = Tally(most=MOST)
    for at, passage in enumerate(source.passages):
        for spot in dates(passage.text):
            tally.add(Mention(at, spot.form, spot.name, "date", start=spot.start, end=spot.end))
    return tally.mentions()


def dates(text: str) -> Iterator[Spot]:
    """Each with the form that its ISO 8601 date has as a name, `1943 03 12`: a day, a month or a
    year from 1000 to 2099."""
    end = 0
    # Only around numbers of four digits, of which there are few: twenty times as fast.
    for number in _NUMBER.finditer(text):
        if number.start() >= end:
            start = max(end, number.start() - _REACH)
            match = _PATTERN.search(text, start, number.end() + _REACH)
            end = match.end() if match else number.end()
            if match:
                yield from _read(match)


def _read(match: re.Match[str]) -> Iterator[Spot]:
    years = [group for group in _YEARS if match[group]]
    for group in years:
        if match[group] <= "2099":
            yield Spot(match[group], match[group], match.start(group), match.end(group))
    if not years and (found := _form(match)):
        yield Spot(found, match[0], match.start(), match.end())


def _form(match: re.Match[str]) -> str:
    """Empty where there is no such day."""
    if written := match["iso"]:
        year, month, day = (int(part) for part in re.split("[-/]", written))
    elif written := match["dotted"]:
        day, month, year = (int(part) for part in written.split("."))
    else:
        name = match["m1"] or match["m2"] or match["m3"]
        year, month = int(match["y1"] or match["y2"] or match["y3"]), _number(name)
        day = int(match["day"] or match["day2"] or 0)
    if year > 2099:
        return ""
    if not day:
        return f"{year:04} {month:02}"
    try:
        return form(date(year, month, day).isoformat())
    except ValueError:
        return ""


def _number(month: str) -> int:
    return _NUMBERS[month.rstrip(".").casefold()]
