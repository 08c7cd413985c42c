"""The query language of the search box: words, “phrases”, -exclusions and prefix*. Pure."""

import re
from dataclasses import dataclass

MAX_QUERY_CHARACTERS = 4000

_TOKEN = re.compile(
    r"""(?P<minus>(?<!\S)-)?          # an exclusion starts a word: co-operation has none
        (?: ["“”„](?P<phrase>[^"“”„]*)["“”„]   # a phrase in straight or curly quotes
          | (?P<word>[^\s"“”„]+) )""",
    re.VERBOSE,
)


class QueryError(ValueError):
    """A query in which there is nothing to search for."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    `text` is what is meant, without operators: the words that BM25 scores and the model embeds.
    `phrases` must and `excluded` must not stand in a hit, whichever arm found it. `prefixes` are
    the words that ended in `*`.
    """

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()


def parse_query(raw: str) -> Query:
    """Parse what a person typed. Raises QueryError with the cure in its message.

    Anything can be typed: an operator that makes no sense where it stands is passed over.
    """
    raw = raw.replace("\0", " ").strip()
    if len(raw) > MAX_QUERY_CHARACTERS:
        raise QueryError(
            f"The query has {len(raw):,} characters; {MAX_QUERY_CHARACTERS:,} are allowed."
            " Ask with the part that matters."
        )
    words: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    prefixes: list[str] = []
    for token in _TOKEN.finditer(raw):
        phrase, word = token["phrase"], token["word"]
        said = (phrase if phrase is not None else word).strip()
        if not any(map(str.isalnum, said)) or said == "OR":
            continue
        if token["minus"]:
            excluded.append(said)
        elif phrase is not None:
            phrases.append(said)
            words.append(said)
        elif word.endswith("*") and word.rstrip("*").isalnum():
            prefixes.append(word.rstrip("*"))
        else:
            words.append(said)
    if not (words or prefixes):
        raise QueryError(_nothing_to_search(raw, excluded))
    return Query(
        text=" ".join([*words, *prefixes]),
        phrases=tuple(phrases),
        excluded=tuple(excluded),
        prefixes=tuple(prefixes),
    )


def _nothing_to_search(raw: str, excluded: list[str]) -> str:
    if not raw:
        return "Type a question or some words."
    if excluded:
        return "The query only says what must not be found. Add a word that must."
    return "The query holds no letter and no digit. Type a question or some words."
