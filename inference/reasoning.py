"""What a reasoning model thinks before it answers, told apart from the answer. Everything else
(citations, memory, summaries, judgements, extraction) sees the answer alone.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of a model's reasoning. `withdraws`: the pieces of text before it, which `text`
    repeats, were reasoning too and are no part of the answer.
    """

    text: str
    withdraws: bool = False


Part = str | Reasoning

_CLOSING_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>", "[think]": "[/think]"}
_LONGEST_OPENING = max(map(len, _CLOSING_TAGS))
# DeepSeek-R1, QwQ, Qwen3: the prompt itself ends with the opening tag, which some servers do not
# repeat. A closing tag within a line is text of the answer.
_UNOPENED = re.compile(r"\n[ \t]{0,4}</think>", re.IGNORECASE)
_HELD_SPACE = 100  # characters of white space that may stand before a closing tag
_UNOPENED_CHARACTERS = len("\n    </think>")


class ReasoningSplitter:
    """Splits the pieces of one message, cut anywhere, into reasoning and answer. An opening tag
    counts at the beginning of the message only. White space around what is between the tags is
    dropped.

    `is_unopened`: the message began with reasoning and marked only its end.
    """

    def __init__(self, *, begins_inside: bool = False) -> None:
        """`begins_inside`: earlier messages of the model were unopened, so that this one is assumed
        to be."""
        self.is_unopened = begins_inside
        self._is_begun = False
        self._start = ""  # first characters of the message, without white space
        self._held: list[str] = []  # its pieces, until they are known to be no tag
        self._closing = ""  # tag that ends the reasoning; empty outside of it
        self._rest = ""  # inside: the end of what came, which may begin the tag
        self._skips_space = False
        self._assumed: list[str] = []  # reasoning of a message that is only assumed to be unopened
        self._answered: list[str] = []  # the answer, where it may turn out to be reasoning
        self._line = "\n"  # its last characters, after those that begin the message
        self._may_be_unopened = not begins_inside

    def feed(self, text: str) -> list[Part]:
        """The parts that this piece adds, none of them empty."""
        if not self._is_begun:
            self._held.append(text)
            self._start = (self._start + text).lstrip()[:_LONGEST_OPENING].lower()
            if any(tag.startswith(self._start) and tag != self._start for tag in _CLOSING_TAGS):
                return []
            return self._begin()
        return self._split(text)

    def finish(self, *, truncated: bool = False) -> list[Part]:
        """The rest at the end of the message. Reasoning that does not end is no answer, unless it
        was only assumed to be reasoning and the message is not `truncated`."""
        parts = [] if self._is_begun else self._begin()
        rest, self._rest = self._rest, ""
        if self._closing and self.is_unopened and not truncated:
            self.is_unopened = False
            text = "".join([*self._assumed, rest])
            return [*parts, text] if text else parts
        return [*parts, Reasoning(rest)] if rest.strip() else parts

    def _begin(self) -> list[Part]:
        self._is_begun = True
        opening = next((tag for tag in _CLOSING_TAGS if self._start.startswith(tag)), "")
        pieces = self._held
        if opening:
            pieces = ["".join(self._held).lstrip()[len(opening) :]]
            self.is_unopened = self._may_be_unopened = False
        if opening or self.is_unopened:
            self._closing, self._skips_space = _CLOSING_TAGS.get(opening, "</think>"), True
        self._held = []
        return [part for piece in pieces for part in self._split(piece)]

    def _split(self, text: str) -> list[Part]:
        if self._closing:
            return self._split_reasoning(self._rest + text)
        text = self._without_space(text)
        if not text:
            return []
        return self._split_answer(text) if self._may_be_unopened else [text]

    def _split_reasoning(self, text: str) -> list[Part]:
        text = self._without_space(text)
        if end := re.search(re.escape(self._closing), text, re.IGNORECASE):
            thought = text[: end.start()].rstrip()
            self._closing, self._rest, self._skips_space = "", "", True
            parts: list[Part] = [Reasoning(thought)] if thought else []
            return parts + self._split(text[end.end() :])
        sizes = range(min(len(self._closing) - 1, len(text)), 0, -1)
        begun = (size for size in sizes if self._closing.startswith(text[-size:].lower()))
        certain = text[: len(text) - next(begun, 0)]
        if len(certain) - len(stripped := certain.rstrip()) <= _HELD_SPACE:
            certain = stripped
        self._rest = text[len(certain) :]
        if self.is_unopened:
            self._assumed.append(certain)
        return [Reasoning(certain)] if certain else []

    def _split_answer(self, text: str) -> list[Part]:
        end = _UNOPENED.search(window := self._line + text)
        self._answered.append(text)
        if end is None:
            self._line = window[-_UNOPENED_CHARACTERS:]
            return [text]
        self._may_be_unopened = False
        whole = "".join(self._answered)
        ends = len(whole) - (len(window) - end.end())
        thought, answer = whole[:ends], whole[ends:]
        if "<think>" in thought.lower():  # an answer about such tags
            return [text]
        self.is_unopened = self._skips_space = True
        thought = thought[: -len("</think>")].strip()
        return [Reasoning(thought, withdraws=True), *self._split(answer)]

    def _without_space(self, text: str) -> str:
        """`text` without the white space to be dropped before it."""
        if self._skips_space:
            text = text.lstrip()
            self._skips_space = not text
        return text
