"""Follow-up questions by rules: which lean on what was said before, and what they mean. Pure."""

import re
from collections.abc import Sequence

from graph.extraction.functionwords import FUNCTION_WORDS
from graph.extraction.names import names
from rag.answering.leaning import ASKS_MORE, CONTINUES, GOES_ON, language_of, pronouns_of

#: A question that begins with `and` and has more words stands for itself.
FEW_WORDS = 4
#: What a question leans on is looked for in as many turns.
MOST_TURNS = 6

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_END = re.compile(r"[\s?？.!…]+$")
_PREPOSITION = re.compile(
    r"(in|on|at|for|of|by|from|during|with|to|under|about|after|before|since|without"
    r"|im|am|bei|für|von|aus|mit|nach|vor|seit|ohne|über|en|de|por|para|con|sin|desde|durante"
    r"|dans|avec|pour|sans|depuis|à|au|aux|di|nel|nella|per|da|em|no|na|com|sem|voor|van|met)\s+(?=\S)",
    re.IGNORECASE,
)
_POSSESSIVE = frozenset(("its", "their", "his", "her"))
_PERSON = frozenset(("he", "she", "him", "his", "her", "hers"))
_WHO = re.compile(r"\b(?:who|whom|whose|wer|wem|wen|quién|qui|chi|quem)\b", re.IGNORECASE)
_NOUN_PHRASE = re.compile(
    r"\b(?:the|a|an|each|every|all|any|der|die|das|el|la|los|las|le|les|il|lo|gli|o|os|as|de|het)\s+",
    re.IGNORECASE,
)

#: A number, or capitalised words.
_VALUE = r"(?:\d[\d,.]*|[A-ZÀ-Þ]\w*(?:\s+[A-ZÀ-Þ]\w*)*)"
#: What quotations and citations put around names.
_NO_NAME = re.compile(r"[“”„«»\"]|\[\d+\]")

#: A question, and what was answered to it.
Turn = tuple[str, str]


def leans(question: str, *, language: str = "") -> bool:
    """Whether it means nothing without what was said before. `language` is an ISO code, told by
    its small words where it is not given."""
    language = language or language_of(question)
    said = _END.sub("", question.strip())
    if ASKS_MORE.fullmatch(said) or GOES_ON.match(said):
        return True
    words = _WORD.findall(said)
    follows = CONTINUES.match(said)
    if follows and len(words) - len(_WORD.findall(follows[0])) <= FEW_WORDS:
        return True
    if _PREPOSITION.match(said) and len(words) <= FEW_WORDS:
        return True
    pronoun = pronouns_of(language).search(said)
    return pronoun is not None and not _has_antecedent(said[: pronoun.start()])


def completed(question: str, turns: Sequence[Turn], *, language: str = "") -> str:
    """The question with what it leans on; `turns` are those before, oldest first."""
    before, reply = "", ""
    for asked, answered in turns[-MOST_TURNS:]:
        before, reply = _complete(asked, before, reply, language), answered
    return _complete(question, before, reply, language)


def _complete(question: str, before: str, reply: str, language: str) -> str:
    question = question.strip()
    language = language or language_of(question)
    if not before or not leans(question, language=language):
        return question
    said = _END.sub("", question)
    if ASKS_MORE.fullmatch(said):
        return f"{before} {question}"
    follows = GOES_ON.match(said) or CONTINUES.match(said)
    rest = said[follows.end() :].strip(" ,") if follows else said
    if ASKS_MORE.fullmatch(rest):
        return f"{before} {rest}?"
    topic = _topic(before, reply, _pronoun(rest, language))
    if pronoun := pronouns_of(language).search(rest):
        return _with_topic(rest, pronoun, topic, english=language[:2] == "en") + "?"
    return _in_place_of(before, rest) or f"{_END.sub('', before)} {rest}?"


def _pronoun(said: str, language: str) -> str:
    found = pronouns_of(language).search(said)
    return found[0].casefold() if found else ""


def _has_antecedent(before: str) -> bool:
    """Whether something is named before a pronoun that it may stand for."""
    if any(name.start > 0 for name in names(before)):
        return True
    if re.search(r"\b(?:of|von|de|di)\s*$", before, re.IGNORECASE):
        return False
    return any(_telling(before[phrase.end() :]) for phrase in _NOUN_PHRASE.finditer(before))


def _telling(text: str) -> list[str]:
    """Its words that name something."""
    return [word for word in _WORD.findall(text) if word.casefold() not in FUNCTION_WORDS]


def _topic(before: str, reply: str, pronoun: str) -> str:
    """What a pronoun stands for: a person of the answer where it was asked who, else the first
    thing that the question names, else its telling words."""
    asked = _whole_names(before)
    if pronoun in _PERSON and _WHO.search(before):
        fresh = [
            name
            for name in _whole_names(_NO_NAME.sub(" ", reply))
            if name.casefold() not in before.casefold()
        ]
        asked = [*fresh[:1], *asked]
    if asked:
        return asked[0]
    for phrase in _NOUN_PHRASE.finditer(before):
        words = []
        for word in _WORD.findall(before[phrase.end() :]):
            if word.casefold() in FUNCTION_WORDS:
                break
            words.append(word)
        if words:
            return phrase[0] + " ".join(words)
    return " ".join(_telling(before))


def _whole_names(text: str) -> list[str]:
    """The names of a text that are no part of another one, in their order."""
    spots = [(spot.start, spot.end) for spot in names(text) if spot.start > 0 or " " in spot.name]
    whole = [
        span
        for span in spots
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for other in spots)
    ]
    return [_with_article(text, start, end) for start, end in sorted(set(whole))]


def _with_article(text: str, start: int, end: int) -> str:
    article = re.search(r"\b(?:the|der|die|das|el|la|le|il)\s$", text[:start], re.IGNORECASE)
    return text[article.start() if article else start : end]


def _with_topic(said: str, pronoun: re.Match[str], topic: str, *, english: bool) -> str:
    """In English the topic stands where the pronoun did; elsewhere, where endings would have to
    change, behind the question."""
    if not english or pronoun[0].casefold() in ("there", "then"):
        return f"{said} {topic}"
    if pronoun[0].casefold() in _POSSESSIVE and re.match(r"\s+\w", said[pronoun.end() :]):
        topic += "'s"
    elif pronoun[0].casefold() in ("this", "these", "those") and re.match(
        r"\s+(?!is\b|are\b|was\b|were\b|in\b|to\b)\w", said[pronoun.end() :]
    ):
        return f"{said} {topic}"
    return said[: pronoun.start()] + topic + said[pronoun.end() :]


def _in_place_of(before: str, rest: str) -> str | None:
    """The question before with `rest` where it has something of the same kind: behind the same
    preposition, or the one thing that it names."""
    preposition = _PREPOSITION.match(rest)
    named = _whole_names(before)
    spans = [(before.rfind(name), name) for name in named]
    if preposition:
        pattern = rf"\b{re.escape(preposition[1])}\s+(?:the\s+)?{_VALUE}"
        found = re.search(pattern, before)
        return before[: found.start()] + rest + before[found.end() :] if found else None
    if rest[:1].isupper() and spans:
        at, name = spans[-1]
        return before[:at] + rest + before[at + len(name) :]
    return None
