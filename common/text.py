"""Text helpers: escaping of non-printing characters, counts with nouns, grapheme boundaries,
Markdown without its markup, and scripts written without spaces (Chinese, Japanese, Thai, ...).
Pure."""

import json
import re
import unicodedata
from collections.abc import Callable
from functools import cache

#: A part of some scripts' spelling, and of emoji.
_JOINERS = "\u200c\u200d"


def escape_nonprinting(text: str, escape: Callable[[str], str]) -> str:
    """`text` with each non-printing character replaced by `escape(character)`."""
    return "".join(
        letter if letter.isprintable() or letter in _JOINERS else escape(letter) for letter in text
    )


#: More of one text is not worth a model's attention.
MAX_TOOL_CHARACTERS = 2000


def json_quoted(text: str) -> str:
    """`text` as a JSON string on one line, so that stored text cannot forge entries of an
    answer.
    """
    quoted_text = json.dumps(text, ensure_ascii=False)
    return escape_nonprinting(quoted_text, lambda letter: json.dumps(letter)[1:-1])


def parse_integer(text: str) -> int | None:
    """The whole number that `text` is written in digits; None for anything else, and for numbers
    that no bigint column could hold."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def pluralized(number: int, noun: str) -> str:
    """A number with its noun: “1 step”, “2,000 steps”."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def count_heading(number: int, what: str) -> str:
    """The first line of a list: how many there are."""
    return f"Found {number} {what}:" if number else f"Found 0 {what}."


def truncated(text: str, limit: int = MAX_TOOL_CHARACTERS) -> str:
    """The beginning of a long text, with an ellipsis."""
    return text if len(text) <= limit else f"{text[:limit]}…"


_ZERO_WIDTH = frozenset("\u200c\u200d")
#: Grapheme_Cluster_Break=Prepend of Unicode 17: they belong to what follows, even to a space.
_PREPEND = frozenset(
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\u0d4e"
    "\U000110bd\U000110cd\U000111c2\U000111c3\U000113d1\U0001193f\U00011941\U00011a3a"
    "\U00011a84\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46\U00011f02"
)
_VIRAMA = 9
_COMBINING = frozenset({"Mn", "Mc", "Me"})


def may_combine(before: str, after: str) -> bool:
    """True if one grapheme cluster may contain both characters (UAX #29).

    It may be True where the standard breaks, never False where it does not.
    """
    if (after < "\u0300" and before < "\u0300") or _is_control(before) or _is_control(after):
        return False
    return (
        unicodedata.category(after) in _COMBINING
        or after in _ZERO_WIDTH
        or "\uff9e" <= after <= "\uff9f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or after in "\u0e33\u0eb3"
        or before in _PREPEND
        or before == "\u200d"
        or unicodedata.combining(before) == _VIRAMA
        or (_is_flag(before) and _is_flag(after))
        or (_is_jamo(after) and (_is_jamo(before) or _is_syllable(before)))
        or (_is_jamo(before) and _is_syllable(after))
    )


def is_grapheme_boundary(text: str, at: int, start: int = 0) -> bool:
    """Whether a cut before `text[at]` splits no grapheme cluster. `start` is a boundary itself.

    Flags are pairs of letters, counted from the start of their run.
    """
    before, after = text[at - 1], text[at]
    if not (_is_flag(before) and _is_flag(after)):
        return not may_combine(before, after)
    row = at
    while row > start and _is_flag(text[row - 1]):
        row -= 1
    return (at - row) % 2 == 0


def _is_control(character: str) -> bool:
    """Line ends and controls stand alone, whatever is behind them."""
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_jamo(character: str) -> bool:
    """The letters of Hangul; they join each other, and syllables on either side."""
    return (
        "\u1100" <= character <= "\u11ff"
        or "\ua960" <= character <= "\ua97f"
        or "\ud7b0" <= character <= "\ud7ff"
    )


