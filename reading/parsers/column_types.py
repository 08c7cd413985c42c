"""What the columns of a table hold: numbers with their unit, dates, yes or no, or text. Begin with
`column_type`, which decides for a column; its result reads the cells."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

# One string each: a list of words reads better on four lines than on forty.
# ruff: noqa: SIM905

Kind = Literal["number", "date", "boolean", "text", "empty"]

_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "ja", "wahr", "sí", "si", "verdadero", "oui", "✓", "✔"), 1.0),
    **dict.fromkeys(("false", "no", "nein", "falsch", "falso", "non", "✗", "✘"), 0.0),
}
#: Yes and no by their first letters, where a column has both of a language and nothing else.
_LETTERS = {"y": 1.0, "j": 1.0, "s": 1.0, "n": 0.0}
_LETTER_PAIRS = ({"y", "n"}, {"j", "n"})
#: Written where a value is missing.
_BLANK = frozenset({"", "-", "–", "—", "?", "n/a", "na", "nan", "null", "none", "k. a.", "k.a."})
_CURRENCY_CODES = (
    "AED ARS AUD BRL CAD CLP CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR JPY KRW MXN MYR "
    "NOK NZD PEN PHP PLN RON SEK SGD THB TRY TWD UAH USD VND ZAR"
).split()
_CURRENCIES = {
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "US$": "USD",
    "Fr.": "CHF",
    "CHF": "CHF",
    "zł": "PLN",
    "Kč": "CZK",
    "kr": "kr",
    "Euro": "EUR",
    "euros": "EUR",
    **{code: code for code in _CURRENCY_CODES},
}
_UNITS = frozenset(
    (
        "% ‰ ° °C °F K kg g mg t lb lbs oz km m cm mm µm nm mi ft in m² m³ km² ha l L ml cl "
        "hl h min s ms µs d days Tage días weeks Wochen semanas months Monate meses years "
        "Jahre años hours Stunden horas B kB KB MB GB TB V mV kV A mA Ah mAh W kW MW kWh Wh MWh "
        "Hz kHz MHz GHz Ω bar hPa kPa Pa N Nm J kJ kcal cal px pt dpi pcs pc Stk Stk. Stück St. "
        "uds ud km/h m/s mph rpm ppm"
    ).split()
)
_SIGN = "[-+−]"
_SPACE = "[ '’\u00a0\u202f]"
_PREFIX = "|".join(re.escape(name) for name in sorted(_CURRENCIES, key=len, reverse=True))
_SUFFIX = "|".join(
    re.escape(name) for name in sorted({*_CURRENCIES, *_UNITS}, key=len, reverse=True)
)
_NUMBER = re.compile(
    rf"(\()?({_SIGN})?\s?(?:({_PREFIX})\s?)?({_SIGN})?"
    # 1 234,5 or 1'234.5; 1.234,5; 1,234.5 or 12,34,567.8; 1234.5 or 1234,5
    rf"(\d{{1,3}}(?:{_SPACE}\d{{3}})+(?:[.,]\d+)?|\d{{1,3}}(?:\.\d{{3}})+(?:,\d+)?"
    r"|\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?|\d+(?:[.,]\d+)?|[.,]\d+)([eE][-+]?\d{1,2})?"
    rf"(?:\s?({_SUFFIX}))?(\))?(-)?"
)
#: A telephone number or a code keeps its leading zero, which a number would not have.
_CODE = re.compile(r"[-+]?0\d")
_SWAPPED_MARKS = str.maketrans(".,", ",.")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?", re.A)
_SPACES = re.compile(_SPACE)
#: A double holds any number of so many digits exactly.
_MOST_DIGITS = 15
_MOST_CHARACTERS = 40
#: Without a mark only what can hardly be a word: `Price EUR`, but not `Class A`.
_WORDLIKE = frozenset(("in", "ha", "min", "bar", "cal"))
_PLAIN_SUFFIX = "|".join(
    re.escape(name)
    for name in sorted({*_CURRENCIES, *_UNITS}, key=len, reverse=True)
    if (len(name) > 1 or not name.isalnum()) and name not in _WORDLIKE
)
_NAMED_UNIT = re.compile(
    rf"(?:[(\[]\s*({_SUFFIX})\s*[)\]]|\sin ({_SUFFIX})|,\s({_SUFFIX})|\s({_PLAIN_SUFFIX}))\s*$"
)

_CLOCK = r"(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\s?[ap]m)?)?"
_ISO = re.compile(rf"(\d{{4}})([-/.])(\d{{1,2}})(?:\2(\d{{1,2}}))?{_CLOCK}", re.I)
_NUMERIC = re.compile(rf"(\d{{1,2}})([./-])\s?(\d{{1,2}})\2\s?(\d{{4}}|\d{{2}}){_CLOCK}", re.I)
_DAY_MONTH = re.compile(
    r"(?:\w+,? )?(\d{1,2})(?:\.|st|nd|rd|th)?[ -](?:de )?([^\W\d]+)\.?,?[ -](?:de )?(\d{4}|\d{2})"
    + _CLOCK,
    re.I,
)
_MONTH_DAY = re.compile(rf"([^\W\d]+)\.? (?:(\d{{1,2}})(?:st|nd|rd|th)?, )?(\d{{4}}){_CLOCK}", re.I)
#: Beginnings by which months are told apart, in English, German and Spanish.
_MONTHS = {
    start: number
    for number, starts in enumerate(
        (
            ("jan", "jän", "ene"),
            ("feb",),
            ("mar", "mär", "mrz"),
            ("apr", "abr"),
            ("may", "mai"),
            ("jun",),
            ("jul",),
            ("aug", "ago"),
            ("sep", "set"),
            ("oct", "okt"),
            ("nov",),
            ("dec", "dez", "dic"),
        ),
        start=1,
    )
    for start in starts
}
_MONTH_NAMES = frozenset(
    (
        "jan january januar jänner enero ene feb february februar febrero mar march märz "
        "mär mrz marzo apr april abril abr may mai mayo jun june juni junio jul july juli "
        "julio aug august agosto ago sep sept september septiembre setiembre oct october "
        "oktober okt octubre nov november noviembre dec december dezember dez diciembre dic"
    ).split()
)
#: Languages that write 1,234.56; others write 1.234,56 or 1 234,56.
_POINT_LANGUAGES = frozenset({"en", "zh", "ja", "ko", "th", "he", "hi", ""})


@dataclass(frozen=True, slots=True)
class ColumnType:
    """What a column holds, and how its cells are read. `unit` is that of numbers: an ISO code of a
    currency, `%`, `kg`; `decimal` their decimal mark; `day_first` the order of `3/4/2026`."""

    kind: Kind = "text"
    unit: str = ""
    decimal: Literal[".", ","] = "."
    day_first: bool = True

    def number(self, cell: str) -> float | None:
        """The cell's number; 1 and 0 of yes and no. None where it is none, or has another unit."""
        text = cell.strip()
        if self.kind == "boolean":
            return _BOOLEANS.get(text.lower(), _LETTERS.get(text.lower()))
        plain = text if self.decimal == "." else text.translate(_SWAPPED_MARKS)
        if _PLAIN.fullmatch(plain) and len(text) <= _MOST_DIGITS:
            return float(plain)
        found = _match_number(text)
        if found is None:
            return None
        unit = _unit_of(found)
        if unit and unit != self.unit:
            return None
        digits = _SPACES.sub("", found[5])
        group = "," if self.decimal == "." else "."
        whole, mark, fraction = digits.partition(self.decimal)
        if group in fraction or (group in whole and len(whole.rpartition(group)[2]) != 3):
            return None  # written in another way than the column
        value = float(f"{whole.replace(group, '') or '0'}{mark and '.'}{fraction}{found[6] or ''}")
        is_negative = "-" in (found[2], found[4], found[9]) or "−" in (found[2], found[4])
        return -value if is_negative or (found[1] and found[8]) else value

    def date(self, cell: str) -> date | None:
        """The cell's date; of a month its first day. None where it is none."""
        text = cell.strip()
        if len(text) > _MOST_CHARACTERS:
            return None
        if found := _ISO.fullmatch(text):
            return _date(int(found[1]), int(found[3]), int(found[4] or 1))
        if found := _NUMERIC.fullmatch(text):
            first, second, year = int(found[1]), int(found[3]), _year(found[4])
            day, month = (first, second) if self.day_first or found[2] == "." else (second, first)
            return _date(year, month, day)
        if found := _DAY_MONTH.fullmatch(text):
            return _date(_year(found[3]), _month(found[2]), int(found[1]))
        if found := _MONTH_DAY.fullmatch(text):
            return _date(int(found[3]), _month(found[1]), int(found[2] or 1))
        return None


