"""An answer without a chat model: the sentences of the best passages that fit the question. Pure.

It says that it quotes. What a citation of it names is the document's text at its offsets, letter by
letter; between the quotation marks white space is single. Fitted in docs/decisions/0032.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.letters import letters
from rag.answering.quotable import Part, parts, points_elsewhere
from rag.answering.wording import say
from rag.events import Cited
from rag.passage import Passage

#: Tells how similar texts are to the question (−1..1, as many), or nothing where no model can say.
Similar = Callable[[Sequence[str]], Sequence[float] | None]

MOST_QUOTES = 4
#: Of all quotations together.
MOST_CHARACTERS = 1000
#: Passages that are quoted at all, and what is looked at of each.
MOST_PASSAGES = 3
MOST_PARTS = 40
#: Only so many are compared by meaning: an embedding takes some milliseconds.
MOST_COMPARED = 8

#: What meaning counts for beside words, what each rank costs, and how far behind the best a
#: quotation may be.
MEANING = 1.2
RANK = 0.2
WORTH_QUOTING = 0.8
#: The same where only words speak, which are less far apart.
WORTH_QUOTING_BY_WORDS = 0.5
#: Long sentences hold more of any question's letters.
LENGTH = 0.1
SHORT = 40
#: Similarities nearer to 1 than this, of all that is compared, say nothing.
LEAST_ROOM = 0.05

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quote:
    """`text` is the passage's document from `start` to `end`."""

    passage: Passage
    part: Part
    score: float = 0.0

    @property
    def text(self) -> str:
        return self.passage.text[self.part.start : self.part.end]

    @property
    def start(self) -> int:
        return self.passage.start + self.part.start

    @property
    def end(self) -> int:
        return self.passage.start + self.part.end

    @property
    def only_names(self) -> bool:
        """Whether it names something and says nothing about it."""
        return self.part.kind == "heading" or points_elsewhere(self.part, self.passage.text)

    @property
    def read(self) -> str:
        """What it is judged by: a row of a table with the table's head."""
        return f"{self.part.header}\n{self.text}" if self.part.header else self.text


@dataclass(frozen=True, slots=True)
class Extract:
    """The answer as texts and citations in their order; nothing where there is nothing to quote."""

    pieces: tuple[str | Cited, ...] = ()

    @property
    def text(self) -> str:
        """The answer without what its citations mean."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def cited(self) -> tuple[Cited, ...]:
        """What it quotes."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Cited))


def extract(
    question: str,
    passages: Sequence[Passage],
    *,
    similar: Similar | None = None,
    language: str = "",
    most: int = MOST_QUOTES,
) -> Extract:
    """Quote what fits best of `passages`, which are best first: at most `most` sentences, items,
    rows or pieces of code. `similar` is asked once, and words decide where it says nothing."""
    candidates = _candidates(passages[:MOST_PASSAGES])
    if not candidates:
        return Extract()
    scores, margin = _scores(question, candidates, similar)
    judged = [
        replace(quote, score=score)
        for quote, score in zip(candidates, scores.tolist(), strict=True)
    ]
    best = sorted(judged, key=lambda quote: -quote.score)
    return _written(_joined(_chosen(best, margin, most)), language)


def _candidates(passages: Sequence[Passage]) -> list[Quote]:
    """What can be quoted; headings and tables of contents only where there is nothing else."""
    found = [
        Quote(passage, part) for passage in passages for part in parts(passage.text)[:MOST_PARTS]
    ]
    return [quote for quote in found if not quote.only_names] or found


def _scores(
    question: str, candidates: Sequence[Quote], similar: Similar | None
) -> tuple[Scores, float]:
    """Of each candidate, and how far behind the best is worth quoting."""
    held = letters(question, {place: quote.read for place, quote in enumerate(candidates)})
    lengths = np.array([max(len(quote.text), SHORT) for quote in candidates])
    words = np.array([held[place] for place in range(len(candidates))]) / lengths**LENGTH
    words = words / (words.max() or 1.0)
    first = min(quote.passage.rank for quote in candidates)
    words = words - np.array([RANK * (quote.passage.rank - first) for quote in candidates])
    if similar is None:
        return words, WORTH_QUOTING_BY_WORDS
    compared = np.argsort(-words, kind="stable")[:MOST_COMPARED]
    near = similar([candidates[place].read for place in compared])
    if near is None:
        return words, WORTH_QUOTING_BY_WORDS
    scores = words - 1.0  # what is not compared comes behind
    scores[compared] = words[compared] + MEANING * _nearer(np.asarray(near, dtype=np.float64))
    return scores, WORTH_QUOTING


def _nearer(similarities: Scores) -> Scores:
    """How much nearer than the others each is, on a scale that is the same for every model."""
    usual = float(similarities.mean())
    return (similarities - usual) / max(1 - usual, LEAST_ROOM)


def _chosen(best: Sequence[Quote], margin: float, most: int) -> list[Quote]:
    """The best without what was said already, as far as they are worth it and there is room."""
    chosen: list[Quote] = []
    room = MOST_CHARACTERS
    for quote in best:
        if len(chosen) == most or quote.score < best[0].score - margin:
            break
        if any(_same(quote, other) for other in chosen) or (chosen and len(quote.text) > room):
            continue
        chosen.append(quote)
        room -= len(quote.text)
    return chosen


def _same(one: Quote, other: Quote) -> bool:
    """Overlapping chunks hold the same sentence, and so do copies of a document."""
    if one.passage.document_id == other.passage.document_id:
        return one.start < other.end and other.start < one.end
    return _single_spaced(one.text).casefold() == _single_spaced(other.text).casefold()


def _joined(chosen: Sequence[Quote]) -> list[Quote]:
    """Sentences that follow one another in a passage as one, at the place of the better one."""
    joined: list[Quote] = []
    for quote in chosen:
        beside = next((other for other in joined if _follow(quote, other)), None)
        if beside is None:
            joined.append(quote)
            continue
        first, last = sorted((quote.part, beside.part), key=lambda part: part.start)
        both = replace(first, end=last.end, cut=last.cut)
        joined[joined.index(beside)] = replace(beside, part=both)
    return joined


def _follow(one: Quote, other: Quote) -> bool:
    if one.passage.number != other.passage.number:
        return False
    if {one.part.kind, other.part.kind} != {"sentence"}:
        return False
    first, last = sorted((one.part, other.part), key=lambda part: part.start)
    return not one.passage.text[first.end : last.start].strip()


def _written(quotes: Sequence[Quote], language: str) -> Extract:
    pieces: list[str | Cited] = []
    at = 0
    for number, quote in enumerate(quotes):
        lead = "\n\n" if number else f"{say('quotes', language)}\n\n"
        shown, mark = f"{lead}{_shown(quote)} ", f"[{quote.passage.number}]"
        at += len(shown)
        pieces += [shown, mark, Cited(quote.passage, at, quote.start, quote.end, quote.text)]
        at += len(mark)
    return Extract(tuple(pieces))


def _shown(quote: Quote) -> str:
    """A quotation as Markdown: a table's row below its head, code as code."""
    if quote.part.kind == "row":
        return f"{quote.part.header}\n{quote.text}\n\n" if quote.part.header else quote.text
    if quote.part.kind == "code":
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", quote.text)), default=0))
        return f"{fence}\n{quote.text}\n{fence}\n\n"
    return f"“{_single_spaced(quote.text)}{' …' if quote.part.cut else ''}”"


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
