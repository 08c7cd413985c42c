"""What kind of answer a question asks for (a phone number, an address of mail, an amount of money,
a date, a number), and whether a text holds one. Begin with `wanted_kind` and `holds_kind`.

What is not there cannot be the answer: opening hours are near to a question for a phone number, and
have none. Words by language are in `answer_types.toml`. Without Django.
"""

import re
import tomllib
from pathlib import Path
from typing import Literal

AnswerKind = Literal["phone", "email", "money", "date", "number"]

with (Path(__file__).parent / "answer_types.toml").open("rb") as _file:
    _TOML = tomllib.load(_file)


def _words(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)", re.IGNORECASE)


#: The first kind that fits counts: “what number do I call” asks for a phone.
_ASKS: dict[AnswerKind, dict[str, re.Pattern[str]]] = {
    kind: {language: _words(words) for language, words in by_language.items()}
    for kind, by_language in _TOML["asks"].items()
}
_DIGIT = re.compile(r"\d")
#: Seven digits or more in groups that are not those of a date, an amount or a year.
_PHONE = re.compile(
    r"(?<![\w.,/-])(?:\+\d{1,3}[ /.-]?)?(?:\(\d{1,5}\)[ /.-]?)?"
    r"\d{2,5}(?:[ /.-]{0,3}\d{2,5}){1,5}(?![\w/]|[.,-]\d)"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}\.\d{1,2}\.")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_CURRENCY = (
    r"[€$£¥₹]|\b(?:EUR|USD|GBP|CHF|JPY|euros?|dollars?|pounds?|cents?|d[oó]lares|Franken|Fr\.)"
)
_MONEY = re.compile(
    rf"(?:{_CURRENCY})\s?\d|\d[\d.,' ]*(?:k|m|bn|million|mio\.?)?\s?(?:{_CURRENCY})(?!\w)",
    re.IGNORECASE,
)
#: In the header of a table, and in it alone, the currency or the word stands apart from the number.
_MONEY_COLUMN = re.compile(
    rf"(?:{_CURRENCY})(?!\w)|price|cost|fee|preis|kosten|gebühr|betrag|precio|coste|tarifa|importe",
    re.IGNORECASE,
)
_INSTEAD = {kind: _words(words) for kind, words in _TOML["words"].items()}
MIN_PHONE_DIGITS = 6


def wanted_kind(question: str, *, language: str = "") -> AnswerKind | None:
    """The kind of answer that the wording asks for; None where it does not tell. Without a
    `language`, an ISO code, the patterns of all are tried."""
    for kind, by_language in _ASKS.items():
        patterns = [by_language[language]] if language in by_language else by_language.values()
        if any(pattern.search(question) for pattern in patterns):
            return kind
    return None


def holds_kind(kind: AnswerKind, text: str, *, header: str = "") -> bool:
    """Whether the text has something of this kind; `header` is that of a table whose row it is."""
    if kind == "email":
        return bool(_EMAIL.search(text))
    if kind == "phone":
        return any(
            sum(map(str.isdigit, found[0])) >= MIN_PHONE_DIGITS and not _DATE.search(found[0])
            for found in _PHONE.finditer(text)
        )
    if kind == "money":
        in_column = bool(_MONEY_COLUMN.search(header) and _DIGIT.search(text))
        return in_column or bool(_MONEY.search(text) or _INSTEAD["money"].search(text))
    return bool(_DIGIT.search(text) or _INSTEAD[kind].search(text))