def column_type(
    values: Iterable[str], *, name: str = "", language: str = "", decimal: str = ""
) -> ColumnType:
    """The type of a column with these cells. One value in twenty may differ, such as `unknown`
    among numbers; what stands for a missing value, such as `n/a`, does not count.

    `name` may have the unit (`Price (EUR)`). Where the cells do not settle whether `1.234` is a
    thousand, the `decimal` mark of the table's other columns does, else the `language` (ISO code).
    """
    texts = [text for value in values if (text := value.strip()).lower() not in _BLANK]
    if not texts:
        return ColumnType("empty")
    letters = {text.lower() for text in texts}
    if letters in _LETTER_PAIRS or (language == "es" and letters == {"s", "n"}):
        return ColumnType("boolean")
    enough = len(texts) * 19 / 20
    kinds = Counter[Kind]()
    for text, times in Counter(texts).items():
        kinds[_kind_of(text)] += times
    kind, times = kinds.most_common(1)[0]
    if times < enough or kind == "text":
        return ColumnType()
    if kind == "boolean":
        return ColumnType("boolean")
    if kind == "date":
        return ColumnType("date", day_first=_is_day_first(texts, language))
    return _number_type(texts, name=name, language=language, decimal=decimal, enough=enough)


def without_unit(name: str) -> str:
    """The name of a column without the unit at its end: `Price` of `Price (EUR)`."""
    return _NAMED_UNIT.sub("", name).strip() or name


