"""The query language of the search box: words, “phrases”, -exclusions, prefix*. Pure."""

import re
from dataclasses import dataclass

from common.spaceless import is_spaceless, letters_alone, number_of_words

MAX_QUERY_CHARACTERS = 4000

_TOKEN = re.compile(
    r"""(?: (?P<minus>(?<!\S)-)        # an exclusion starts a word: co-operation has none
          | (?P<plus>(?<!\S)\+)(?=["“”„]) )?
        (?: ["“”„](?P<phrase>[^"“”„]*)["“”„]   # a phrase in straight or curly quotes
          | (?P<word>[^\s"“”„]+) )""",
    re.VERBOSE,
)

#: A sentence names things in quotation marks, search words demand them. Measured: 31 of 493
#: questions on database tables name a value that no table holds; demanding it cost 0.05 nDCG@10.
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")
MOST_WORDS_BESIDE = 5


class QueryError(ValueError):
    """A query in which there is nothing to search for."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    `text` is what is meant, without operators: the words that BM25 scores and the model embeds.
    `phrases` must and `excluded` must not stand in a hit, whichever arm found it. `named` are
    phrases that a sentence only names: words like others. `prefixes` are the words that ended in
    `*`, and letters alone of a script without spaces, where pairs of letters begin with them.
    """

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


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
    demanded: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    prefixes: list[str] = []
    beside = 0
    for token in _TOKEN.finditer(raw):
        phrase, word = token["phrase"], token["word"]
        said = (phrase if phrase is not None else word).strip()
        if not any(map(str.isalnum, said)) or said == "OR":
            continue
        if token["minus"]:
            excluded.append(said)
            continue
        if phrase is not None:
            (demanded if token["plus"] else phrases).append(said)
            words.append(said)
            continue
        beside += number_of_words(said)
        if word.endswith("*") and word.rstrip("*").isalnum():
            # where no space ends a word, every word is found by its beginning
            (words if is_spaceless(word) else prefixes).append(word.rstrip("*"))
        else:
            words.append(said)
    if not (words or prefixes):
        raise QueryError(_nothing_to_search(raw, excluded))
    is_sentence = (beside > 0 and raw.endswith(_SENTENCE_ENDS)) or beside > MOST_WORDS_BESIDE
    text = " ".join([*words, *prefixes])
    return Query(
        text=text,
        phrases=(*demanded, *(() if is_sentence else phrases)),
        excluded=tuple(excluded),
        prefixes=(*prefixes, *letters_alone(text)),
        named=tuple(phrases) if is_sentence else (),
    )


def _nothing_to_search(raw: str, excluded: list[str]) -> str:
    if not raw:
        return "Type a question or some words."
    if excluded:
        return "The query only says what must not be found. Add a word that must."
    return "The query holds no letter and no digit. Type a question or some words."
