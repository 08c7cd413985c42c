"""Names in titles, headings and texts, by how they are written. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

from graph.extraction.capitals import runs
from graph.extraction.dates import dates
from graph.extraction.forms import form
from graph.extraction.found import Kind, Mention, Source
from graph.extraction.functionwords import FUNCTION_WORDS
from graph.extraction.spots import Spot
from graph.extraction.tally import Tally

#: Of one passage: what names more is a list.
MOST = 100
#: A quotation of more words is not the title of anything.
MOST_QUOTED = 10
MOST_IN_FULL_NAME = 4

_STORED = ("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "kbit", "mbit", "gbit")
_PHYSICAL = ("hz", "khz", "mhz", "ghz", "kw", "kwh", "mwh", "gwh", "kv", "kpa", "mpa", "db")
_UNITS = frozenset((*_STORED, *_PHYSICAL))
_QUOTED = re.compile(
    r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|„([^“”\n]{2,80})[“”]|«([^»\n]{2,80})»"
    r"|``([^'`\n]{2,80}?) ?''"
)
_ACRONYM = re.compile(r"\s?\(([A-Z][A-Z&.]{1,9})s?\)")


def mentions(source: Source) -> Iterator[Mention]:
    """What the passages name. A surname or an acronym alone also names what the document calls so
    in full."""
    spots = [list(names(passage.text)) for passage in source.passages]
    full = _full_names(source, spots)
    in_title = list(names(source.title))
    tally = Tally(most=MOST)
    for at, passage in enumerate(source.passages):
        headings = [*in_title, *(spot for each in passage.heading_path for spot in names(each))]
        for spot in headings:
            tally.add(_mention(at, spot.form, spot, "heading"))
        for spot in spots[at]:
            tally.add(_mention(at, spot.form, spot, "text"))
            if spot.form in full:
                tally.add(_mention(at, full[spot.form], spot, "text"))
    return tally.mentions()


def names(text: str) -> Iterator[Spot]:
    """Capitalised phrases with their parts, and quotations with a capital in them.

    A single word that a sentence begins with counts if the text writes it so elsewhere, too.
    """
    found = list(runs(text))
    elsewhere = {word.text for run in found if not run.opens for word in run.words}
    for run in found:
        if not run.opens or run.words[0].text in elsewhere:
            yield from _spot(text, *run.span)
    for quoted in _QUOTED.finditer(text):
        group = quoted.lastindex or 1
        words = quoted[group].split()
        if len(words) <= MOST_QUOTED and any(word[0].isupper() for word in words):
            yield from _spot(text, *quoted.span(group))


def _spot(text: str, start: int, end: int) -> Iterator[Spot]:
    name = text[start:end]
    normal = form(name)
    # `WHO` is no “who”.
    is_word = normal in FUNCTION_WORDS and not name.isupper()
    if len(normal) > 1 and not is_word and not _is_date(name) and not _is_amount(normal):
        yield Spot(normal, name, start, end)


def _is_amount(normal: str) -> bool:
    """`11.7 MB`, and `MB` alone."""
    return all(word.isdigit() or word in _UNITS for word in normal.split())


def _is_date(name: str) -> bool:
    """`12 March 1943`, which the rules for dates find."""
    return name.isdigit() or any(date.name == name for date in dates(name))


def _mention(at: int, normal: str, spot: Spot, kind: Kind) -> Mention:
    start, end = (spot.start, spot.end) if kind == "text" else (0, 0)
    return Mention(at, normal, spot.name, "name", kind, start=start, end=end)


def _full_names(source: Source, spots: Sequence[Sequence[Spot]]) -> Mapping[str, str]:
    """By surname or acronym the form of the one name in this document that it is short for."""
    full: dict[str, set[str]] = {}
    for passage, found in zip(source.passages, spots, strict=True):
        for spot in found:
            words = spot.form.split()
            if 2 <= len(words) <= MOST_IN_FULL_NAME and words[0] not in FUNCTION_WORDS:
                full.setdefault(words[-1], set()).add(spot.form)
            acronym = _ACRONYM.match(passage.text, spot.end)
            if acronym and _stands_for(form(acronym[1]), words):
                full.setdefault(form(acronym[1]), set()).add(spot.form)
    return {short: next(iter(names)) for short, names in full.items() if len(names) == 1}


def _stands_for(acronym: str, words: Sequence[str]) -> bool:
    """Whether these begin the name's words, small ones counted or not."""
    initials = "".join(word[0] for word in words)
    telling = "".join(word[0] for word in words if word not in FUNCTION_WORDS)
    return acronym in (initials, telling)