def _is_syllable(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3"


#: Marks around a highlight, until the text is escaped.
HIGHLIGHT_START, HIGHLIGHT_END = "\ue000", "\ue001"
#: A sign that stands for itself, and brackets that are no link's, such as [12].
_LITERAL = re.compile(r"\\(?P<sign>[!-/:-@\[-`{-~])|\[(?P<words>[^\[\]\\\n]{1,200})\](?![(\[:])")
#: Where such signs are until the markup has gone.
_ASIDE = 0xF0000
_SET_ASIDE = re.compile("[\U000f0021-\U000f007e]")
#: The target of a link.
_LINK_TARGET = re.compile(r"\]\([^)\s]{0,2000}+\)")
#: Marks that a reader of one line does not need: code, emphasis, ends of links. Each is found
#: without what a highlight may have cut off.
_MARKUP = re.compile(
    r"!?\[|\]|`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|^(?:(?<!\s\n)\s*+|[ \t]*+)#{1,6}\s", re.MULTILINE
)
#: The line above or below a block of code, with the name of its language.
_CODE_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*(?:\n|\Z)", re.MULTILINE)
#: A heading that something follows.
_HEADING = re.compile(
    r"^[ \t]*+#{1,6}[ \t]++(?P<words>[^\n]*[^\s#])[ \t#]*+\n\s*+(?=\S)", re.MULTILINE
)
_ITEM = re.compile(r"^[ \t]*+[-*+][ \t]++(?=\S)", re.MULTILINE)
#: The line between the head of a table and its rows, and the ends of a row.
_RULE = re.compile(
    r"^[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|)++[ \t]*+:?-*+:?[ \t]*+(?:\n|\Z)", re.MULTILINE
)
_ROW_START = re.compile(r"^[ \t]*\|[ \t]*", re.MULTILINE)
_ROW_END = re.compile(r"(?:(?<![ \t])[ \t]++)?\|[ \t]*+$(?!\Z)", re.MULTILINE)
_LAST_ROW_END = re.compile(r"(?:(?<![ \t])[ \t]++)?\|\s*+\Z")
_CELL_END = re.compile(r"(?:(?<!\s)\s++)?\|\s*+")


def strip_markdown(text: str) -> str:
    """Plain text of Markdown. Table cells are separated by dots, rows by semicolons.

    A heading is followed by a colon, but a first heading is removed, since it is shown above the
    text already; it stays where nothing else is highlighted.
    """
    text = _LITERAL.sub(_set_aside, text)
    text = _CODE_FENCE.sub(_keep_highlight, _RULE.sub("", text))
    heading = _HEADING.match(text.lstrip("\n"))
    rest = text.lstrip("\n")[heading.end() :] if heading else ""
    without_first_heading = (
        rest if heading and (HIGHLIGHT_START in rest or HIGHLIGHT_START not in heading[0]) else text
    )
    text = _HEADING.sub(_heading_with_colon, without_first_heading)
    text = _MARKUP.sub("", _LINK_TARGET.sub(_keep_highlight, _ITEM.sub("• ", text)))
    text = _ROW_END.sub(";", _LAST_ROW_END.sub("", _ROW_START.sub("", text)))
    text = _CELL_END.sub(" · ", text)
    return _SET_ASIDE.sub(lambda sign: chr(ord(sign[0]) - _ASIDE), text)


def _set_aside(literal: re.Match[str]) -> str:
    if literal["sign"]:
        return chr(_ASIDE + ord(literal["sign"]))
    return f"{chr(_ASIDE + ord('['))}{literal['words']}{chr(_ASIDE + ord(']'))}"


def _heading_with_colon(heading: re.Match[str]) -> str:
    words = heading["words"]
    return f"{words} " if words.endswith((".", ":", "?", "!", "…")) else f"{words}: "


def _keep_highlight(match: re.Match[str]) -> str:
    """Remove the markup, but keep a highlight's start or end mark inside it."""
    return "" if match[0].count(HIGHLIGHT_START) == match[0].count(HIGHLIGHT_END) else match[0]


def storable_text(text: str) -> str:
    """`text` as PostgreSQL can store it: U+FFFD for NUL and for half of a surrogate pair."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


# Character classes of scripts are the inside of a `[...]` of a regular expression, written so that
# Python and PostgreSQL read them alike. `ragsite_words` in the database
# (documents/migrations/0007) has its own copy. `CJK` is all of them, also those of Thailand, Laos,
# Cambodia and Burma.
HAN = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u303b\u3105-\u312f\u31a0-\u31bf\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
)
KANA = (
    r"\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\uff66-\uff9d\U0001b000-\U0001b16f"
)
HANGUL = (
    r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffbe"
    r"\uffc2-\uffdc"
)
THAI = r"\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
LAO = r"\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec6\u0edc-\u0edf"
KHMER = r"\u1780-\u17b3\u17d7\u17dc"
BURMESE = (
    r"\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070"
    r"\u1075-\u1081\u108e"
)
#: Each letter begins a unit; the marks behind it belong to the same one.
CJK = HAN + KANA + HANGUL + THAI + LAO + KHMER + BURMESE
CJK_MARKS = (
    r"\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    r"\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    r"\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
)

_UNSPACED = f"[{HAN}{KANA}{THAI}{LAO}{KHMER}{BURMESE}]"
_CHARACTER = f"[{CJK}]"
_SINGLE = f"(?<![{CJK}{CJK_MARKS}])[{CJK}][{CJK_MARKS}]*(?![{CJK}{CJK_MARKS}])"


@cache
def cached_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled on first use, which takes milliseconds for such large classes."""
    return re.compile(pattern)


def has_unspaced_script(text: str) -> bool:
    """True if any letter of `text` is of a script without spaces."""
    return not text.isascii() and bool(cached_pattern(_CHARACTER).search(text))


#: Emoji that are found like words, as in `documents/migrations/_word_forms.py`.
EMOJI = r"\U0001F000-\U0001FAFF\u2600-\u27bf\u2b50\u2b55"


def has_emoji(text: str) -> bool:
    """True if any character of `text` is an emoji."""
    return not text.isascii() and bool(cached_pattern(f"[{EMOJI}]").search(text))


def estimated_word_count(word: str) -> int:
    """Estimated number of words in text without spaces: one for two characters. Korean has
    spaces.
    """
    return 1 if word.isascii() else max(1, len(cached_pattern(_UNSPACED).findall(word)) // 2)


def single_characters(text: str) -> tuple[str, ...]:
    """Characters of these scripts without a neighbour of them: for `水 H2O` it is 水."""
    if not has_unspaced_script(text):
        return ()
    normalised = unicodedata.normalize("NFKC", text)
    return tuple(dict.fromkeys(cached_pattern(_SINGLE).findall(normalised)))


#: What spreadsheets take for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def spreadsheet_text(text: str) -> str:
    """A text as a cell of a CSV file: what a spreadsheet would run as a formula gets an apostrophe
    in front."""
    return f"'{text}" if text.startswith(_FORMULA) else text
