"""The language of a question, also of one that is too short for `detect_language`: by its script
and its small words, which are in `question_words.toml`. They also correct what the letters of a
document's text seem to say (`text_language`).
"""

import re
import tomllib
from collections import Counter
from functools import cache, lru_cache
from pathlib import Path

from common.text import HAN, KANA
from documents.languages import SAMPLE_CHARACTERS, SCRIPTS, detect_language

with (Path(__file__).parent / "question_words.toml").open("rb") as _file:
    _WORDS: dict[str, dict[str, str]] = tomllib.load(_file)
_SMALL_WORDS = {language: frozenset(words.split()) for language, words in _WORDS["small"].items()}
#: In how many languages a word is a small word: `de` tells less than `wie`.
_COMMON = Counter(word for words in _SMALL_WORDS.values() for word in words)
_MARKS = {language: re.compile(marks) for language, marks in _WORDS["marks"].items()}
_WORD = re.compile(r"\w+(?:['’.-]\w+|,\d+)*")

#: Evidence that a language needs: one word that no other language here has, and a lead.
MIN_EVIDENCE, MIN_LEAD = 0.9, 0.3


def question_language(question: str, *, default: str = "") -> str:
    """ISO code of the question's language, `default` where nothing tells, as for a few nouns."""
    return _language_of(question) or default


def text_language(text: str, *, default: str = "") -> str:
    """ISO code of the language of a document's text. `default`, the usual language, where nothing
    tells or where the small words are of that one: names mislead the statistics of letters."""
    code = detect_language(text, default=default)
    if code != default and language_of_small_words(text[:SAMPLE_CHARACTERS]) == default:
        return default
    return code


@lru_cache(maxsize=256)  # the search, the answer and the prompt ask for that of one question
def _language_of(question: str) -> str:
    return (
        language_of_script(question)
        or detect_language(question)
        or language_of_small_words(question)
    )


def language_of_small_words(question: str) -> str:
    """The language whose small words and letters the question has, or empty. Loads no model."""
    text = question.casefold()
    evidence = {
        language: sum(1 / _COMMON[word] for word in _WORD.findall(text) if word in words)
        + bool(language in _MARKS and _MARKS[language].search(text))
        for language, words in _SMALL_WORDS.items()
    }
    best, second = sorted(evidence, key=lambda language: -evidence[language])[:2]
    is_clear = evidence[best] >= MIN_EVIDENCE and evidence[best] - evidence[second] >= MIN_LEAD
    return best if is_clear else ""


def language_of_script(question: str) -> str:
    """The language whose script most of the letters belong to, however few; empty for Latin ones.
    Of a script that several use, the one with the most speakers, unless its letters tell."""
    if question.isascii():
        return ""
    text = question.casefold()
    # Vowel signs of Devanagari and others are no letters by `isalpha`, and match the patterns.
    most = sum(map(str.isalpha, text)) / 2
    counts = {code: len(script.findall(text)) for code, script in _scripts().items()}
    code = max(counts, key=lambda code: counts[code])
    if counts[code] <= most:
        return ""
    if code == "ru":
        others = _WORDS["cyrillic"].items()
        return next((other for other, marks in others if re.search(marks, text)), "ru")
    return "ja" if code == "zh" and re.search(f"[{KANA}]", text) else code


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    of_several = {
        "zh": f"[{HAN}{KANA}]",
        "ru": r"[\u0400-\u04ff]",
        "ar": r"[\u0600-\u06ff]",
        "he": r"[\u0590-\u05ff]",
        "hi": r"[\u0900-\u097f]",
    }
    return {code: re.compile(script) for code, script in {**SCRIPTS, **of_several}.items()}
