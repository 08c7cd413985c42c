"""What a text is about, without a chat model: its most central passages and, of these, its most
central sentences in their order. Begin with `central_passages` and `central_sentences`. Without
Django.

Passages are chosen by facility location over their vectors (Lin and Bilmes, "A Class of Submodular
Functions for Document Summarization", 2011), so that every part of the text has one like it among
the chosen. Sentences are compared with the centroid of their words weighted by rarity (MEAD; Radev
et al., 2004), chosen one after another and never alike. No list of words of any language.
Parameters fitted in docs/decisions/0066.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from common.text import CJK
from rag.answering.extractive import Quote
from rag.events import Citation, Passage
from reading.segments import SegmentKind, split_segments

#: Passages whose sentences are compared, for each sentence that is wanted.
PASSAGES_PER_SENTENCE = 3
MAX_SEGMENTS_PER_PASSAGE = 40
#: What a sentence loses for standing further back in its passage, up to this much.
POSITION_WEIGHT = 0.5
#: What the first sentence of a document gains, and less and less those behind it; not of several
#: documents, of which some begin with an address.
OPENING_WEIGHT = 0.4
#: What a sentence gains that has all words of the headings above it; a share of it for some.
HEADING_WEIGHT = 0.3
#: What a sentence loses for being like one that is chosen (times their likeness), for standing in
#: the same passage, and for standing under the same heading.
REDUNDANCY_WEIGHT = 0.5
SAME_PASSAGE_PENALTY = 0.4
SAME_HEADING_PENALTY = 0.1
#: What a segment loses that is no whole sentence of prose.
KIND_PENALTIES: Mapping[SegmentKind, float] = {
    "sentence": 0.0,
    "item": 0.15,
    "row": 0.8,
    "code": 1.0,
    "heading": 1.5,
}
FRAGMENT_PENALTY = 0.4
#: Sentences with a lower score add little to those that are chosen.
MIN_SCORE = -0.2
#: Words of at least two letters, or characters of a script without spaces, of a sentence that
#: stands on its own: addresses, dates and “It is charged.” have fewer.
MIN_WORDS = 8
#: Letters by which words are compared: most inflections of a word share them.
STEM_LETTERS = 6

_TERM = re.compile(rf"[{CJK}]|[^\W\d_]+|\d+")
_WORD = re.compile(rf"[{CJK}]|[^\W\d_]{{2,}}")
_SENTENCE_END = re.compile(r"[.!…。！｡][\W_]*$")

Vectors = NDArray[np.float32]
Terms = Mapping[str, float]


def central_passages(vectors: Vectors, most: int) -> list[int]:
    """Rows of `vectors` (passages × dimensions, of length 1) of at most `most` passages that
    together are like all of them, in the order of the text; the first is always among them."""
    count = len(vectors)
    if count <= most:
        return list(range(count))
    similarity = np.clip(vectors @ vectors.T, 0.0, 1.0)
    chosen = [0]
    covered = similarity[0].copy()
    while len(chosen) < most:
        gains = np.maximum(similarity - covered, 0.0).sum(axis=1)
        gains[chosen] = -1.0
        best = int(gains.argmax())
        chosen.append(best)
        covered = np.maximum(covered, similarity[best])
    return sorted(chosen)


@dataclass(slots=True)
class _Candidate:
    quote: Quote
    terms: Terms
    score: float


def central_sentences(passages: Sequence[Passage], most: int) -> list[Quote]:
    """At most `most` sentences of `passages`, which stand in the order of the text, in that order.
    List items, table rows and code only where there is too little prose."""
    candidates = _candidates(passages)
    chosen: list[_Candidate] = []
    while candidates and len(chosen) < most:
        best = max(candidates, key=lambda each: each.score)
        if chosen and best.score < MIN_SCORE:
            break
        candidates.remove(best)
        chosen.append(best)
        for other in candidates:
            passage, taken = other.quote.passage, best.quote.passage
            likeness = _cosine(other.terms, best.terms)
            other.score -= REDUNDANCY_WEIGHT * likeness
            if passage.chunk_id == taken.chunk_id:
                other.score -= SAME_PASSAGE_PENALTY
            if _section(passage) == _section(taken):
                other.score -= SAME_HEADING_PENALTY
        # Overlapping passages and copies repeat a sentence.
        text = _single_spaced(best.quote.text)
        candidates = [each for each in candidates if _single_spaced(each.quote.text) != text]
    order = {passage.chunk_id: place for place, passage in enumerate(passages)}
    chosen.sort(key=lambda each: (order[each.quote.passage.chunk_id], each.quote.start))
    return [replace(each.quote, score=round(each.score, 4)) for each in chosen]


def quoted_pieces(quotes: Sequence[Quote], lead: str = "") -> list[str | Citation]:
    """The sentences as an answer: each in quotation marks, with its number and its citation."""
    pieces: list[str | Citation] = []
    length = 0
    for place, quote in enumerate(quotes):
        before = "\n\n" if place else lead
        cut = " …" if quote.part.cut else ""
        said = f"{before}“{' '.join(quote.text.split())}{cut}” "
        mark = f"[{quote.passage.number}]"
        at = length + len(said)
        pieces += [said, mark, Citation(quote.passage, at, quote.start, quote.end, quote.text)]
        length = at + len(mark)
    return pieces


def _candidates(passages: Sequence[Passage]) -> list[_Candidate]:
    # With each, how many stand before it under its heading.
    quotes: list[tuple[Quote, int]] = []
    for passage in passages:
        place = 0
        for segment in split_segments(passage.text)[:MAX_SEGMENTS_PER_PASSAGE]:
            quote = Quote(passage, segment)
            if segment.kind == "heading":
                place = 0
            elif not quote.is_reference_only:
                quotes.append((quote, place))
                place += 1
    counts = [Counter(_terms(quote.text)) for quote, _ in quotes]
    frequency = Counter(term for each in counts for term in each)
    weighted = [
        {
            term: (1 + math.log(times)) * math.log(1 + len(counts) / (1 + frequency[term]))
            for term, times in each.items()
        }
        for each in counts
    ]
    vectors = [_normalized(each) for each in weighted]
    centroid: Counter[str] = Counter()
    for vector in vectors:
        centroid.update(vector)
    middle = _normalized(centroid)
    scores = [_cosine(vector, middle) for vector in vectors]
    highest = max(scores, default=0.0) or 1.0
    single = len({passage.document_id for passage in passages}) == 1
    return [
        _Candidate(
            quote,
            vector,
            score / highest
            - POSITION_WEIGHT * (1 - 1 / (1 + place))
            + (OPENING_WEIGHT / (1 + place) if single and quote.passage.start == 0 else 0.0)
            + HEADING_WEIGHT * _heading_share(quote.passage, vector)
            - KIND_PENALTIES[quote.part.kind]
            - (FRAGMENT_PENALTY if _is_fragment(quote) else 0.0),
        )
        for (quote, place), vector, score in zip(quotes, vectors, scores, strict=True)
    ]


def _is_fragment(quote: Quote) -> bool:
    """Whether it is no sentence that states something: too short, a part of one, a question, or
    lines without an end, as at the head of a letter."""
    text = quote.text.strip()
    return (
        quote.part.cut
        or len(_WORD.findall(text)) < MIN_WORDS
        or text[:1].islower()
        or not _SENTENCE_END.search(text)
    )


def _heading_share(passage: Passage, terms: Terms) -> float:
    """Share of the words of the lowest heading, of the title where there is none, in a sentence."""
    heading = set(_terms(passage.heading_path[-1] if passage.heading_path else passage.title))
    return len(heading & terms.keys()) / len(heading) if heading else 0.0


def _terms(text: str) -> list[str]:
    return [match.casefold()[:STEM_LETTERS] for match in _TERM.findall(text)]


def _normalized(vector: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0
    return {term: weight / length for term, weight in vector.items()}


def _cosine(one: Terms, other: Terms) -> float:
    few, many = (one, other) if len(one) < len(other) else (other, one)
    return sum(weight * many.get(term, 0.0) for term, weight in few.items())


def _section(passage: Passage) -> tuple[int, tuple[str, ...]]:
    return passage.document_id, passage.heading_path


def _single_spaced(text: str) -> str:
    return " ".join(text.split()).casefold()
