"""Keys of facts: the many ways to write one are one key."""

import re
import unicodedata

from common.errors import InvalidInput

MAX_CHARACTERS = 200
#: Nobody calls anything by more; what is longer is refused before it is worked on.
MAX_GIVEN = 2_000

_CAMEL_HUMP = re.compile(r"(?<=[^\W_])(?=[^\W\d_])")


class InvalidKey(InvalidInput, ValueError):
    """A key in which there is no letter or digit, or too many of them."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="key")


def fact_key(raw: str) -> str:
    """`raw` in snake_case: `favouriteColor`, `favourite-color` and `Favourite Color` are the same.

    Letters and digits of every script are kept, in lower case and with their marks. Raises
    InvalidKey where nothing is left or more than 200 characters are.
    """
    if len(raw) > MAX_GIVEN:
        raise _too_long()
    key = _snake(raw)
    if not key:
        raise InvalidKey("The key holds no letter and no digit. Name what the fact is about.")
    if len(key) > MAX_CHARACTERS:
        raise _too_long()
    return key


def _snake(raw: str) -> str:
    text = _visible(unicodedata.normalize("NFKC", raw))
    text = unicodedata.normalize("NFKC", _humps_apart(text).lower())
    words = "".join(letter if _belongs(letter) else " " for letter in text).replace("_", " ")
    return "_".join(filter(None, (_from_its_first_letter(word) for word in words.split())))


def _visible(text: str) -> str:
    """Without marks of direction and joiners, which would make two keys of what looks like one."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


def _humps_apart(text: str) -> str:
    """`favouriteColor` → `favourite Color`, `HTTPServer` → `HTTP Server`."""
    return _CAMEL_HUMP.sub(lambda hump: " " if _is_hump(text, hump.start()) else "", text)


def _is_hump(text: str, at: int) -> bool:
    before, here, after = text[at - 1], text[at], text[at + 1 : at + 2]
    return here.isupper() and (before.islower() or after.islower())


def _belongs(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter).startswith("M")


def _from_its_first_letter(word: str) -> str:
    """A mark needs a letter to stand on."""
    start = next((at for at, letter in enumerate(word) if letter.isalnum()), len(word))
    return word[start:]


def _too_long() -> InvalidKey:
    return InvalidKey(f"The key is longer than {MAX_CHARACTERS} characters. Name it more shortly.")
