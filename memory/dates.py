"""Dates that a question mentions, and how well a moment agrees with them. Pure."""

import re
from dataclasses import dataclass
from datetime import datetime

#: January to December in English, German, French, Spanish, Italian, Portuguese and Dutch.
_NAMES = (
    "january januar jänner janvier enero gennaio janeiro januari",
    "february februar février febrero febbraio fevereiro februari",
    "march märz mars marzo março maart",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august août agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember décembre diciembre dicembre dezembro",
)
_MONTHS = {name: month for month, names in enumerate(_NAMES, 1) for name in names.split()}
#: Small letters in the middle of a sentence are verbs.
_ALSO_VERBS = {"may", "march"}

_MONTH = "|".join(_MONTHS)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NAMED = re.compile(rf"\b({_MONTH})\b", re.IGNORECASE)
_DAY_FIRST = re.compile(
    rf"\b({_DAY})(?:st|nd|rd|th|er|º|\.)?(?: of| de)? ({_MONTH})\b", re.IGNORECASE
)
_MONTH_FIRST = re.compile(rf"\b({_MONTH}) ({_DAY})(?:st|nd|rd|th)?\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b")
_DOTTED = re.compile(rf"\b({_DAY})\.(0?[1-9]|1[0-2])\.(\d{{4}})\b")


@dataclass(frozen=True, slots=True)
class Dates:
    """Years, months and days that are mentioned, each as if it went with each of the others."""

    years: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.years or self.months or self.days)

    def agreement(self, moment: datetime) -> float:
        """0..1: how much of what is mentioned holds for `moment`. A day is one of its month."""
        if not self:
            return 0.0
        same_month = moment.month in self.months
        checks = (
            (self.years, 1, moment.year in self.years),
            (self.months, 2, same_month),
            (self.days, 2, same_month and moment.day in self.days),
        )
        whole = sum(weight for said, weight, _ in checks if said)
        return sum(weight for said, weight, holds in checks if said and holds) / whole


def mentioned(question: str) -> Dates:
    """`What did I say on 3 August, 2023?`: the written dates of it, none of them relative."""
    years = {int(year) for year in _YEAR.findall(question)}
    named = [(int(day), name) for day, name in _DAY_FIRST.findall(question)]
    named += [(int(day), name) for name, day in _MONTH_FIRST.findall(question)]
    days = {day for day, _ in named}
    months = {_MONTHS[name.casefold()] for _, name in named}
    months |= {
        _MONTHS[found[0].casefold()] for found in _NAMED.finditer(question) if _is_name(found)
    }
    for year, month, day in [*_ISO.findall(question), *_reversed(_DOTTED.findall(question))]:
        years.add(int(year))
        months.add(int(month))
        days |= {int(day)} if day else set()
    return Dates(frozenset(years), frozenset(months), frozenset(days))


def _is_name(found: re.Match[str]) -> bool:
    name = found[0]
    return name.casefold() not in _ALSO_VERBS or (name[0].isupper() and found.start() > 0)


def _reversed(dates: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(year, month, day) for day, month, year in dates]
