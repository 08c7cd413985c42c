"""Identifiers of code, in source code and in prose: `has_chat()`, `CVE-2024-3094`. Pure."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from documents.code_languages import LANGUAGES
from graph.extraction.code_words import COMMON, DOMAINS, NOTHING, SUFFIXES
from graph.extraction.forms import form
from graph.extraction.found import Kind, Mention, Passage, Source
from graph.extraction.spots import Spot
from graph.extraction.tally import Tally

#: Of one passage; a listing may have more, and then none of them says what it is about.
MOST = 64
SHORTEST, LONGEST = 3, 120

_CODE = frozenset(language.media_type for language in LANGUAGES)
# Everything that repeats has an end, so that no text takes longer than its length lets expect.
_FILE = rf"(?:[\w.-]{{1,60}}/){{0,12}}[\w-][\w.-]{{0,80}}\.(?:{SUFFIXES})\b(?![\w/])"
#: Most prose has none of these, and is passed over.
_HINT = re.compile(
    r"_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{3}|[.:][:A-Za-z]|\(\)|[A-Z]-?\d\d|`|--[a-z]"
    r"|(?:RFC|PEP|ISO|IEC|IEEE|DIN)[ -]?\d"
)
_PROSE = rf"""
    (?P<address>(?:https?|ftp)://\S+|(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}\.\S+|\bwww\.\S+)
  | \b(?P<standard>RFC|PEP|ISO|IEC|IEEE|DIN)(?:[ ]|-)?(?P<number>\d{{1,5}}(?:[.-]\d{{1,4}})?)\b
  | \b(?P<advisory>CVE-\d{{4}}-\d{{4,7}}|GHSA(?:-[0-9a-z]{{4}}){{3}})\b
  | (?<![\w.-])(?P<file>{_FILE})
  | `(?P<quoted>[A-Za-z_][\w-]*(?:(?:\.|::)[A-Za-z_]\w*)*)(?:\(\))?`
  | (?<![\w-])(?P<flag>--[a-z][a-z0-9]+(?:-[a-z0-9]+)*)\b
  | (?<![\w.])(?P<path>[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+)(?P<called>\(\))?
  | \b(?P<call>[A-Za-z_]\w*)\(\)
  | \b(?P<snake>[A-Za-z0-9]{{0,80}}_\w+)\b
  | \b(?P<hump>[a-z][a-z0-9]*[A-Z][A-Za-z0-9]+
      | (?!Ma?c[A-Z][a-z]+\b|(?:De|Di|La|Le|Fitz|Van)[A-Z][a-z]+\b)
        (?:[A-Z][a-z0-9]+(?:[A-Z]+[a-z0-9]+)+[A-Z]*|[A-Z]{{2,}}[a-z]{{3,}}[A-Za-z0-9]*))\b
  | \b(?P<code>[A-Z]{{1,6}}-?\d{{2,6}})\b
"""
_SOURCE = r"""
    \b(?:def|class|func|fn|function|interface|struct|enum|trait|object|module|protocol|sub|proc
      |(?:CREATE|create)[ ](?:TABLE|VIEW|TYPE|table|view|type))[ ]+(?:\w+\.)?
    (?P<defined>[A-Za-z_]\w*)
"""
_IN_PROSE = re.compile(_PROSE, re.VERBOSE)
_IN_SOURCE = re.compile(f"{_SOURCE}  | {_PROSE}", re.VERBOSE)
_SPACE = re.compile(r"\s")
_SEPARATOR = re.compile(r"\.|::")
_SPECIAL = re.compile(r"\w_\w|[a-z0-9][A-Z]")
_OWN = re.compile(r"(?:self|this|cls|super|Self)(?:\.|::)")
_HASH = re.compile(r"(?=\w*\d)[0-9a-fA-F_]+\Z")


def mentions(source: Source) -> Iterator[Mention]:
    """What code is defined and used; a definition is of the kind `heading`."""
    tally = Tally(most=MOST)
    is_code = source.media_type in _CODE
    if own := _own_file(source):
        tally.add(Mention(0, form(own), own, "code", "self"))
    for at, passage in enumerate(source.passages):
        for name in _defined_above(passage) if is_code else ():
            tally.add(Mention(at, form(name), name, "code", "heading"))
        for spot, kind in _found(passage.text, is_code=is_code):
            tally.add(Mention(at, spot.form, spot.name, "code", kind, 1, spot.start, spot.end))
    return tally.mentions()


def identifiers(text: str) -> Iterator[Spot]:
    """Those in prose, such as a question."""
    return (spot for spot, _ in _found(text, is_code=False))


def _own_file(source: Source) -> str:
    name = PurePosixPath(source.key.replace("\\", "/")).name
    return name if source.passages and re.fullmatch(_FILE, name) else ""


def _defined_above(passage: Passage) -> Iterator[str]:
    """The class and the function in which source code stands, and both as `Class.method`."""
    names = [name for name in passage.heading_path if _is_worthy(name)]
    yield from names
    if len(names) > 1:
        yield ".".join(names[-2:])


def _found(text: str, *, is_code: bool) -> Iterator[tuple[Spot, Kind]]:
    for match in _IN_SOURCE.finditer(text) if is_code else _in_prose(text):
        group = match.lastgroup or ""
        if group == "number":
            name = f"{match['standard']} {match['number']}"
            yield Spot(form(name), name, match.start(), match.end()), "text"
        elif group in {"path", "called"}:
            yield from _of_path(match, is_code=is_code)
        elif group == "file":
            yield from _of_file(match)
        elif group != "address" and _is_worthy(match[group]):
            kind: Kind = "heading" if group == "defined" else "text"
            name = match[group].replace("::", ".")
            yield Spot(form(name), name, *match.span(group)), kind


def _in_prose(text: str) -> Iterator[re.Match[str]]:
    """Where words only begin that are not plain ones: three times as fast as everywhere."""
    end = 0
    for hint in _HINT.finditer(text):
        if hint.start() >= end:
            start = max(end, *(text.rfind(space, end, hint.start()) + 1 for space in " \n"))
            space = _SPACE.search(text, hint.end())
            end = space.start() if space else len(text)
            yield from _IN_PROSE.finditer(text, start, end)


def _of_path(match: re.Match[str], *, is_code: bool) -> Iterator[tuple[Spot, Kind]]:
    """`inference.handler.has_chat`, and what it ends in if that is a name of its own."""
    own = _OWN.match(match["path"])
    start = match.start("path") + (own.end() if own else 0)
    name = match["path"][own.end() if own else 0 :]
    parts = _SEPARATOR.split(name)
    is_called = match["called"] is not None
    if len(parts) > 1 and (is_code or is_called or _is_path(parts)):
        dotted = ".".join(parts)
        yield Spot(form(dotted), dotted, start, match.end("path")), "text"
    last = parts[-1]
    if (is_called or _SPECIAL.search(last)) and _is_worthy(last):
        yield Spot(form(last), last, match.end("path") - len(last), match.end("path")), "text"


def _is_path(parts: list[str]) -> bool:
    """Rather than a missing space, an abbreviation or a host."""
    if any(_SPECIAL.search(part) for part in parts):
        return True
    words = {*parts} & COMMON
    is_plain = all(len(part) > 1 and part.islower() for part in parts)
    return is_plain and not words and parts[-1] not in DOMAINS


def _of_file(match: re.Match[str]) -> Iterator[tuple[Spot, Kind]]:
    """A path, and the file's own name: that is how others call it."""
    written, end = match["file"], match.end("file")
    name = written.rpartition("/")[2]
    if len(written) > LONGEST:
        return
    if name != written:
        yield Spot(form(written), written, match.start("file"), end), "text"
    yield Spot(form(name), name, end - len(name), end), "text"


def _is_worthy(name: str) -> bool:
    """Neither a loop's variable nor what every program has, nor a hash."""
    bare = name.strip("_-")
    return (
        len(bare) >= SHORTEST
        and len(name) <= LONGEST
        and bare.casefold() not in NOTHING
        and not (len(bare) > 6 and _HASH.match(bare))
    )
