"""Scripts written without spaces (Chinese, Japanese, Thai, ...): their character classes.

Classes are the inside of a `[...]` of a regular expression, written so that Python and PostgreSQL
read them alike. `ragsite_words` in the database (documents/migrations/0007) has its own copy.
"""

import re
import unicodedata
from functools import cache

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
CHARACTERS = HAN + KANA + HANGUL + THAI + LAO + KHMER + BURMESE
MARKS = (
    r"\u3099\u309a\uff9e\uff9f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece"
    r"\u17b4-\u17d3\u17dd\u102b-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d"
    r"\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d"
)

_UNSPACED = f"[{HAN}{KANA}{THAI}{LAO}{KHMER}{BURMESE}]"
_CHARACTER = f"[{CHARACTERS}]"
_SINGLE = f"(?<![{CHARACTERS}{MARKS}])[{CHARACTERS}][{MARKS}]*(?![{CHARACTERS}{MARKS}])"


@cache
def cached_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled on first use, which takes milliseconds for such large classes."""
    return re.compile(pattern)


def has_unspaced_script(text: str) -> bool:
    """True if any letter of `text` is of a script without spaces."""
    return not text.isascii() and bool(cached_pattern(_CHARACTER).search(text))


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
