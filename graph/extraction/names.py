"""Names, dates and titles found by rules. Pure. Begin with `names` and `dates`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import dropwhile
from typing import NamedTuple

from graph.extraction.code import FILE_PATH
from graph.extraction.mentions import Kind, Mention, MentionCounter, Source, TextSpan
from graph.extraction.normalized_names import FUNCTION_WORDS, INSIDE_NAMES, normalize_name

#: Most dates per passage; tables of years are not about each of them.
MAX_DATES = 24

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
#: Full names of four letters.
_SHORT_MONTHS = frozenset(("june", "july", "märz", "juni", "juli", "juin", "août", "aout"))
_NUMBERS = {name: at for at, names in enumerate(_MONTHS, start=1) for name in names.split()}
_MONTH = "(?:" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"[12]\d{3}(?![\d%])(?![.,]\d)"
_OF_WORD = r"(?:(?:of|de|del|d['’])\s?)?"
#: Words before a number that make a year of it, and those that do unless things are counted.
_YEAR_WORDS = (
    "in|since|from|until|till|by|during|years?|early|mid|late|circa|ca|before|after|between|"
    "season|spring|summer|autumn|fall|winter|edition|election|born|died|"
    "im|jahre?|seit|ab|bis|von|vor|nach|anno|zwischen|sommer|"
    "en|depuis|dès|vers|avant|après|année|entre|née?|"
    "desde|hasta|hacia|año|antes|después|nacid[oa]"
)
_YEAR_WORDS_UNLESS_COUNTED = "of|to|c|around|about|and|um|und|et|y"
_COUNTED = r"(?:\w{1,30}s|people|men|women|children)"
_DATE = re.compile(
    rf"""
    (?<![\w.,/-])(?:
        (?P<iso>[12]\d{{3}}([-/])(?:0[1-9]|1[0-2])\2(?:0[1-9]|[12]\d|3[01])(?!\d))
      | (?P<dotted>(?:[12]\d|3[01]|0?[1-9])\.(?:1[0-2]|0?[1-9])\.[12]\d{{3}}(?!\d))
      | (?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th|er|ère|\.|º)?\s{_OF_WORD}(?P<m1>{_MONTH}),?\s
        {_OF_WORD}(?P<y1>{_YEAR})
      | (?P<m2>{_MONTH})\s(?P<day2>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?,?\s(?P<y2>{_YEAR})
      | (?P<m3>{_MONTH}),?\s{_OF_WORD}(?P<y3>{_YEAR})
      | (?P<from>{_YEAR})\s?[-–—/]\s?(?P<to>{_YEAR})
    )
  | (?<=\()(?P<year1>{_YEAR})(?=[)\s,;:–—-])
  | \b(?:{_YEAR_WORDS})\.?\s(?:the\syear\s)?\(?(?P<year2>{_YEAR})(?!\w|-\d)
  | \b(?:{_YEAR_WORDS_UNLESS_COUNTED})\.?\s(?P<year3>{_YEAR})(?!\w|-\d|\s{_COUNTED}\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
_YEARS = ("from", "to", "year1", "year2", "year3")
_YEAR_NUMBER = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
#: Characters before a year and behind it that may belong to its date.
_YEAR_CONTEXT = 28


def date_mentions(source: Source) -> Iterator[Mention]:
    """Dates in the passages, as precise as they are given."""
    tally = MentionCounter(most=MAX_DATES)
    for at, passage in enumerate(source.passages):
        for spot in dates(passage.text):
            tally.add(Mention(at, spot.form, spot.name, "date", start=spot.start, end=spot.end))
    return tally.mentions()


def dates(text: str) -> Iterator[TextSpan]:
    """Dates with the form of their ISO 8601 date, `1943 03 12`: a day, month or year
    from 1000 to 2099.
    """
    end = 0
    # Only around numbers of four digits, of which there are few: twenty times as fast.
    for number in _YEAR_NUMBER.finditer(text):
        if number.start() >= end:
            start = max(end, number.start() - _YEAR_CONTEXT)
            match = _DATE.search(text, start, number.end() + _YEAR_CONTEXT)
            end = match.end() if match else number.end()
            if match:
                years = [group for group in _YEARS if match[group]]
                for group in years:
                    if match[group] <= "2099":
                        yield TextSpan(
                            match[group], match[group], match.start(group), match.end(group)
                        )
                if not years and (found := _date_form(match)):
                    yield TextSpan(found, match[0], match.start(), match.end())


def _date_form(match: re.Match[str]) -> str:
    """The form of a date; empty if there is no such day."""
    if written := match["iso"]:
        year, month, day = (int(part) for part in re.split("[-/]", written))
    elif written := match["dotted"]:
        day, month, year = (int(part) for part in written.split("."))
    else:
        name = match["m1"] or match["m2"] or match["m3"]
        year, month = (
            int(match["y1"] or match["y2"] or match["y3"]),
            _NUMBERS[name.rstrip(".").casefold()],
        )
        day = int(match["day"] or match["day2"] or 0)
    if year > 2099:
        return ""
    if not day:
        return f"{year:04} {month:02}"
    try:
        return normalize_name(date(year, month, day).isoformat())
    except ValueError:
        return ""


#: Longer runs of capitals are headlines, not names.
MAX_NAME_WORDS = 10
#: Most small words between capitalised words of a name: `Lord of the Rings`.
MAX_SMALL_WORDS = 3

_WORD_TOKEN = re.compile(r"[^\W_](?:[^\W_]|['’.&/-](?=[^\W_]))*")
_WORD_GAP = re.compile(r" {1,2}|-| - | & ")
_AFTER_SHORT = re.compile(r"\. ?")
#: Behind these the next word has its capital from the sentence, the quotation or the line.
_SENTENCE_OPENING = re.compile(
    r"[.!?:;…。！？][\"'”’»)\]]*\s*$|[\"“„«(\[•*|\n]\s*$|\n\s*(?:[-+>]\s*)+$"
)
_SECTION_NUMBER = re.compile(r"\d{1,2}(?:\.\d{1,2})+")
_POSSESSIVE = ("'s", "’s")
_TITLE_ABBREVIATIONS = (
    "st dr mr mrs ms jr sr mt ft prof gen col capt lt sgt rev hon gov sen rep no bros"
)
#: Their full stop ends no sentence.
_ABBREVIATIONS = frozenset(_TITLE_ABBREVIATIONS.split())


class Word(NamedTuple):
    """A word of a text at `start` to `end`; `opens`: a sentence begins with it."""

    text: str
    start: int
    end: int
    is_capital: bool
    opens: bool

    @property
    def is_number(self) -> bool:
        return self.text[0].isdigit()

    @property
    def is_section_number(self) -> bool:
        return _SECTION_NUMBER.fullmatch(self.text) is not None

    @property
    def is_short(self) -> bool:
        """An initial or abbreviation, whose full stop ends no sentence."""
        is_letter = len(self.text) == 1 and self.is_capital
        is_abbreviation = "." in self.text and not self.is_number
        return is_letter or is_abbreviation or self.text.casefold() in _ABBREVIATIONS


def capitalized_runs(text: str) -> Iterator[tuple[Sequence[Word], bool]]:
    """Capitalised runs of the text that may be names, whole ones first, then their parts; and
    whether the first word may be capitalised only because of its position.
    """
    for unbroken in _unbroken_runs(text):
        opens, words = unbroken[0].opens, unbroken
        if opens and (words[0].text.casefold() in FUNCTION_WORDS or words[0].is_section_number):
            # `In the United States` → `United States`, `7.2 Safety Officer` → `Safety Officer`
            words = list(dropwhile(lambda word: not (word.is_capital or word.is_number), words[1:]))
        if not any(word.is_capital for word in words):
            continue
        if len(words) <= MAX_NAME_WORDS:
            # `HNSW` and `iPhone` owe their capitals to nothing.
            is_plain = len(words) == 1 and not _has_capitals(words[0].text)
            yield words, opens and is_plain and words[0].opens
        for part in _run_parts(words):
            if len(part) < len(words) and any(word.is_capital for word in part):
                yield part, False


def _iter_words(text: str) -> Iterator[Word]:
    before: Word | None = None
    for found in _WORD_TOKEN.finditer(text):
        token = found[0]
        gap = text[before.end if before else 0 : found.start()]
        opens = before is None or bool(_SENTENCE_OPENING.search(gap))
        if before is not None and before.is_short and _AFTER_SHORT.fullmatch(gap):
            opens = False
        is_capital = token[0].isupper() or token[0].istitle() or _has_capitals(token)
        before = Word(token, found.start(), found.end(), is_capital, opens)
        yield before


def _has_capitals(token: str) -> bool:
    """Capitals within a word, as in `iPhone`, `eBay`."""
    return any(letter.isupper() for letter in token[1:3])


def _unbroken_runs(text: str) -> Iterator[list[Word]]:
    """Runs of capitalised words and numbers, with small words between that may be part
    of a name.
    """
    run: list[Word] = []
    between: list[Word] = []
    for word in _iter_words(text):
        before = (between or run)[-1] if run else None
        if before is not None:
            gap = text[before.end : word.start]
            is_abbreviated = before.is_short and _AFTER_SHORT.fullmatch(gap)
            if not is_abbreviated and (word.opens or not _WORD_GAP.fullmatch(gap)):
                yield run
                run, between = [], []
        if word.is_capital or (word.is_number and not between):
            run += [*between, word]
            between = []
        elif run and len(between) < MAX_SMALL_WORDS and word.text.casefold() in INSIDE_NAMES:
            between.append(word)
        elif run:
            yield run
            run, between = [], []
    if run:
        yield run


def _run_parts(words: Sequence[Word]) -> Iterator[list[Word]]:
    """Parts between small words, and before and after a possessive."""
    part: list[Word] = []
    for word in words:
        if word.is_capital or word.is_number:
            part.append(word)
        if part and (word.text.endswith(_POSSESSIVE) or part[-1] is not word):
            yield part
            part = []
    if part:
        yield part


#: Most words on each side of the comma of a place: `Leland, North Carolina`.
MAX_WORDS_AT_COMMA = 4

_PARENTHETICAL = re.compile(r"\s*[(\[（][^()\[\]（）]*[)\]）]\s*$")


def title_mentions(source: Source) -> Iterator[Mention]:
    """Names of the document itself, in every passage."""
    for name in title_names(source.title):
        for number in range(len(source.passages)):
            yield Mention(number, normalize_name(name), name, "title", "self")


def title_names(title: str) -> list[str]:
    """`Green (Steve Hillage album)` → itself and `Green`; `Leland, North Carolina` → itself and
    `Leland`.

    Forms are distinct and not empty.
    """
    plain = _PARENTHETICAL.sub("", title)
    name = [title, plain]
    # Whether the title is “place, region”.
    sides = [side.split() for side in plain.split(",")]
    is_place_title = len(sides) == 2 and all(
        1 <= len(side) <= MAX_WORDS_AT_COMMA
        and all(word[0].isupper() or word in INSIDE_NAMES for word in side)
        for side in sides
    )
    if is_place_title:
        name.append(plain.partition(",")[0])
    by_form = {normalize_name(each): each.strip() for each in reversed(name)}
    return [each for name, each in reversed(by_form.items()) if name]


_WEEKDAYS = """
monday tuesday wednesday thursday friday saturday sunday
montag dienstag mittwoch donnerstag freitag samstag sonntag
lundi mercredi jeudi vendredi samedi dimanche lunes martes miercoles jueves viernes domingo
"""
#: Months and days by their full names, but for `Mars` and `May`, which are more often others.
_CALENDAR_WORDS = frozenset(
    (
        *(normalize_name(month) for month in _NUMBERS if len(month) > 4 or month in _SHORT_MONTHS),
        *_WEEKDAYS.split(),
    )
)
#: Most names per passage; longer ones are lists.
MAX_NAMES = 100
#: A quotation of more words is not the title of anything.
MAX_QUOTED_WORDS = 10
MAX_FULL_NAME_WORDS = 4

_STORED = ("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "kbit", "mbit", "gbit")
_PHYSICAL = ("hz", "khz", "mhz", "ghz", "kw", "kwh", "mwh", "gwh", "kv", "kpa", "mpa", "db")
_UNITS = frozenset((*_STORED, *_PHYSICAL))
#: Units only behind a number: alone they are initials, states or degrees.
_SHORT_UNITS = "w mw gw wh v a ma ah mah n kn nm j kj mj pa hpa"
_CURRENCIES = "eur usd gbp chf jpy cny cad aud sek nok dkk pln"
_UNITS_OF_NUMBERS = frozenset(f"{_SHORT_UNITS} {_CURRENCIES}".split())
_QUOTATION = re.compile(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«([^»\n]{2,80})»"
    r"|``([^'`\n]{2,80}?) ?''"
)
_ACRONYM = re.compile(r"\s?\(([A-Z][A-Z&.]{1,9})s?\)")


#: Text that is written for programs: capitals in it make no names.
_FOR_PROGRAMS = re.compile(
    rf"""
    ^[ ]{{0,3}}(?P<fence>`{{3,}}|~{{3,}})[^\n]*\n(?s:.*?)(?:^[ ]{{0,3}}(?P=fence)[`~]*[ ]*$|\Z)
  | (?<![`\w])(?P<ticks>`{{1,2}})(?=[^\s`])(?:(?!'')[^`\n]){{1,200}}(?<=\S)(?P=ticks)(?![`\w])
  | (?<=\])\([^\s()]{{1,500}}(?:\([^\s()]{{0,200}}\)[^\s()]{{0,500}})?\)?
  | \b[a-z][a-z+]{{1,20}}://\S+ | \bwww\.\S+
  | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}})+
  | (?<![\w.-]){FILE_PATH}
  | (?<![\w-])--[a-z][\w-]*(?:=\S+)?
  | \b[^\W_]+(?:_+[^\W_]+)+
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Most texts have none of these, and are passed over.
_FOR_PROGRAMS_HINT = re.compile(r"`|~~~|\]\(|://|www\.|@|--[a-z]|\w_\w|[\w-]\.[A-Za-z]")


def name_mentions(source: Source) -> Iterator[Mention]:
    """Names in the passages. A surname or acronym also counts as the full name used in
    the document.
    """
    spots = [list(names(passage.text)) for passage in source.passages]
    full = _full_names(source, spots)
    in_title = list(names(source.title))
    tally = MentionCounter(most=MAX_NAMES)
    for at, passage in enumerate(source.passages):
        headings = [*in_title, *(spot for each in passage.heading_path for spot in names(each))]
        for spot in headings:
            tally.add(_mention(at, spot.form, spot, "heading"))
        for spot in spots[at]:
            tally.add(_mention(at, spot.form, spot, "text"))
            if spot.form in full:
                tally.add(_mention(at, full[spot.form], spot, "text"))
    return tally.mentions()


def names(text: str) -> Iterator[TextSpan]:
    """Capitalised phrases with their parts, and quotations with a capital.

    A single word that begins a sentence counts only if the text capitalises it elsewhere too.
    Code, addresses, paths and options contain none; other rules read them.
    """
    if _FOR_PROGRAMS_HINT.search(text):
        # NUL, which no text has: a name does not go on over it, and no sentence begins behind it.
        text = _FOR_PROGRAMS.sub(lambda match: "\0" * len(match[0]), text)
    found = list(capitalized_runs(text))
    elsewhere = {word.text for words, opens in found if not opens for word in words}
    for words, opens in found:
        if not opens or words[0].text in elsewhere:
            yield from _name_spans(text, words[0].start, words[-1].end)
    for quoted in _QUOTATION.finditer(text):
        group = quoted.lastindex or 1
        quotation = quoted[group].split()
        is_prose = "\0" not in quoted[group] and len(quotation) <= MAX_QUOTED_WORDS
        if is_prose and any(word[0].isupper() for word in quotation):
            yield from _name_spans(text, *quoted.span(group))


def _name_spans(text: str, start: int, end: int) -> Iterator[TextSpan]:
    name = text[start:end]
    normal = normalize_name(name)
    # `WHO` is no “who”.
    is_word = normal in FUNCTION_WORDS and not name.isupper()
    # Quantities, such as `11.7 MB`, and units alone.
    # Dates, such as `12 March 1943`, are found by other rules.
    if (
        len(normal) > 1
        and not is_word
        and not (name.isdigit() or any(date.name == name for date in dates(name)))
        and not _is_quantity(normal.split())
    ):
        yield TextSpan(normal, name, start, end)


def _is_quantity(words: Sequence[str]) -> bool:
    has_number = any(word.isdigit() for word in words)
    return all(
        word.isdigit() or word in _UNITS or (has_number and word in _UNITS_OF_NUMBERS)
        for word in words
    )


def _mention(at: int, normal: str, spot: TextSpan, kind: Kind) -> Mention:
    start, end = (spot.start, spot.end) if kind == "text" else (0, 0)
    is_date = all(word.isdigit() or word in _CALENDAR_WORDS for word in normal.split())
    type = "date" if is_date else "name"
    return Mention(at, normal, spot.name, type, kind, start=start, end=end)


def _full_names(source: Source, spots: Sequence[Sequence[TextSpan]]) -> Mapping[str, str]:
    """By surname or acronym: the form of the only full name in this document that it
    abbreviates.
    """
    full: dict[str, set[str]] = {}
    for passage, found in zip(source.passages, spots, strict=True):
        for spot in found:
            words = spot.form.split()
            if 2 <= len(words) <= MAX_FULL_NAME_WORDS and words[0] not in FUNCTION_WORDS:
                full.setdefault(words[-1], set()).add(spot.form)
            if match := _ACRONYM.match(passage.text, spot.end):
                # Of the initials of the words, with or without function words.
                acronym = normalize_name(match[1])
                initials = "".join(word[0] for word in words)
                content = "".join(word[0] for word in words if word not in FUNCTION_WORDS)
                if acronym in (initials, content):
                    full.setdefault(acronym, set()).add(spot.form)
    return {short: next(iter(names)) for short, names in full.items() if len(names) == 1}
