"""Keys of facts: many spellings are normalised to one snake_case key."""

import re
import unicodedata
from itertools import dropwhile

from common.errors import InvalidInput
from common.translation import gettext

MAX_KEY_CHARACTERS = 200
#: Longer input is rejected before it is processed.
MAX_INPUT_CHARACTERS = 2_000

_CAMEL_HUMP = re.compile(r"(?<=[^\W_])(?=[^\W\d_])")


class InvalidKey(InvalidInput, ValueError):
    """A key without letters or digits, or with too many characters."""

    def __init__(self, message: str) -> None:
        super().__init__(message, field="key")


def fact_key(raw: str) -> str:
    """`raw` in snake_case: `favouriteColor`, `favourite-color` and `Favourite Color` are the same.

    Letters and digits of every script are kept, in lower case and with their marks. Raises
    InvalidKey where nothing is left or more than 200 characters are.
    """
    if len(raw) > MAX_INPUT_CHARACTERS:
        raise _too_long()
    # Direction marks and joiners would make two keys look the same.
    text = "".join(
        letter
        for letter in unicodedata.normalize("NFKC", raw)
        if unicodedata.category(letter) != "Cf"
    )
    # `favouriteColor` → `favourite Color`, `HTTPServer` → `HTTP Server`.
    text = unicodedata.normalize(
        "NFKC",
        _CAMEL_HUMP.sub(
            lambda hump: " " if _is_word_start(text, hump.start()) else "", text
        ).lower(),
    )
    words = "".join(
        letter if (letter.isalnum() or unicodedata.category(letter).startswith("M")) else " "
        for letter in text
    ).replace("_", " ")
    # Leading marks need a letter before them.
    stripped = (
        "".join(dropwhile(lambda letter: not letter.isalnum(), word)) for word in words.split()
    )
    key = "_".join(filter(None, stripped))
    if not key:
        raise InvalidKey(gettext("The key needs a letter or digit. Name the topic of the fact."))
    if len(key) > MAX_KEY_CHARACTERS:
        raise _too_long()
    return key


def _is_word_start(text: str, at: int) -> bool:
    before, here, after = text[at - 1], text[at], text[at + 1 : at + 2]
    return here.isupper() and (before.islower() or after.islower())


def _too_long() -> InvalidKey:
    return InvalidKey(
        gettext("The key is longer than {limit} characters. Choose a shorter one.").format(
            limit=MAX_KEY_CHARACTERS
        )
    )
