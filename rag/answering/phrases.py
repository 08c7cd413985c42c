"""The fixed sentences the site itself says (refusals, greetings), by language, small-talk
detection, and words that ask, from `phrases.toml`. Begin with `say` and `small_talk`. Without
Django.
"""

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rag.events import Confidence, SearchedScope

Sentence = Literal[
    "not_found",
    "missing",
    "searched",
    "nothing_to_search",
    "collections",
    "documents",
    "try",
    "try_without_filter",
    "try_everywhere",
    "quotes",
    "unsure",
    "readings",
    "differ",
    "remembered",
    "greeting",
    "thanks",
    "farewell",
    "self",
]

#: Used for languages without sentences of their own.
FALLBACK_LANGUAGE = "en"

with (Path(__file__).parent / "phrases.toml").open("rb") as _file:
    _PHRASES: dict[str, Any] = tomllib.load(_file)
_SENTENCES: Mapping[str, Mapping[Sentence, str]] = _PHRASES["sentences"]
LANGUAGES = tuple(_SENTENCES)
#: Words that ask, of all languages.
QUESTION_WORDS = frozenset(" ".join(_PHRASES["question_words"].values()).split())
_CODES = {"english": "en", "german": "de", "spanish": "es", "french": "fr", "italian": "it"}
_CODES |= {"portuguese": "pt", "dutch": "nl"}


def language_code(language: str) -> str:
    """The code in LANGUAGES of a language, which may be a name such as `German` or a code such as
    `de` or `de-AT`; "" for any other."""
    name = language.lower()
    code = _CODES.get(name) or name[: 2 if re.fullmatch(r"\w\w([_-]\w+)?", name) else 0]
    return code if code in _SENTENCES else ""


def say(sentence: Sentence, language: str = "") -> str:
    """The sentence in `language`, an ISO code or a name; English if there is none."""
    return _SENTENCES[language_code(language) or FALLBACK_LANGUAGE][sentence]


def not_found_text(language: str = "") -> str:
    """The refusal: the sources do not contain an answer."""
    return say("not_found", language)


def missing_text(names: Sequence[str], language: str = "") -> str:
    """The sentence that nothing found mentions these names, which has them in quotation marks."""
    return say("missing", language).format(names=", ".join(f"“{name}”" for name in names))


#: Collections that a refusal names; of more it gives the number only.
MAX_NAMED_COLLECTIONS = 5
#: Between the thousands of a number; a full stop in all other languages.
_THOUSANDS = {"en": ",", "fr": "\u202f"}


def refusal_help(searched: SearchedScope, language: str = "") -> str:
    """The paragraph behind a refusal: what was searched, and what to try."""
    code = language_code(language) or FALLBACK_LANGUAGE

    def counted(noun: Sentence, number: int) -> str:
        one, many = say(noun, code).split("|")
        grouped = f"{number:,}".replace(",", _THOUSANDS.get(code, "."))
        return (one if number == 1 else many).format(n=grouped)

    if searched.documents:
        names = list(searched.collections.values())
        found = say("searched", code).format(
            collections=counted("collections", len(names)),
            documents=counted("documents", searched.documents),
        )
        named = f" ({', '.join(names)})" if len(names) <= MAX_NAMED_COLLECTIONS else ""
        sentences = [f"{found}{named}."]
    else:
        sentences = [say("nothing_to_search", code)]
    sentences.append(say("try", code))
    if searched.is_limited:
        sentences.append(say("try_everywhere", code))
    if searched.is_filtered:
        sentences.append(say("try_without_filter", code))
    return " ".join(sentences)


def is_refusal(text: str) -> bool:
    """Whether an answer begins with a refusal sentence, which models are told to use."""
    return _begins_with("not_found", text)


def stated_confidence(text: str) -> Confidence:
    """The confidence that an answer states by how it begins."""
    if is_refusal(text):
        return "none"
    return "low" if _begins_with("unsure", text) else "high"


def _begins_with(sentence: Sentence, text: str) -> bool:
    """Whether a text begins with the sentence up to its colon, in any language."""
    normalized = " ".join(text.split()).casefold()
    return any(
        normalized.startswith(sentences[sentence].split(":")[0].casefold())
        for sentences in _SENTENCES.values()
    )


#: Longer messages are never small talk.
MAX_SMALL_TALK_CHARACTERS = 80

_FILLER = (
    "there|all|everyone|everybody|team|friend|again|so much|a lot|very much|mate|bot|assistant"
    "|zusammen|leute|amigo|amigos|tous|tutti|and|und|y|et|e|en|you|today|dear|please|very|then|for"
    "|your|the|help|answer|information|info|that|this|it|is|was|really|so|thanks|ist|das"
)
#: One pattern per phrase, so that the longest match can be taken.
_PATTERNS = [
    (kind, language, re.compile(rf"(?:{words})(?=$|\s)"))
    for kind, by_language in _PHRASES["small_talk"].items()
    for language, all_words in by_language.items()
    for words in re.split(r"\|(?![^(]*\))", all_words)
]
_FILLER_WORD = re.compile(rf"(?:{_FILLER})(?=$|\s)")
_PUNCTUATION = re.compile(r"[^\w\s'’-]+")


def small_talk(message: str) -> str | None:
    """The reply to a greeting, thanks or farewell, in the language of the message; None for any
    other message."""
    normalized = _PUNCTUATION.sub(" ", unicodedata.normalize("NFC", message).casefold()).replace(
        "’", "'"
    )
    normalized = " ".join(normalized.split())
    if not normalized or len(message) > MAX_SMALL_TALK_CHARACTERS:
        return None
    first: tuple[Sentence, str] | None = None
    rest = normalized
    while rest:
        found = [
            (match.end(), kind, spoken)
            for kind, spoken, pattern in _PATTERNS
            if (match := pattern.match(rest))
        ]
        if found:
            end, kind, spoken = max(found, key=lambda each: each[0])
            if first is None or (first[0] == "greeting" and kind == "self"):
                first = (kind, spoken)
        elif first and (filler := _FILLER_WORD.match(rest)):
            end = filler.end()
        else:
            return None
        rest = rest[end:].lstrip()
    return say(first[0], first[1]) if first else None