def read_as(kind: Kind, values: Sequence[str], *, language: str = "") -> ColumnType:
    """How a column is read that somebody says is of this kind, whatever its cells look like."""
    found = filter(None, map(_match_number, map(str.strip, values)))
    units = Counter(unit for match in found if (unit := _unit_of(match)))
    mark = decimal_mark(values) or ("." if language in _POINT_LANGUAGES else ",")
    return ColumnType(
        kind,
        units.most_common(1)[0][0] if units else "",
        "," if mark == "," else ".",
        _is_day_first(values, language),
    )


def decimal_mark(values: Iterable[str]) -> str:
    """The mark that these numbers settle: `.`, `,`, or empty where they do not."""
    found = filter(None, map(_match_number, map(str.strip, values)))
    marks = Counter(_decimal_of(match[5])[0] for match in found)
    return max(".,", key=lambda mark: marks[mark]) if marks["."] != marks[","] else ""


def _number_type(
    texts: Sequence[str], *, name: str, language: str, decimal: str, enough: float
) -> ColumnType:
    found = [match for match in map(_match_number, texts) if match]
    units = Counter(unit for match in found if (unit := _unit_of(match)))
    unit, times = units.most_common(1)[0] if units else ("", 0)
    if times < units.total() * 19 / 20:
        return ColumnType()  # a sum over several units would mean nothing
    if not unit and (named := _NAMED_UNIT.search(name)):
        unit = next(filter(None, named.groups()))
        unit = _CURRENCIES.get(unit, unit)
    certain = Counter(_decimal_of(match[5]) for match in found)
    points, commas = certain[".", True], certain[",", True]
    mark: Literal[".", ","]
    if points or commas:
        mark = "." if points >= commas else ","
        if min(points, commas) > len(found) - enough:
            return ColumnType()
    elif unit in _CURRENCIES.values() and (marks := "".join(match[5] for match in found)):
        mark = "," if "." in marks else "."  # prices have no three decimals: it separates thousands
    elif decimal in (".", ","):
        mark = "," if decimal == "," else "."
    elif grouping := _grouping_mark([match[5] for match in found]):
        mark = "," if grouping == "." else "."
    else:
        mark = "." if language in _POINT_LANGUAGES else ","
    type_ = ColumnType("number", unit, mark)
    readable = sum(type_.number(text) is not None for text in texts)
    return type_ if readable >= enough else ColumnType()


