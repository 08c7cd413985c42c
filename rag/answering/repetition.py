"""End answers that repeat themselves or do not end, as small models write them. Begin with
`AnswerBounds`. Without Django.
"""

import re
from collections import deque
from typing import Literal

from memory.injection import BYTES_PER_TOKEN

#: A loop is looked for among so many sentences.
MAX_PERIOD = 12
#: What is repeated has at least so many letters and digits, so that “Yes. Yes.” is no loop.
MIN_LOOP_CHARACTERS = 20
#: A phrase of so many characters at most is a loop where it comes so many times in a row.
MAX_PHRASE_CHARACTERS = 50
MAX_PHRASES = 8
#: Longer text without a full stop or a line break counts as a sentence.
MAX_SENTENCE_CHARACTERS = 480

_END = re.compile(r"[.!?…]+[\"'”’)\]»*_]*(?:\[[\d, -]*\])*\s|[。！？｡]+|\n")
_CITATION = re.compile(r"\[[^\]\n]*\]?")
_WORD = re.compile(r"\w+")
_LETTER = re.compile(r"[^\W\d_]")
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")


class AnswerBounds:
    """An answer's text as it comes in, up to where it repeats itself, and up to `most` tokens as
    the site estimates them (None: any number). `ended` says which of the two was reached.

    It repeats itself where the last n sentences are once more the n before them, up to MAX_PERIOD.
    A sentence that begins like one of those is held back until they differ, so that nothing of the
    repetition is shown. Within a sentence, a phrase is repeated that comes MAX_PHRASES times in a
    row. Blocks of code are not examined.
    """

    def __init__(self, most: int | None) -> None:
        self.ended: Literal["", "loop", "length"] = ""
        self._bytes_left = None if most is None else most * BYTES_PER_TOKEN
        self._said: deque[str] = deque(maxlen=MAX_PERIOD)
        # By period: how many sentences were the same as the one a period earlier, without a break.
        self._runs = [0] * (MAX_PERIOD + 1)
        self._held = ""  # complete sentences that are not shown yet
        self._sentence = ""  # the one that is being written
        self._shown = 0  # characters of it
        self._is_code = False

    def feed(self, piece: str) -> str:
        """What of the text up to `piece` can be shown now; nothing after it has `ended`."""
        if self.ended:
            return ""
        self._sentence += piece
        shown = []
        while end := self._sentence_end():
            sentence, self._sentence = self._sentence[:end], self._sentence[end:]
            self._held += sentence[self._shown :]
            self._shown = 0
            self._note(sentence)
            if self.ended:
                self._held = self._sentence = ""
                return self._within_length("".join(shown))
            if not any(self._runs):
                shown.append(self._held)
                self._held = ""
        if self._repeats_phrase():
            self.ended = "loop"
        elif not self._may_repeat(self._sentence):
            shown.append(self._held + self._sentence[self._shown :])
            self._held, self._shown = "", len(self._sentence)
        return self._within_length("".join(shown))

    def finish(self) -> str:
        """The rest; call it when the text is complete."""
        if self.ended:
            return ""
        return self._within_length(self._held + self._sentence[self._shown :])

    def _sentence_end(self) -> int:
        """Characters of the sentence; 0 while it goes on."""
        if end := _END.search(self._sentence):
            return end.end()
        too_long = len(self._sentence) > MAX_SENTENCE_CHARACTERS
        return MAX_SENTENCE_CHARACTERS if too_long else 0

    def _note(self, sentence: str) -> None:
        """Compare a complete sentence with those before it."""
        if _FENCE.match(sentence):
            self._is_code = not self._is_code
        words = _words(sentence)
        if self._is_code or not _LETTER.search(words):
            return
        for period in range(1, MAX_PERIOD + 1):
            same = len(self._said) >= period and self._said[-period] == words
            self._runs[period] = self._runs[period] + 1 if same else 0
        self._said.append(words)
        for period, run in enumerate(self._runs):
            repeated = sum(map(len, list(self._said)[-run:])) if run else 0
            if run >= period > 0 and repeated >= MIN_LOOP_CHARACTERS:
                self.ended = "loop"

    def _repeats_phrase(self) -> bool:
        """Whether the sentence that is being written has come to repeat a few words."""
        if self._is_code:
            return False
        for size in range(2, MAX_PHRASE_CHARACTERS + 1):
            phrase = self._sentence[-size:]
            if self._sentence.endswith(phrase * MAX_PHRASES) and _LETTER.search(phrase):
                return True
        return False

    def _may_repeat(self, begun: str) -> bool:
        """Whether a sentence that has begun like this may become one of those before it."""
        if self._is_code:
            return False
        words = _words(begun)
        return any(said.startswith(words) for said in self._said)

    def _within_length(self, text: str) -> str:
        if self._bytes_left is None:
            return text
        size = len(text.encode(errors="replace"))
        if size > self._bytes_left:
            text = text.encode(errors="replace")[: self._bytes_left].decode(errors="ignore")
            self.ended = "length"
        self._bytes_left -= min(size, self._bytes_left)
        return text


def _words(sentence: str) -> str:
    """A sentence without marks and citations, to compare it."""
    return " ".join(_WORD.findall(_CITATION.sub(" ", sentence).casefold()))
