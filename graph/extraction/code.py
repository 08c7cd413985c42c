"""Identifiers of code, in source code and in prose: `has_chat()`, `CVE-2024-3094`.
Pure. Begin with `identifiers`.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from graph.extraction.mentions import Kind, Mention, MentionCounter, Source, TextSpan
from graph.extraction.normalized_names import normalize_name
from reading.code_languages import LANGUAGES


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Of keywords, of what every program calls, and of examples.
IGNORED_IDENTIFIERS = _word_set(
    """
    abs add all and any append arg args array as assert async attr await bar base baz bool break
    byte bytes callable case cast catch char check class close cls code concat config const
    continue copy count data def default defer del delete dict do done double echo elif else elsif
    end enum enumerate err error errors eval except exec exit export extend extends false file
    filter final finally find first float fmt fn foo for format from func function get getattr
    global goto has hash hasattr help id if impl import in include index init input insert int
    interface into is isinstance issubclass it item items iter join key keys kwargs lambda last
    len length let line list load local log long loop main make map match max message min mod
    module msg mut name namespace new next nil node none not null num number obj object ok open
    opt option options or out output package panic param params parse pass path pop print printf
    println private proc property protected pub public push put raise range read ref remove repr
    require reset result ret return reversed round run save self set setattr short sizeof size
    slice sort sorted split start static status stop str string strip struct sub sum super switch
    temp test tests then this throw throws time tmp todo true try tuple type typeof types union
    unless unsigned until update use using val value values var vec void when where while with
    write yield zip
    """
)
#: Before or behind a full stop they are words of a sentence.
COMMON_WORDS = _word_set(
    """
    a after all also an and are as at be but by can did do does for from had has have he her his
    if in is it its no not of on one or she so than that the their then there these they this to
    was we were what when which who will with you
    """
)
#: What a host ends in.
TOP_LEVEL_DOMAINS = _word_set("com org net edu gov mil int de fr es uk at ch eu it nl us info biz")
#: Of files that people name in texts.
FILE_SUFFIXES = (
    "py|pyi|ipynb|js|mjs|cjs|jsx|ts|tsx|java|kt|kts|rs|go|c|cc|cpp|cxx|h|hpp|cs|rb|php|swift|scala|"
    "lua|jl|pl|pm|sh|bash|zsh|ps1|bat|cmd|ex|exs|erl|hs|ml|clj|dart|sql|ddl|html|htm|css|scss|"
    "less|vue|svelte|md|rst|txt|tex|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|properties|xml|xsd|"
    "csv|tsv|parquet|log|lock|proto|graphql|tf|gradle|cmake|mk|pdf|docx|xlsx|pptx|odt|epub|"
    "zip|tar|gz|whl|jar|so|dll|exe|db|sqlite|pem|crt|key|png|jpg|jpeg|gif|svg"
)


#: Most identifiers per passage; in longer listings none is specific.
MAX_IDENTIFIERS = 64
MIN_CHARACTERS, MAX_CHARACTERS = 3, 120

_CODE = frozenset(language.media_type for language in LANGUAGES)
#: A file name with or without folders. Everything that repeats has an end, so that no text takes
#: longer than its length lets expect.
FILE_PATH = rf"(?:[\w.-]{{1,60}}/){{0,12}}[\w-][\w.-]{{0,80}}\.(?:{FILE_SUFFIXES})\b(?![\w/])"
#: Most prose has none of these, and is passed over.
_HINT = re.compile(
    r"_\w|[a-z0-9][A-Z]|[A-Z]{2}[a-z]{3}|[.:][:A-Za-z]|\(\)|[A-Z]-?\d\d|`|--[a-z]"
    r"|(?:RFC|PEP|ISO|IEC|IEEE|DIN)[ -]?\d"
)
_PROSE = rf"""
    (?P<address>(?:https?|ftp)://\S+|(?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}\.\S+|\bwww\.\S+)
  | \b(?P<standard>RFC|PEP|ISO|IEC|IEEE|DIN)(?:[ ]|-)?(?P<number>\d{{1,5}}(?:[.-]\d{{1,4}})?)\b
  | \b(?P<advisory>CVE-\d{{4}}-\d{{4,7}}|GHSA(?:-[0-9a-z]{{4}}){{3}})\b
  | (?<![\w.-])(?P<file>{FILE_PATH})
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
_MIXED_CASE = re.compile(r"\w_\w|[a-z0-9][A-Z]")
_SELF_PREFIX = re.compile(r"(?:self|this|cls|super|Self)(?:\.|::)")
_BRAND = re.compile(r"(?=.{4})[a-z]?[A-Z]+[a-z][A-Za-z]*")
_HASH = re.compile(r"(?=\w*\d)[0-9a-fA-F_]+\Z")


def code_mentions(source: Source) -> Iterator[Mention]:
    """Identifiers that are defined and used; definitions have the kind `heading`."""
    tally = MentionCounter(most=MAX_IDENTIFIERS)
    is_code = source.media_type in _CODE
    own = PurePosixPath(source.key.replace("\\", "/")).name
    if source.passages and re.fullmatch(FILE_PATH, own):
        tally.add(Mention(0, normalize_name(own), own, "code", "self"))
    for at, passage in enumerate(source.passages):
        # Class and function around a passage of source code, and both as `Class.method`.
        defined = [name for name in passage.heading_path if is_code and _is_significant(name)]
        if len(defined) > 1:
            defined.append(".".join(defined[-2:]))
        for name in defined:
            tally.add(Mention(at, normalize_name(name), name, "code", "heading"))
        for spot, kind in _find_identifiers(passage.text, is_code=is_code):
            is_name = not is_code and _is_written_as_name(spot, passage.text)
            type = "name" if is_name else "code"
            tally.add(Mention(at, spot.form, spot.name, type, kind, 1, spot.start, spot.end))
    return tally.mentions()


def identifiers(text: str) -> Iterator[TextSpan]:
    """Identifiers in prose, such as a question."""
    return (spot for spot, _ in _find_identifiers(text, is_code=False))


def _find_identifiers(text: str, *, is_code: bool) -> Iterator[tuple[TextSpan, Kind]]:
    for match in _IN_SOURCE.finditer(text) if is_code else _prose_matches(text):
        group = match.lastgroup or ""
        if group == "number":
            name = f"{match['standard']} {match['number']}"
            yield TextSpan(normalize_name(name), name, match.start(), match.end()), "text"
        elif group in {"path", "called"}:
            yield from _path_spans(match, is_code=is_code)
        elif group == "file":
            yield from _file_spans(match)
        elif group != "address" and _is_significant(match[group]):
            kind: Kind = "heading" if group == "defined" else "text"
            name = match[group].replace("::", ".")
            yield TextSpan(normalize_name(name), name, *match.span(group)), kind


def _prose_matches(text: str) -> Iterator[re.Match[str]]:
    """Matches near hints of code only: three times as fast as matching everywhere."""
    end = 0
    for hint in _HINT.finditer(text):
        if hint.start() >= end:
            start = max(end, *(text.rfind(space, end, hint.start()) + 1 for space in " \n"))
            space = _SPACE.search(text, hint.end())
            end = space.start() if space else len(text)
            yield from _IN_PROSE.finditer(text, start, end)


def _path_spans(match: re.Match[str], *, is_code: bool) -> Iterator[tuple[TextSpan, Kind]]:
    """A dotted path, and its last part if that is a name of its own."""
    own = _SELF_PREFIX.match(match["path"])
    start = match.start("path") + (own.end() if own else 0)
    name = match["path"][own.end() if own else 0 :]
    parts = _SEPARATOR.split(name)
    is_called = match["called"] is not None
    # Rather than a missing space, an abbreviation or a host.
    is_path = any(_MIXED_CASE.search(part) for part in parts) or (
        all(len(part) > 1 and part.islower() for part in parts)
        and COMMON_WORDS.isdisjoint(parts)
        and parts[-1] not in TOP_LEVEL_DOMAINS
    )
    if len(parts) > 1 and (is_code or is_called or is_path):
        dotted = ".".join(parts)
        yield TextSpan(normalize_name(dotted), dotted, start, match.end("path")), "text"
    last = parts[-1]
    if (is_called or _MIXED_CASE.search(last)) and _is_significant(last):
        yield (
            TextSpan(normalize_name(last), last, match.end("path") - len(last), match.end("path")),
            "text",
        )


def _file_spans(match: re.Match[str]) -> Iterator[tuple[TextSpan, Kind]]:
    """A path, and the file's own name."""
    written, end = match["file"], match.end("file")
    name = written.rpartition("/")[2]
    if len(written) > MAX_CHARACTERS:
        return
    if name != written:
        yield TextSpan(normalize_name(written), written, match.start("file"), end), "text"
    yield TextSpan(normalize_name(name), name, end - len(name), end), "text"


def _is_written_as_name(spot: TextSpan, text: str) -> bool:
    """Whether prose writes it like `YouTube`, `iPhone`: capitals, and no sign of a program
    around.
    """
    before, behind = text[spot.start - 1 : spot.start], text[spot.end : spot.end + 1]
    return (
        _BRAND.fullmatch(spot.name) is not None
        and (not before or before not in "`.:/-_")
        and (not behind or behind not in "`(:/_")
    )


def _is_significant(name: str) -> bool:
    """Whether it is specific: no loop variable, common identifier or hash."""
    bare = name.strip("_-")
    return (
        len(bare) >= MIN_CHARACTERS
        and len(name) <= MAX_CHARACTERS
        and bare.casefold() not in IGNORED_IDENTIFIERS
        and not (len(bare) > 6 and _HASH.match(bare))
    )