def _match_number(text: str) -> re.Match[str] | None:
    if len(text) > _MOST_CHARACTERS:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or bool(found[1]) != bool(found[8]) or _CODE.match(found[5]):
        return None
    return found if sum(map(str.isdigit, found[5])) <= _MOST_DIGITS else None


def _unit_of(found: re.Match[str]) -> str:
    written = found[3] or found[7] or ""
    return _CURRENCIES.get(written, written)


def _decimal_of(digits: str) -> tuple[str, bool]:
    """The decimal mark of a number as far as it shows: (mark, True), or ("", False) where the only
    mark may as well separate thousands."""
    point, comma = digits.rfind("."), digits.rfind(",")
    if point >= 0 and comma >= 0:
        return ("." if point > comma else ","), True
    mark = "." if point >= 0 else ","
    at = max(point, comma)
    if at < 0:
        return "", False
    if digits.count(mark) > 1:  # separates thousands
        return ("," if mark == "." else "."), True
    whole = digits[:at]
    is_grouped = len(digits) - at == 4 and 0 < len(whole) <= 3 and whole != "0"
    return ("", False) if is_grouped else (mark, True)


def _grouping_mark(numbers: Iterable[str]) -> str:
    """The mark that separates thousands where only large numbers have it: 1.250 beside 980."""
    marks, longest = set[str](), 0
    for digits in numbers:
        if found := {mark for mark in ".," if mark in digits}:
            marks |= found
        else:
            longest = max(longest, len(digits))
    return marks.pop() if len(marks) == 1 and longest == 3 else ""


def _kind_of(text: str) -> Kind:
    if len(text) > _MOST_CHARACTERS:
        return "text"
    if text.lower() in _BOOLEANS:
        return "boolean"
    if _match_number(text):
        return "number"
    if _UNORDERED.date(text) or _MONTH_FIRST.date(text):
        return "date"
    return "text"


_UNORDERED, _MONTH_FIRST = ColumnType("date"), ColumnType("date", day_first=False)


def _is_day_first(texts: Sequence[str], language: str) -> bool:
    """Whether `3/4/2026` is in April: by dates that have only one reading, else by the order in
    which the rows are sorted, else by the shorter time that they span, else by the language."""
    slashed = [
        text
        for text in map(str.strip, texts)
        if (found := _NUMERIC.fullmatch(text)) and found[2] != "."
    ]
    readings = {}
    for type_ in (_UNORDERED, _MONTH_FIRST):
        dates = [type_.date(text) for text in slashed]
        readings[type_.day_first] = [each for each in dates if each]
    first, second = readings[True], readings[False]
    if len(first) != len(second):
        return len(first) > len(second)
    if len(first) > 2:
        sorted_ = [each in (sorted(each), sorted(each, reverse=True)) for each in (first, second)]
        if sorted_[0] != sorted_[1]:
            return sorted_[0]
        spans = [(max(each) - min(each)).days + 1 for each in (first, second)]
        if max(spans) > 3 * min(spans):
            return spans[0] < spans[1]
    return language != "en"


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _year(digits: str) -> int:
    """The year of two or four digits: from 69 on two are of the last century."""
    year = int(digits)
    return year if len(digits) == 4 else year + (2000 if year < 69 else 1900)


def _month(name: str) -> int:
    """Its number; 0 for a word that is no month."""
    folded = name.lower()
    return _MONTHS.get(folded[:3], 0) if folded in _MONTH_NAMES else 0


_SAMPLE_ROWS = 1_000


class ColumnTypes:
    """Counts rows and keeps the first thousand, to tell what is in each column."""

    def __init__(self) -> None:
        self.count = 0
        self._found: defaultdict[int, list[str]] = defaultdict(list)

    def seen(self, row: Sequence[str]) -> Sequence[str]:
        """Count the row and keep its cells; returns it, so that rows are counted as they pass."""
        self.count += 1
        if self.count <= _SAMPLE_ROWS:
            for at, cell in enumerate(row):
                if text := cell.strip():
                    self._found[at].append(text[: _MOST_CHARACTERS + 1])
        return row

    def types(self, header: Sequence[str]) -> list[str]:
        """`number`, `date`, `boolean`, `text` or, without a value, `empty`: of named columns."""
        named = (at for at, name in enumerate(header) if name.strip())
        return [column_type(self._found[at]).kind for at in named]
