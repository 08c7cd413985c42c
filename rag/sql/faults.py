"""What is wrong with a statement, in words that let a model or a person mend it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from common.wording import shortened
from documents.catalogue.words import words_of

Kind = Literal["syntax", "refused", "table", "column", "ambiguous", "alias"]

MOST_NAMES = 12
_NEAREST = 3
_ALIKE = 0.5
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """`name` is the table or column at fault, as it is written; empty where it is no name's."""

    kind: Kind
    name: str
    message: str

    def __str__(self) -> str:
        return self.message


def shown(name: str) -> str:
    """A name within a sentence."""
    return f"“{shortened(name, _SHOWN)}”"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Names that are spelt alike or made of the same words, the nearest first."""
    forms: dict[str, str] = {}
    for each in known:
        forms.setdefault(each.casefold(), each)
        forms.setdefault(words_of(each), each)
    asked = dict.fromkeys([name.casefold(), words_of(name)])
    close = [
        forms[form]
        for each in asked
        for form in get_close_matches(each, forms, n=_NEAREST, cutoff=_ALIKE)
    ]
    parts = set(words_of(name).split())
    sharing = [each for form, each in forms.items() if parts & set(form.split())]
    return list(dict.fromkeys([*close, *sharing]))[:_NEAREST]


def hint(name: str, known: Sequence[str], *, what: str = "It has") -> str:
    """What else `name` may be meant to be: a name that differs in its capitals only, the nearest
    ones, or all that there are, where none is near."""
    if same := [each for each in known if each.casefold() == name.casefold()]:
        return f'Write it "{shortened(same[0], _SHOWN)}", with the double quotes.'
    if close := nearest(name, known):
        return f"Nearest: {', '.join(map(_quoted, close))}."
    names = ", ".join(map(_quoted, known[:MOST_NAMES]))
    more = ", …" if len(known) > MOST_NAMES else ""
    return f"{what}: {names}{more}." if known else ""


def _quoted(name: str) -> str:
    return shortened(name, _SHOWN)
