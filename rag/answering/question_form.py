"""What the wording of a question tells: how many sources it needs, and which names in it no source
has. Words by language are in `question_words.toml`.
"""

import re
import tomllib
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from rag.events import Passage

with (Path(__file__).parent / "question_words.toml").open("rb") as _file:
    _WORDS: dict[str, dict[str, str]] = tomllib.load(_file)
_BROAD, _NARROW = (
    {
        language: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
        for language, words in _WORDS[kind].items()
    }
    for kind in ("broad", "narrow")
)
_WORD = re.compile(r"\w+(?:['’.-]\w+|,\d+)*")

#: Longer questions say more than the fact that they ask for.
MAX_NARROW_WORDS = 14
MIN_SOURCES = 3
#: Sources of a question for one fact, and of a broad one, as a share of the usual number.
NARROW_SHARE, BROAD_SHARE = 0.5, 2.0


def source_count(question: str, *, language: str, usual: int) -> int:
    """How many sources a chat model is given: half of the `usual` number for one fact (a number, a
    date, a person), twice as many for a comparison, a list or a summary."""
    code = language if language in _BROAD else "en"
    if _BROAD[code].search(question):
        return round(usual * BROAD_SHARE)
    if _NARROW[code].search(question) and len(_WORD.findall(question)) <= MAX_NARROW_WORDS:
        return min(usual, max(MIN_SOURCES, round(usual * NARROW_SHARE)))
    return usual


#: So many names are said to be missing.
MAX_MISSING = 4
#: Languages that write all nouns with a capital.
_CAPITAL_NOUNS = frozenset({"de", "lb"})
_QUOTED = re.compile(r"[“”„«»\"]([^“”„«»\"]{2,60})[“”„«»\"]")
_SENTENCE_START = re.compile(r"(?:^|[.!?:…¿¡]\s*)[^\w]*$")
_ENDING = re.compile(r"(?:['’]s|['’]|s|n|en|es)$")


def unmentioned_names(
    question: str, passages: Sequence[Passage], *, language: str
) -> tuple[str, ...]:
    """Names, codes, numbers of three digits and quoted phrases of the question that none of the
    passages has, nor its title or headings, as they are written in the question.

    A capital makes a name only where the question has the language of the passages: of another one
    a word may be there in translation, while `K-17` and `PostgreSQL` are not translated.
    """
    if not passages:
        return ()
    sources = _comparable(
        "\n".join(f"{each.title}\n{' '.join(each.heading_path)}\n{each.text}" for each in passages)
    )
    words = list(_WORD.finditer(question))
    same_language = any(each.language[:2] == language[:2] for each in passages)
    is_title = sum(word[0][0].isupper() for word in words) > len(words) / 2
    trusts_capitals = same_language and not is_title and language[:2] not in _CAPITAL_NOUNS
    named = [found[1].strip() for found in _QUOTED.finditer(question)]
    for word in words:
        token = word[0]
        starts = bool(_SENTENCE_START.search(question[: word.start()]))
        is_code = any(map(str.isdigit, token)) and len(token) > 2
        has_capital = token[0].isupper() and not starts and len(token) > 1
        has_inner_capital = not is_title and any(letter.isupper() for letter in token[1:])
        if is_code or has_inner_capital or (has_capital and trusts_capitals):
            named.append(token)
    missing = [name for name in named if _stem(name) not in sources]
    # A word of a quoted phrase that is named already adds nothing.
    unique = [
        name for at, name in enumerate(missing) if not any(name in other for other in missing[:at])
    ]
    return tuple(unique[:MAX_MISSING])


def _stem(name: str) -> str:
    compared = _comparable(name)
    return _ENDING.sub("", compared) if len(compared) > 4 else compared


def _comparable(text: str) -> str:
    """In small letters without accents, white space single, numbers without grouping."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    plain = " ".join("".join(each for each in letters if not unicodedata.combining(each)).split())
    return re.sub(r"(?<=\d)[.,](?=\d{3}(?!\d))", "", plain)
