"""The query language of the search box: words, “phrases”, -exclusions, prefix*. Pure."""

import re
from dataclasses import dataclass

from common.text import (
    estimated_word_count,
    has_emoji,
    has_unspaced_script,
    single_characters,
)
from common.translation import format_number, gettext

MAX_QUERY_CHARACTERS = 4000

_TOKEN = re.compile(
    r"""(?: (?P<minus>(?<!\S)-)        # an exclusion starts a word: co-operation has none
          | (?P<plus>(?<!\S)\+)(?=["“”„]) )?
        (?: ["“”„](?P<phrase>[^"“”„]*)["“”„]   # a phrase in straight or curly quotes
          | (?P<word>[^\s"“”„]+) )""",
    re.VERBOSE,
)

#: In a sentence, quotation marks name something; among search words they require a phrase.
#: Measured: 31 of 493 questions on database tables quote a value that no table holds; requiring it
#: cost 0.05 nDCG@10.
_SENTENCE_ENDS = (".", "?", "!", "。", "？", "！")
MAX_UNQUOTED_WORDS = 5


class QueryError(ValueError):
    """A query without anything to search for."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query.

    `text` is the query without operators: scored by BM25 and embedded. `phrases` must and
    `excluded` must not occur in a hit of any arm. `named` are quotations within a sentence,
    treated as words. `prefixes` are words that ended in `*`, and single characters of CJK
    scripts, which match as prefixes of bigrams.
    """

    text: str
    phrases: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def parse_query(raw: str) -> Query:
    """Parses the search box: words, “phrases”, -exclusions, prefix*. Raises QueryError.

    Misplaced operators are ignored.
    """
    raw = raw.replace("\0", " ").strip()
    if len(raw) > MAX_QUERY_CHARACTERS:
        raise QueryError(
            gettext(
                "The query has {length} characters; {limit} are allowed. Shorten it to"
                " the essential part."
            ).format(
                length=format_number(len(raw)),
                limit=format_number(MAX_QUERY_CHARACTERS),
            )
        )
    words: list[str] = []
    demanded: list[str] = []
    phrases: list[str] = []
    excluded: list[str] = []
    prefixes: list[str] = []
    unquoted = 0
    for token in _TOKEN.finditer(raw):
        phrase, word = token["phrase"], token["word"]
        term = (phrase if phrase is not None else word).strip()
        if not (any(map(str.isalnum, term)) or has_emoji(term)) or term == "OR":
            continue
        if token["minus"]:
            excluded.append(term)
            continue
        if phrase is not None:
            (demanded if token["plus"] else phrases).append(term)
            words.append(term)
            continue
        unquoted += estimated_word_count(term)
        if word.endswith("*") and word.rstrip("*").isalnum():
            # where no space ends a word, every word is found by its beginning
            (words if has_unspaced_script(word) else prefixes).append(word.rstrip("*"))
        else:
            words.append(term)
    if not (words or prefixes):
        if not raw:
            raise QueryError(gettext("Enter a question or some words."))
        raise QueryError(
            gettext("The query only says what must not be found. Add a word that must.")
            if excluded
            else gettext("The query has no letters or digits. Enter a question or some words.")
        )
    is_sentence = (unquoted > 0 and raw.endswith(_SENTENCE_ENDS)) or unquoted > MAX_UNQUOTED_WORDS
    text = " ".join([*words, *prefixes])
    return Query(
        text=text,
        phrases=(*demanded, *(() if is_sentence else phrases)),
        excluded=tuple(excluded),
        prefixes=(*prefixes, *single_characters(text)),
        named=tuple(phrases) if is_sentence else (),
    )
