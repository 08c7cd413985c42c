"""Headers of columns, so that those that mean the same are found by equal keys. Begin with
`read_headers`. Without Django."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reading.parsers.column_types import without_unit
from tables.questions.words import QUALIFIERS, concepts_of, split_words

_UNNAMED = re.compile(r"column \d+")
#: Shortest word that may be the first part of a compound.
_MIN_PREFIX = 4


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a header is about: `concepts` of words.toml, and `qualifiers`, such as `net`."""

    concepts: frozenset[str]
    qualifiers: frozenset[str]

    @property
    def key(self) -> str:
        return f"~{'|'.join(sorted(self.concepts))}+{'+'.join(sorted(self.qualifiers))}"

    @classmethod
    def of_key(cls, key: str) -> "Meaning | None":
        """The meaning that has this key; None for the key of a name."""
        if not key.startswith("~"):
            return None
        concepts, _, qualifiers = key[1:].partition("+")
        return cls(frozenset(concepts.split("|")), frozenset(filter(None, qualifiers.split("+"))))

    def contradicts(self, other: "Meaning") -> bool:
        """Whether the two are surely about different things."""
        if self.concepts.isdisjoint(other.concepts):
            return True
        return bool(self.qualifiers and other.qualifiers) and self.qualifiers != other.qualifiers


@dataclass(frozen=True, slots=True)
class Header:
    """A column's folded `name` without its unit, empty where the table has none; and what it is
    about, if that is known."""

    name: str
    type: str
    unit: str
    meaning: Meaning | None

    @property
    def name_key(self) -> str:
        """A hash: keys are kept beside the tables, and must not tell what invisible ones say."""
        return hashlib.blake2b(self.name.encode(), digest_size=12).hexdigest() if self.name else ""

    @property
    def keys(self) -> tuple[str, ...]:
        keys = (self.name_key, self.meaning.key if self.meaning else "")
        return tuple(key for key in keys if key)


def read_headers(columns: Sequence[Mapping[str, Any]]) -> list[Header]:
    """The headers of `Table.columns`."""
    headers = []
    for column in columns:
        name = without_unit(column["name"]) if column["type"] == "number" else column["name"]
        words = split_words(name)
        folded = " ".join(words)
        if _UNNAMED.fullmatch(folded):
            words, folded = [], ""
        headers.append(Header(folded, column["type"], column.get("unit") or "", _meaning(words)))
    return headers


def fingerprint(columns: Sequence[Mapping[str, Any]]) -> str:
    """Equal for tables with the same columns in name, type and unit, in the same order: a SHA-256
    as 64 hexadecimal digits."""
    seen = [
        (header.name or column["name"], header.type, header.unit)
        for header, column in zip(read_headers(columns), columns, strict=True)
    ]
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def _meaning(words: Sequence[str]) -> Meaning | None:
    """What the whole header is about but for qualifiers; None where a word is left unexplained."""
    qualifiers, rest = set[str](), list[str]()
    for word in words:
        if word in QUALIFIERS:
            qualifiers.add(QUALIFIERS[word])
            continue
        first = _first_part(word)
        if first:
            qualifiers.add(QUALIFIERS[first])
        rest.append(word.removeprefix(first))
    for phrase in (" ".join(rest), " ".join(words)):
        if concepts := concepts_of(phrase, is_question=False):
            return Meaning(frozenset(concepts), frozenset(qualifiers))
    return None


def _first_part(word: str) -> str:
    """The qualifier that a compound begins with, such as `netto` of `nettobetrag`."""
    for length in range(len(word) - 3, _MIN_PREFIX - 1, -1):
        if word[:length] in QUALIFIERS and concepts_of(word[length:], is_question=False):
            return word[:length]
    return ""
