"""Messages that come to a page in English with their values filled in: why a file failed, as a
worker stored it, or what a module that knows no Django raised.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.utils.translation import get_language, gettext
from django.utils.translation.trans_real import translation

from common.translation import format_number

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SENTENCE_END = re.compile(r"(?<=[.?]) (?=[A-Z“])")
_NUMBER = re.compile(r"\d{1,3}(,\d{3})+")
#: Beginnings of parts of sentences that are in the catalog: “a part is missing”.
_PART_STARTS = ("a ", "an ", "it ", "its ", "The ")
#: Characters that a text of the catalog has at least, besides its placeholders.
_MIN_LITERAL_CHARACTERS = 12


def translated_message(message: str) -> str:
    """The message in the language of the page: the text of the catalog that it was made from, with
    its values. A message that is not from the catalog stays as it is."""
    language = get_language() or settings.LANGUAGE_CODE
    return message if language.startswith("en") else _translated(message, language) or message


@lru_cache(maxsize=4096)
def _translated(message: str, language: str) -> str:
    """The message in the active language; empty if no text of the catalog fits."""
    if not message or (same := gettext(message)) != message:
        return message and same
    for text, literals in _templates(language):
        if (found := _values(message, literals)) is not None:
            values = dict(zip(_PLACEHOLDER.findall(text), found, strict=True))
            return gettext(text).format(
                **{name: _translated_value(value, language) for name, value in values.items()}
            )
    for end in _SENTENCE_END.finditer(message):
        first, rest = message[: end.start()], message[end.end() :]
        if (head := _translated(first, language)) and (tail := _translated(rest, language)):
            return f"{head} {tail}"
    return ""


@cache
def _templates(language: str) -> list[tuple[str, list[str]]]:
    """The catalog's texts with placeholders and what is between these, the longest texts first."""
    catalog: Any = translation(language)
    texts = {key for key, _ in catalog._catalog.items() if isinstance(key, str)}
    split = [(text, _PLACEHOLDER.split(text)[::2]) for text in texts]
    found = [
        (text, literals)
        for text, literals in split
        if len(literals) > 1 and len("".join(literals)) >= _MIN_LITERAL_CHARACTERS
    ]
    return sorted(found, key=lambda entry: -len("".join(entry[1])))


def _values(message: str, literals: Sequence[str]) -> list[str] | None:
    """What is between these parts in the message; None if it lacks one."""
    if not (message.startswith(literals[0]) and message.endswith(literals[-1])):
        return None
    values, at = [], len(literals[0])
    for literal in literals[1:-1]:
        if (end := message.find(literal, at)) < 0:
            return None
        values.append(message[at:end])
        at = end + len(literal)
    end = len(message) - len(literals[-1])
    return [*values, message[at:end]] if end >= at else None


def _translated_value(value: str, language: str) -> str:
    if _NUMBER.fullmatch(value):
        return format_number(int(value.replace(",", "")))
    is_text = value.startswith(_PART_STARTS) or value.endswith(".")
    return (is_text and _translated(value, language)) or value
