"""Numbers of a spreadsheet as text: dates as ISO, the others about as their format shows them.
Begin with `format_number`."""

import datetime
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

GENERAL = "General"
#: https://learn.microsoft.com/dotnet/api/documentformat.openxml.spreadsheet.numberingformat
BUILT_IN = {
    0: GENERAL, 1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss",
} | dict.fromkeys([*range(27, 37), *range(50, 59)], "yyyy-mm-dd")  # fmt: skip

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<duration>h+|m+|s+)\]|\[[^\]]*\]|(?P<digits>[0#?][0#?.,]*|\.[0#?]+)"
    r"|(?P<power>E[+-])|(?P<date>y+|m+|d+|h+|s+|AM/PM|A/P)|(?P<other>.)",
    re.I | re.S,
)
_MAX_DATE_SERIAL = 2_958_466  # the first day of the year 10000
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
           "October", "November", "December")  # fmt: skip

Formatter = Callable[[float], str]


def format_number(number: float, code: str, *, since_1904: bool = False) -> str:
    """`number` in the format `code`, without thousands separators, which would split words.

    A format with month and year only gives `March 2024`. `since_1904`: the date system of old Macs.
    """
    if not math.isfinite(number):
        return format_general(number)
    return _make_formatter(code, since_1904)(number)


def format_general(number: float) -> str:
    """The shortest representation as displayed: 0.1 + 0.2 is 0.3."""
    whole = abs(number) < 1e15 and number == int(number)
    return str(int(number)) if whole else f"{number:.10g}"


@lru_cache(maxsize=1024)
def _make_formatter(code: str, since_1904: bool) -> Formatter:
    # The format of positive numbers, up to the first semicolon.
    match = re.match(r'(?:"[^"]*"|\\.|\[[^\]]*\]|[^;"\\\[])*', code, re.S)
    first_section = match[0] if match else code
    tokens = list(_TOKEN.finditer(first_section))
    kinds = {match.lastgroup for match in tokens}
    if code == GENERAL or "power" in kinds:
        return format_general
    if "duration" in kinds:
        return _format_duration
    if "date" in kinds:
        letters = "".join(match["date"] or " " for match in tokens).lower()
        return lambda number: _format_date(number, letters, since_1904)
    digits = [match["digits"] for match in tokens if match["digits"]]
    if len(digits) != 1:  # text, or a fraction
        return format_general
    return _number_formatter(tokens, digits[0])


def _number_formatter(tokens: list[re.Match[str]], digits: str) -> Formatter:
    """A number with its currency, unit or percent sign."""
    at = next(index for index, match in enumerate(tokens) if match["digits"])
    before, after = (_literal_text(side) for side in (tokens[:at], tokens[at + 1 :]))
    fraction = digits.partition(".")[2]
    most, least = len(fraction.rstrip(",")), fraction.count("0")
    trailing = len(digits) - len(digits.rstrip(","))
    factor = (100.0 if "%" in after else 1.0) / 1000**trailing

    def show(number: float) -> str:
        text = _round_text(abs(number) * factor, most, least)
        sign = "-" if number < 0 and text.strip("0.") else ""
        return f"{sign}{before}{text}{after}".strip()

    return show


def _literal_text(tokens: list[re.Match[str]]) -> str:
    texts = (
        match["quoted"] or match["escaped"] or match["currency"] or match["other"] or ""
        for match in tokens
    )
    text = "".join(texts).replace("(", "").replace(")", "").rstrip()
    return re.sub(r"\s+", " ", text)


def _round_text(number: float, most: int, least: int) -> str:
    try:
        exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-min(most, 15)), ROUND_HALF_UP)
    except InvalidOperation:
        return format_general(number)
    text = f"{exact:f}"
    if most > least and "." in text:
        text = text.rstrip("0").rstrip(".")
        missing = least - len(text.partition(".")[2])
        if missing > 0:
            text += ("" if "." in text else ".") + "0" * missing
    return text


def _format_duration(days: float) -> str:
    """h:mm:ss; hours may exceed a day."""
    seconds = round(abs(days) * 86_400)
    sign = "-" if days < 0 and seconds else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _format_date(serial: float, date_codes: str, since_1904: bool) -> str:
    if not 0 <= serial < _MAX_DATE_SERIAL:
        return format_general(serial)
    first = datetime.datetime(1904, 1, 1) if since_1904 else datetime.datetime(1899, 12, 30)
    # Day 60 is 29 February 1900, which never existed.
    days = serial + 1 if serial < 60 and not since_1904 else serial
    moment = first + datetime.timedelta(seconds=round(days * 86_400))
    has_day, has_clock = "d" in date_codes, "h" in date_codes or "s" in date_codes
    has_date = has_day or "y" in date_codes or "mmm" in date_codes
    if has_clock or not has_date:
        if has_date and serial >= 1:
            return moment.isoformat(sep=" ", timespec="minutes")
        return moment.time().isoformat() if has_clock and serial < 1 else moment.isoformat(sep=" ")
    if has_day:
        return moment.date().isoformat()
    return f"{_MONTHS[moment.month - 1]} {moment.year}" if "m" in date_codes else str(moment.year)
