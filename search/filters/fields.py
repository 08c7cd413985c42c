"""What a filter may speak of: fields with a meaning of their own, and paths into the metadata."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from search.filters.limits import MAX_PATH_CHARACTERS, FilterError, shown

METADATA = "metadata"


class Kind(Enum):
    """What values a field has. A list stands for each of its elements."""

    ANY = "anything"
    TEXT = "text"
    TEXTS = "a list of texts"
    NUMBER = "a number"
    TIME = "a time"
    LANGUAGE = "a language"


FIELDS: Mapping[str, Kind] = {
    "collection": Kind.TEXT,
    "document": Kind.TEXT,
    "title": Kind.TEXT,
    "source": Kind.TEXT,
    "url": Kind.TEXT,
    "origin": Kind.TEXT,
    "media_type": Kind.TEXT,
    "language": Kind.LANGUAGE,
    "dated": Kind.TIME,
    "created": Kind.TIME,
    "updated": Kind.TIME,
    "chunk": Kind.TEXT,
    "chapter": Kind.TEXT,
    "section": Kind.TEXT,
    "heading": Kind.TEXTS,
    "page": Kind.NUMBER,
}
ALIASES: Mapping[str, str] = {"lang": "language"}

_KEY = re.compile(r"(?:[^.\\]|\\[.\\])+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Field:
    """A name of `FIELDS`, or `metadata` with the keys that lead to a value in it."""

    name: str
    keys: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What it may be compared with."""
        return FIELDS.get(self.name, Kind.ANY)

    def __str__(self) -> str:
        """The shortest path that means this field."""
        if not self.keys:
            return self.name
        path = ".".join(re.sub(r"[.\\]", r"\\\g<0>", key) for key in self.keys)
        return f"{METADATA}.{path}" if self._needs_prefix(path) else path

    def _needs_prefix(self, path: str) -> bool:
        reserved = path in FIELDS or path in ALIASES or path.startswith("$")
        return reserved or self.keys[0] == METADATA


def parse_field(path: str, *, at: str) -> Field:
    """The field that `path` means.

    A whole name of `FIELDS` is that field; anything else leads into the metadata, with or without
    `metadata.` before it. A dot that belongs to a key is written `\\.`, a backslash `\\\\`.
    """
    if len(path) > MAX_PATH_CHARACTERS:
        raise FilterError(
            f"The field {shown(path)} has more than {MAX_PATH_CHARACTERS} characters."
            " Give that value a shorter name.",
            at=at,
        )
    check_text(path, at=at)
    name = ALIASES.get(path, path)
    if name in FIELDS:
        return Field(name)
    keys = _keys(path, at)
    if keys[0] != METADATA:
        return Field(METADATA, keys)
    if len(keys) == 1:
        raise FilterError("Which metadata? Name a key, as in “metadata.year”.", at=at)
    return Field(METADATA, keys[1:])


def metadata_field(keys: tuple[str, ...], *, at: str) -> Field:
    """The field that these keys lead to."""
    field = Field(METADATA, keys)
    parse_field(str(field), at=at)  # raises for what cannot be one
    return field


def _keys(path: str, at: str) -> tuple[str, ...]:
    keys: list[str] = []
    position = 0
    while key := _KEY.match(path, position):
        keys.append(re.sub(r"\\(.)", r"\1", key[0], flags=re.DOTALL))
        position = key.end()
        if position == len(path):
            return tuple(keys)
        if path[position] != ".":
            break
        position += 1
    raise FilterError(
        f"{shown(path)} is no field. Write names with single dots between them, as in"
        " “author.name”; a dot or backslash that belongs to a name has a backslash before it.",
        at=at,
    )


def check_text(text: str, *, at: str) -> None:
    """Raise FilterError for text that PostgreSQL could not hold."""
    if "\x00" in text:
        raise FilterError("There is a NUL character (U+0000) in it. Remove it.", at=at)
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise FilterError(
            "There is half of a surrogate pair in it. Send whole Unicode characters.", at=at
        )
