"""How far a value goes: names, places, phrases, lists, dates. Nothing where it is not sure."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory.extraction.languages.table import Language, Reader

MAX_CHARACTERS = 100
_TOKEN = re.compile(r"[^\s,:;!?()\"–—/]+|[,:;!?()\"–—/]")
_PUNCTUATION = frozenset(',:;!?()"–—/-')
_NOT_NAMES = frozenset(("i", "i'm", "i'll", "i've", "i'd", "im"))


@dataclass(frozen=True, slots=True)
class Rest:
    """What follows an opening. `is_casual`: the user writes all in lower case, names too."""

    text: str
    language: Language
    is_casual: bool = False

    def tokens(self) -> list[str]:
        return _TOKEN.findall(self.text)


def read(reader: Reader, rest: Rest) -> list[str]:
    """The values at the start of `rest`: mostly one, none where what is there is none."""
    return [value for value in _READERS[reader](rest) if len(value) <= MAX_CHARACTERS]


def _name(rest: Rest) -> list[str]:
    tokens = rest.tokens()
    found = _capitalised(tokens, rest.language.particles)
    if not found and rest.is_casual:
        found = _in_lower_case(tokens, rest.language, most=2)
    own = [word for word in found if _key(word) not in rest.language.particles]
    if not found or len(own) > 4 or _key(found[0]) in rest.language.never_names:
        return []
    name, _, _ = " ".join(found).rstrip(".'").partition("'s")
    return [name]


def _place(rest: Rest) -> list[str]:
    tokens = rest.tokens()
    article = tokens[:1] if tokens and _key(tokens[0]) in rest.language.definite else []
    tokens = tokens[len(article) :]
    found = _capitalised(tokens, _within_places(rest.language))
    if not found and rest.is_casual and not article:
        found = _in_lower_case(tokens, rest.language, most=3)
    if not found or len(found) > 5 or _key(found[0]) in rest.language.never_places:
        return []
    region = _region(tokens[len(found) :], rest.language)
    return [" ".join(article + found).rstrip(".'") + region]


def _region(tokens: Sequence[str], language: Language) -> str:
    """`, Oregon` where that is all that comes before the next break."""
    if tokens[:1] != [","]:
        return ""
    found = _capitalised(tokens[1:], _within_places(language))
    following = tokens[1 + len(found) : 2 + len(found)]
    is_whole = not following or following[0] in _PUNCTUATION
    if not found or len(found) > 3 or not is_whole or _key(found[0]) in language.never_places:
        return ""
    return ", " + " ".join(found).rstrip(".'")


def _within_places(language: Language) -> frozenset[str]:
    return language.particles | language.place_particles


def _capitalised(tokens: Sequence[str], particles: frozenset[str]) -> list[str]:
    """The words from the start on that are written like a name's."""
    found: list[str] = []
    for token in tokens:
        if not (_is_like_a_name(token) or (found and _key(token) in particles)):
            break
        found.append(token)
    while found and _key(found[-1]) in particles and not _is_like_a_name(found[-1]):
        found.pop()
    return found


def _is_like_a_name(token: str) -> bool:
    first = token[0]
    # scripts without case have no small letters either; a quotation counts as a name
    is_large = first.isalpha() and not first.islower()
    return (is_large or "\ue000" <= first <= "\uf8ff") and token.lower() not in _NOT_NAMES


def _in_lower_case(tokens: Sequence[str], language: Language, *, most: int) -> list[str]:
    ends = language.cuts | language.ands | language.prepositions | language.trailing
    found: list[str] = []
    for token in tokens:
        word = _key(token)
        if token in _PUNCTUATION or word in ends:
            break
        if not word.replace("-", "").isalpha() or word in language.vague | language.no_start:
            return []
        found.append(token)
    return found if len(found) <= most else []


def _phrase(rest: Rest) -> list[str]:
    return _phrase_of(rest, most=6)


def _title(rest: Rest) -> list[str]:
    """A phrase, which may be “The Beatles” or as long as the name of a book."""
    tokens = rest.tokens()
    if tokens and _key(tokens[0]) in rest.language.articles:
        article, *tokens = tokens
        name = _capitalised(tokens, _within_places(rest.language))
        return [" ".join([article, *name])] if name else []
    name = _capitalised(tokens, _within_places(rest.language))
    if len(name) > 6:
        return [" ".join(name)]
    return _phrase(rest)


def _role(rest: Rest) -> list[str]:
    """A phrase that ends before “at Siemens” and “in Berlin”."""
    return _phrase_of(rest, most=5, until=rest.language.prepositions)


def _phrase_of(rest: Rest, *, most: int, until: frozenset[str] = frozenset()) -> list[str]:
    language = rest.language
    found: list[str] = []
    tokens = rest.tokens()
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        word = _key(token)
        if token in _PUNCTUATION or word in language.cuts | until:
            break
        if word in language.ands and (not following or _key(following) in language.resumes):
            break
        if word in language.vague:
            return []
        found.append(token)
    while found and _key(found[-1]) in language.trailing:
        found.pop()
    if not found or len(found) > most or _key(found[0]) in language.no_start | language.articles:
        return []
    return [" ".join(found).rstrip(".'")]


def _employer(rest: Rest) -> list[str]:
    tokens = rest.tokens()
    found = _capitalised(tokens, _within_places(rest.language))
    if found and _key(found[0]) not in rest.language.never_places:
        return [" ".join(found).rstrip(".'")] if len(found) <= 5 else []
    if len(tokens) > 1 and _key(tokens[0]) in rest.language.articles - rest.language.definite:
        kind = _phrase_of(Rest(" ".join(tokens[1:]), rest.language), most=3)
        return [f"{tokens[0]} {value}" for value in kind]
    return []


def _rest(rest: Rest) -> list[str]:
    """All of it, for what was asked to be remembered."""
    return [rest.text.strip(" ,.-")] if rest.text.strip(" ,.-") else []


def _list(rest: Rest) -> list[str]:
    """`peanuts, shellfish and cats`: as long as the parts are as short as names of things."""
    found: list[str] = []
    for part in rest.language.lists.split(rest.text):
        values = _phrase_of(Rest(part, rest.language), most=4 if not found else 3)
        if not values:
            break
        found += values
        if not part.strip().startswith(values[0]) or len(part.strip()) > len(values[0]):
            break
    return found


def _languages(rest: Rest) -> list[str]:
    found: list[str] = []
    for part in rest.language.lists.split(rest.text):
        known = [word for word in _TOKEN.findall(part)[:4] if _key(word) in rest.language.languages]
        if not known:
            break
        found += known[:1]
    return found


def _date(rest: Rest) -> list[str]:
    match = rest.language.date.match(rest.text)
    return [match[0].strip()] if match else []


def _key(token: str) -> str:
    return token.lower().strip(".'")


def each_word(text: str) -> Iterator[str]:
    """The words of `text` in lower case."""
    return (_key(token) for token in _TOKEN.findall(text) if token not in _PUNCTUATION)


_READERS: dict[str, Callable[[Rest], list[str]]] = {
    "name": _name,
    "place": _place,
    "phrase": _phrase,
    "role": _role,
    "title": _title,
    "list": _list,
    "languages": _languages,
    "date": _date,
    "employer": _employer,
    "rest": _rest,
}
