"""Which known facts end by what a user said. Pure. Begin with `ended_keys`."""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from memory.fact_keys import InvalidKey, fact_key


@dataclass(frozen=True, slots=True)
class Ending:
    """A statement that facts hold no longer, or never did.

    `keys` are patterns of keys, `*` for any characters. Only facts with this `value` end, any where
    it is empty; they become `replacement` where it is given. Without keys what was stated last is
    withdrawn.
    """

    keys: tuple[str, ...] = ()
    value: str = ""
    replacement: str = ""


#: Names of the user, not of a relative or a pet.
_OWN_NAMES = frozenset(("name", "first_name", "last_name", "middle_name", "preferred_name"))
#: The rest of these keys says what the fact is about, so that its value need not agree.
_TOPICAL = ("allergy_to_", "intolerance_to_", "opinion_of_")
_COUNTED = ("pet_", "family_")
_AVERSE = ("hates ", "dislikes ", "detests ", "cannot stand ", "does not like ")
_SINGULAR = re.compile(r"(?:an?|one|my|eine?n?|meine?n?)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|an?|der|die|das|den|dem|eine?[nrm]?) ", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


def withdrawn_keys(ending: Ending, last: Sequence[str], facts: Mapping[str, str]) -> list[str]:
    """Keys of those `last` stated that an ending without keys is about: all, or for a replacement
    the only one, if it is a name as well.
    """
    known = [key for key in dict.fromkeys(last) if key in facts]
    if not ending.replacement:
        return known
    return known if len(known) == 1 and facts[known[0]][:1].isupper() else []


def named_ending(text: str, known_keys: Collection[str]) -> Ending:
    """The ending of the fact that `text` names by its key, or else by its value."""
    try:
        key = fact_key(text)
    except InvalidKey:
        key = ""
    return Ending((key,)) if key in known_keys else Ending(("*", *sorted(_OWN_NAMES)), text)


def ended_keys(ending: Ending, facts: Mapping[str, str]) -> list[str]:
    """Keys of those `facts`, by key, that end. A pet's or a relative's name takes the fact that
    there is one with it, and the other way round.
    """
    found = [
        key
        for key, value in facts.items()
        if any(
            _matches(pattern, key)
            and (not ending.value or _agrees(key, ending.value, value, is_named="*" not in pattern))
            for pattern in ending.keys
        )
    ]
    names = {key: _who(key, facts[key]) for key in found}
    # “my dog died” of somebody with two dogs may be either.
    individuals = [facts[key].casefold() for key in found if names[key]]
    if not ending.value and len(set(individuals)) > len(set(filter(None, names.values()))):
        return []
    for who in dict.fromkeys(filter(None, names.values())):
        found += [
            key
            for key in (f"{kind}{who}" for kind in _COUNTED)
            if key in facts and key not in found and _SINGULAR.match(facts[key])
        ]
    for who in [key.partition("_")[2] for key in found if key.startswith(_COUNTED)]:
        found += [
            key
            for key in facts
            if key not in found and ending.value and _who(key, facts[key]) == who
        ]
    return found


def _who(key: str, value: str) -> str:
    """`dog` for the keys `dog_name` and, where Rex is the value, `dog_rex`; else empty."""
    if key in _OWN_NAMES:
        return ""
    who, _, rest = key.partition("_")
    named = rest == "name" or rest == "_".join(_WORD.findall(value.casefold()))
    return who if named and rest else ""


def _matches(pattern: str, key: str) -> bool:
    if "*" in pattern:
        return fnmatchcase(key, pattern) and key not in _OWN_NAMES
    if pattern == key:
        return True
    kind = next((kind for kind in _TOPICAL if pattern.startswith(kind)), None)
    return kind is not None and key.startswith(kind) and _is_like(pattern, key)


def _is_like(word: str, other: str) -> bool:
    """Whether two words differ only by marks and a short ending, such as `nut` and `nuts`."""
    short, long = sorted((_without_marks(word), _without_marks(other)), key=len)
    return long.startswith(short) and len(long) - len(short) <= 2


def _without_marks(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in plain if not unicodedata.category(letter).startswith("M"))


def _agrees(key: str, value: str, known: str, *, is_named: bool) -> bool:
    """Whether a value that was denied is the one that is known of `key`. `is_named`: the denial
    names the key.
    """
    kind = next((kind for kind in _TOPICAL if key.startswith(kind)), "")
    if kind and not is_named:
        return _is_like(key.removeprefix(kind), "_".join(_WORD.findall(value.casefold())))
    if key.startswith("opinion_of_"):
        return value.startswith(_AVERSE) == known.startswith(_AVERSE)
    if key.startswith(_TOPICAL):
        return True
    if key.startswith(_COUNTED) and _SINGULAR.match(value):
        return True
    value, known = (_ARTICLE.sub("", text.casefold(), count=1) for text in (value, known))
    denied, held = (tuple(_WORD.findall(text)) for text in (value, known))
    short, long = sorted((denied, held), key=len)
    size = len(short)
    return size > 0 and short in (long[:size], long[-size:])
