"""Whether two sentences that answer one question state different numbers or dates for the same
thing. Begin with `contradicts`. Without Django.
"""

import re
from collections import defaultdict

from rag.answering.groundedness import content_stems, names_and_numbers, number_value, word_stem

#: Stems that two sentences must share, as a share of those of both: fewer, and they are about
#: different things.
MIN_SHARED_STEMS = 0.3
#: Words of the question that both must contain, with their headings.
MIN_QUESTION_STEMS = 2

_TOKEN = re.compile(r"\d+(?:[.,:/'\u00a0\u202f-]\d+)*|[^\W\d_]+|[€$£¥%]")


def contradicts(
    question: str, first: str, second: str, *, headings: tuple[str, str], language: str
) -> bool:
    """Whether `first` and `second`, of documents with these `headings`, say the same with another
    number: both contain the same words of the question, neither names something that the other
    does not while the other does so too, and beside an equal word stand different numbers."""
    stems = content_stems(first), content_stems(second)
    shared = len(stems[0] & stems[1]) / max(len(stems[0] | stems[1]), 1)
    if shared < MIN_SHARED_STEMS:
        return False
    asked = content_stems(question, content_only=True)
    held = [
        asked & (of | content_stems(heading)) for of, heading in zip(stems, headings, strict=True)
    ]
    if held[0] != held[1] or len(held[0]) < MIN_QUESTION_STEMS:
        return False
    names = [
        {name for name in names_and_numbers(text, language=language) if not name[0].isdigit()}
        for text in (first, second)
    ]
    if names[0] - stems[1] and names[1] - stems[0]:
        return False
    ours, theirs = _numbers_by_neighbour(first), _numbers_by_neighbour(second)
    return any(not ours[word] & theirs[word] for word in ours.keys() & theirs.keys())


def _numbers_by_neighbour(text: str) -> dict[str, set[str]]:
    """The numbers in a text by the stem of the word or sign right before and after each; before
    and after are told apart."""
    tokens = _TOKEN.findall(text)
    found: dict[str, set[str]] = defaultdict(set)
    for place, token in enumerate(tokens):
        number = number_value(token)
        if number is None:
            continue
        if place and number_value(tokens[place - 1]) is None:
            found[f"{word_stem(tokens[place - 1])} "].add(number)
        if place + 1 < len(tokens) and number_value(tokens[place + 1]) is None:
            found[f" {word_stem(tokens[place + 1])}"].add(number)
    return found
