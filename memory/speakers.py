"""Who speaks in rows like `Anna: I moved to Bergen.`, and whom of them a question names. Pure."""

import re
from collections import Counter
from collections.abc import Mapping

#: Fewer rows may begin with the same words and a colon without its being somebody's name.
LEAST_TURNS = 3

_WORD = re.compile(r"[^\W_]+")
_SPEAKER = re.compile(r"^[ \t]*([^\W\d_][^:\n]{0,39}):[ \t]", re.MULTILINE)


def named_speakers(question: str, texts: Mapping[int, str]) -> dict[int, int]:
    """1 for texts in which somebody speaks whom the question names, −1 for those in which only
    others do. Texts in which nobody speaks are not among them; nothing is where nobody is named."""
    spoken = {
        row: {name.casefold().strip() for name in _SPEAKER.findall(text)}
        for row, text in texts.items()
        if ":" in text
    }
    turns = Counter(name for names in spoken.values() for name in names)
    known = {name for name, times in turns.items() if times >= LEAST_TURNS}
    words = set(_WORD.findall(question.casefold()))
    named = {name for name in known if _longest_word(name) in words}
    if not named:
        return {}
    return {row: 1 if names & named else -1 for row, names in spoken.items() if names & known}


def _longest_word(name: str) -> str:
    """`Dr. Smith` is asked about as Smith."""
    return max(_WORD.findall(name), key=len, default="")
