"""An answer without a chat model: quote the sentences of the best passages that fit the question.
Begin with `extract_answer`. Without Django.

The answer says that it quotes. A citation holds the document's text at its offsets unchanged;
between the quotation marks white space is collapsed. Parameters fitted in docs/decisions/0078 and
0082.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

import numpy as np
from numpy.typing import NDArray

from common.trigrams import trigram_overlap
from rag.answering.answer_types import AnswerKind, holds_kind, wanted_kind
from rag.answering.contradictions import contradicts
from rag.answering.phrases import say
from rag.answering.section_ranking import RankedSection, ReadFunction
from rag.answering.tables import TableRow, extreme_rows, find_extreme
from rag.events import Citation, Confidence, Passage
from reading.row_text import row_in_words, split_row
from reading.segments import (
    Segment,
    SegmentKind,
    is_reference,
    join_blocks,
    split_segments,
    without_links,
)

#: How near each text is to the question, in order: 0 is unrelated, 1 a usual answer; None if no
#: model can tell.
SimilarityFunction = Callable[[Sequence[str]], Sequence[float] | None]

MAX_QUOTES = 3
#: Characters of all quotations together.
MAX_QUOTED_CHARACTERS = 1500
#: Passages that may be quoted, and segments considered of each.
MAX_PASSAGES = 8
MAX_SEGMENTS_PER_PASSAGE = 40
#: Segments compared by embedding, which takes some milliseconds each: those with the most words of
#: the question. Where passages are in another language words tell nothing: there all segments of
#: the first passages are compared, up to so many.
MAX_COMPARED = 8
MAX_FOREIGN_PASSAGES, MAX_FOREIGN_COMPARED = 5, 64
MAX_COMPARED_CHARACTERS = 400

#: Weights of nearness and of words where a model compares sentences, and how far below the best
#: score a quotation may be.
NEARNESS_WEIGHT, WORDS_WEIGHT = 2.0, 0.3
SCORE_MARGIN = 1.0
#: Weight of words where question and passage are in different languages: names, and letters that
#: are the same by chance.
FOREIGN_WORDS_WEIGHT = 0.2
#: The same for scores from words alone, which are closer together.
SCORE_MARGIN_LEXICAL = 0.5

#: Sections whose sentences may be quoted, and how many of their segments a reranker reads.
MAX_QUOTED_SECTIONS, MAX_READ_SEGMENTS = 4, 24
#: Weights of a segment within its section: how the question's tokens find it with title and
#: headings, and what a reranker makes of it alone: below a good heading any sentence would seem to
#: answer. Without a token encoder the letters in common with the question take its place.
FOUND_WEIGHT, ALONE_WEIGHT, LETTERS_WEIGHT = 10.0, 1.0, 0.3
#: What a segment gains that has an answer of the kind that is asked for, and a row of a table of
#: prices that is about what a question for an amount asks for.
KIND_WEIGHT, PRICED_WEIGHT = 0.3, 1.0
#: How far below the best one of its section another segment may be that is quoted too.
SECTION_MARGIN = 0.35
#: Characters up to which a quotation that is not sure is widened by its neighbours.
MAX_WIDENED_CHARACTERS = 480
#: How far the best section is ahead, in standard deviations, if others are not quoted beside it.
CLEAR_MARGIN = 1.5
#: How far below the best a sentence may be that contradicts it.
CONTRADICTION_MARGIN = 1.0
#: What the other segments of the best one's passage, and among these its neighbours, gain over
#: those of other passages, in margins.
SAME_PASSAGE_BONUS = 0.5
NEIGHBOUR_BONUS = 0.5
#: Penalty per rank of passages whose relevance is unknown.
RANK_PENALTY = 0.2
#: Long sentences contain more trigrams of any question.
LENGTH_EXPONENT = 0.1
MIN_LENGTH = 40

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quote:
    """A segment of a passage; `text` is the document's text from `start` to `end`. `nearness` is
    how near it is to the question by the embedding model, None where none told. `section` is the
    place of its section among those that an answer is chosen from, 0 for the best."""

    passage: Passage
    part: Segment
    score: float = 0.0
    nearness: float | None = None
    section: int = 0

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
    def is_reference_only(self) -> bool:
        """Whether it is only a heading or a reference and states nothing."""
        return self.part.kind == "heading" or is_reference(self.part, self.passage.text)

    @property
    def scored_text(self) -> str:
        """The text that is scored: for a table row, with the table's header."""
        text = without_links(self.text)
        return f"{self.part.header}\n{text}" if self.part.header else text

    @property
    def read_text(self) -> str:
        """The text that a reranker reads: of a table row, which column says what."""
        text = without_links(self.text)
        if self.part.header:
            names, cells = self.names, split_row(text)
            if len(names) == len(cells):
                named = zip(names, cells, strict=True)
                text = "; ".join(f"{name}: {cell}".lstrip(": ") for name, cell in named if cell)
        return text[:MAX_COMPARED_CHARACTERS]

    @property
    def names(self) -> list[str]:
        """The names of a table row's columns."""
        return split_row(self.part.header.split("\n")[0])

    def holds(self, kind: AnswerKind) -> bool:
        """Whether it holds an answer of this kind."""
        return holds_kind(kind, without_links(self.text), header=self.part.header)

    @property
    def context(self) -> str:
        """Title and heading: a sentence often leaves out what they say."""
        heading = self.passage.heading
        if self.part.heading and not heading.endswith(self.part.heading):
            heading = f"{self.passage.title} › {self.part.heading}"
        return heading

    @property
    def text_in_context(self) -> str:
        """The text that is compared by meaning."""
        return f"{self.context}\n{self.scored_text[:MAX_COMPARED_CHARACTERS]}"


@dataclass(frozen=True, slots=True)
class ExtractiveAnswer:
    """The answer as texts and citations in order; empty if there is nothing to quote. `best` is the
    best quotation. `lacks_kind`: no quotation has an answer of the kind that the question asks for.
    `is_extreme`: it is the row with the least or greatest number of a table that was asked for."""

    pieces: tuple[str | Citation, ...] = ()
    best: Quote | None = None
    lacks_kind: bool = False
    is_extreme: bool = False

    @property
    def text(self) -> str:
        """The answer's text, with citation markers but without the citations."""
        return "".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def cited(self) -> tuple[Citation, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, Citation))

    def unsure_pieces(self, language: str) -> tuple[str | Citation, ...]:
        """The pieces of an answer of low confidence, which begins by saying so, in `language`."""
        if not self.pieces:
            return ()
        lead, *others = self.pieces
        assert isinstance(lead, str)
        quoted = lead.removeprefix(f"{say('quotes', language)}\n\n")
        unsure = f"{say('unsure', language)}\n\n{quoted}"
        shift = len(unsure) - len(lead)
        moved = (
            replace(piece, at=piece.at + shift) if isinstance(piece, Citation) else piece
            for piece in others
        )
        return (unsure, *moved)


def extract_answer(
    question: str,
    passages: Sequence[Passage],
    *,
    similar: SimilarityFunction | None = None,
    language: str = "",
    query_language: str = "",
) -> ExtractiveAnswer:
    """Quote the best of `passages` (best first): at most MAX_QUOTES sentences, list items, table
    rows or code segments. `similar` is called once; without it only words decide. `language` is of
    what the site says itself, `query_language` of the question; empty where unknown."""
    found = [
        Quote(passage, part)
        for passage in passages[:MAX_PASSAGES]
        for part in join_blocks(
            passage.text, split_segments(passage.text)[:MAX_SEGMENTS_PER_PASSAGE]
        )
    ]
    if not found:
        return ExtractiveAnswer()
    # Headings and references only if there is nothing else.
    candidates = [quote for quote in found if not quote.is_reference_only] or found
    scores, nearness, margin = _scores(question, candidates, similar, query_language)
    judged = [
        replace(quote, score=score, nearness=near)
        for quote, score, near in zip(candidates, scores.tolist(), nearness, strict=True)
    ]
    ranked = sorted(judged, key=lambda quote: -quote.score)
    if extreme := extreme_rows(question, passages):
        return _quoted_rows(question, extreme, language, query_language)
    best = _favour_best_passage(ranked, margin)
    contradiction = _find_contradiction(question, ranked, language)
    if contradiction is not None:
        best = [best[0], replace(contradiction, score=best[0].score), *best[1:]]
    chosen = _merge_adjacent(_select_quotes(best, margin))
    return _answer(question, chosen, language, query_language, differ=contradiction is not None)


def quote_sections(
    question: str,
    sections: Sequence[RankedSection],
    *,
    confidence: Confidence,
    read: ReadFunction | None = None,
    answering_rows: Sequence[TableRow] = (),
    language: str = "",
    query_language: str = "",
) -> ExtractiveAnswer:
    """Quote the best of `sections` (best first): up to MAX_QUOTES sentences, list items, table rows
    or code segments of the first one; where it is not clearly ahead, or the answer not sure, one
    of each of the first ones. `answering_rows` are those of a table that `question` asks for; the
    other arguments are as for `extract_answer`."""
    if answering_rows and find_extreme(question):
        return _quoted_rows(question, answering_rows, language, query_language)
    candidates: list[Quote] = []
    for place, section in enumerate(sections[:MAX_QUOTED_SECTIONS]):
        text = section.passage.text
        found = [
            Quote(section.passage, part, section=place)
            for part in join_blocks(text, split_segments(text))
            if part.start < section.end and part.end > section.start and part.kind != "heading"
        ]
        candidates += [quote for quote in found if not quote.is_reference_only] or found
    if not candidates:
        return ExtractiveAnswer()
    judged = _judge_segments(question, candidates, sections, read, answering_rows, query_language)
    ranked = sorted(judged, key=lambda quote: -quote.score)
    contradiction = _find_contradiction(question, ranked, language)
    is_clear = confidence == "high" and (
        len(sections) < 2 or sections[0].score - sections[1].score >= CLEAR_MARGIN
    )
    if contradiction is not None:
        chosen = [ranked[0], contradiction]
    elif is_clear:
        chosen = _select_quotes([each for each in ranked if not each.section], SECTION_MARGIN)
    else:
        best_of = {each.section: each for each in reversed(ranked)}
        best = sorted(best_of.values(), key=lambda each: -each.score)
        chosen = [
            _widened(each, [other for other in judged if other.section == each.section])
            for each in _select_quotes(best, np.inf)
        ]
    return _answer(
        question,
        _merge_adjacent(chosen),
        language,
        query_language,
        differ=contradiction is not None,
    )


def _judge_segments(
    question: str,
    candidates: Sequence[Quote],
    sections: Sequence[RankedSection],
    read: ReadFunction | None,
    answering_rows: Sequence[TableRow],
    query_language: str,
) -> list[Quote]:
    """The candidates with their scores: that of the section, less what each is behind the best
    segment of its section. Those that are not read come behind the others."""
    kind = wanted_kind(question, language=query_language)
    priced = {(row.passage.chunk_id, row.part.start) for row in answering_rows}
    overlap = trigram_overlap(
        question, {place: quote.read_text for place, quote in enumerate(candidates)}
    )
    most = max(overlap.values(), default=0.0) or 1.0
    scores = np.zeros(len(candidates))
    for place, quote in enumerate(candidates):
        matches = sections[quote.section].matches
        if matches is not None:
            scores[place] = FOUND_WEIGHT * matches.of(quote.part.start, quote.part.end)
        else:
            scores[place] = LETTERS_WEIGHT * overlap[place] / most
        if kind is not None:
            scores[place] += KIND_WEIGHT * quote.holds(kind)
        scores[place] += PRICED_WEIGHT * ((quote.passage.chunk_id, quote.part.start) in priced)
    order = np.argsort(-scores, kind="stable").tolist()
    # Of a segment that is only a link nothing is left to read.
    chosen = [at for at in order if candidates[at].read_text.strip()][:MAX_READ_SEGMENTS]
    readings = read([candidates[place].read_text for place in chosen]) if read and chosen else None
    if readings is not None:
        unread = min(readings)
        alone = np.full(len(candidates), unread)
        alone[chosen] = readings
        scores += ALONE_WEIGHT * alone
    of_section: dict[int, float] = {}
    for quote, score in zip(candidates, scores.tolist(), strict=True):
        of_section[quote.section] = max(score, of_section.get(quote.section, -np.inf))
    return [
        replace(quote, score=sections[quote.section].score + score - of_section[quote.section])
        for quote, score in zip(candidates, scores.tolist(), strict=True)
    ]


def _widened(quote: Quote, of_section: Sequence[Quote]) -> Quote:
    """The quote with what stands around it in its section, the better side first, up to
    MAX_WIDENED_CHARACTERS: where it is not sure which sentence answers, its neighbour may."""
    parts = sorted(
        (each for each in of_section if each.part.kind != "block"), key=lambda each: each.start
    )
    places = [place for place, each in enumerate(parts) if each.part == quote.part]
    if not places or quote.part.kind not in ("sentence", "item"):
        return quote
    first = last = places[0]
    while True:
        sides = [
            place
            for place in (first - 1, last + 1)
            if 0 <= place < len(parts)
            and parts[place].part.kind in ("sentence", "item")
            and max(parts[last].end, parts[place].end) - min(parts[first].start, parts[place].start)
            <= MAX_WIDENED_CHARACTERS
        ]
        if not sides:
            break
        better = max(sides, key=lambda place: parts[place].score)
        first, last = min(first, better), max(last, better)
    chosen = parts[first : last + 1]
    start, end = chosen[0].part.start, chosen[-1].part.end
    kind: SegmentKind = "sentence"
    if any(each.part.kind == "item" for each in chosen) and len(chosen) > 1:
        kind, start = "block", quote.passage.text.rfind("\n", 0, start) + 1
    part = replace(quote.part, kind=kind, start=start, end=end, cut=chosen[-1].part.cut)
    return replace(quote, part=part) if len(chosen) > 1 else quote


def _quoted_rows(
    question: str, rows: Sequence[TableRow], language: str, query_language: str
) -> ExtractiveAnswer:
    """The rows with the least or greatest number that was asked for."""
    quotes = [Quote(row.passage, row.part) for row in rows]
    return _answer(question, quotes, language, query_language, is_extreme=True)


def _answer(
    question: str,
    chosen: Sequence[Quote],
    language: str,
    query_language: str,
    *,
    differ: bool = False,
    is_extreme: bool = False,
) -> ExtractiveAnswer:
    pieces: list[str | Citation] = []
    at = 0
    for number, quote in enumerate(chosen):
        said = say("differ" if differ else "quotes", language)
        lead = "\n\n" if number else f"{said}\n\n"
        quoted, mark = f"{lead}{_format_quote(quote)} ", f"[{quote.passage.number}]"
        at += len(quoted)
        pieces += [quoted, mark, Citation(quote.passage, at, quote.start, quote.end, quote.text)]
        at += len(mark)
    kind = wanted_kind(question, language=query_language)
    return ExtractiveAnswer(
        tuple(pieces),
        best=chosen[0] if chosen else None,
        lacks_kind=kind is not None and not any(quote.holds(kind) for quote in chosen),
        is_extreme=is_extreme,
    )


def _scores(
    question: str,
    candidates: Sequence[Quote],
    similar: SimilarityFunction | None,
    query_language: str,
) -> tuple[Scores, Sequence[float | None], float]:
    """For each candidate a score and how near it is, None if no model told it; and how far below
    the best score is still quoted."""
    unknown = [None] * len(candidates)
    overlap = trigram_overlap(
        question, {place: quote.scored_text for place, quote in enumerate(candidates)}
    )
    lengths = np.array([max(len(quote.text), MIN_LENGTH) for quote in candidates])
    words = (
        np.array([overlap[place] for place in range(len(candidates))]) / lengths**LENGTH_EXPONENT
    )
    words = words / (words.max() or 1.0)
    is_foreign = np.array([quote.passage.is_foreign_to(query_language) for quote in candidates])
    words = np.where(is_foreign, FOREIGN_WORDS_WEIGHT * words, words)
    lexical = words + np.array(_relevances([quote.passage for quote in candidates]))
    if similar is None:
        return lexical, unknown, SCORE_MARGIN_LEXICAL
    first = list(dict.fromkeys(quote.passage.number for quote in candidates))[:MAX_FOREIGN_PASSAGES]
    is_first = np.array([quote.passage.number in first for quote in candidates])
    order = np.argsort(-lexical, kind="stable")
    own, foreign = order[~is_foreign[order]], order[(is_foreign & is_first)[order]]
    compared = np.concatenate([own[:MAX_COMPARED], foreign[:MAX_FOREIGN_COMPARED]])
    near = similar([candidates[place].text_in_context for place in compared])
    if near is None:
        return lexical, unknown, SCORE_MARGIN_LEXICAL
    nearness = np.full(len(candidates), min(near) - 1.0)  # others rank behind all compared ones
    nearness[compared] = near
    shared = np.array([quote.passage.answer_score for quote in candidates])
    scores = shared + WORDS_WEIGHT * words + NEARNESS_WEIGHT * nearness
    return scores, nearness.tolist(), SCORE_MARGIN


def _relevances(passages: Sequence[Passage]) -> list[float]:
    """How much each passage suits an answer; where that is unknown, by its rank."""
    if all(passage.relevance is not None for passage in passages):
        return [passage.relevance or 0.0 for passage in passages]
    first = min(passage.rank for passage in passages)
    return [-RANK_PENALTY * (passage.rank - first) for passage in passages]


def _favour_best_passage(ranked: Sequence[Quote], margin: float) -> list[Quote]:
    """The quotes, best first, with those nearer that explain the best one: of its passage, and
    right before or after it."""
    best = ranked[0]
    of_passage = sorted(
        (quote for quote in ranked if quote.passage.number == best.passage.number),
        key=lambda quote: quote.start,
    )
    place = of_passage.index(best)
    neighbours = of_passage[max(place - 1, 0) : place + 2]

    def favoured(quote: Quote) -> Quote:
        if quote.passage.number != best.passage.number or quote.part.kind == "row":
            return quote  # what explains a row of a table is its header
        bonus = margin * (SAME_PASSAGE_BONUS + NEIGHBOUR_BONUS * (quote in neighbours))
        return replace(quote, score=min(quote.score + bonus, best.score))

    return [best, *sorted(map(favoured, ranked[1:]), key=lambda quote: -quote.score)]


def _find_contradiction(question: str, ranked: Sequence[Quote], language: str) -> Quote | None:
    """The best sentence of another document that gives another number than the best quote."""
    best = ranked[0]
    return next(
        (
            quote
            for quote in ranked[1:]
            if quote.score >= best.score - CONTRADICTION_MARGIN
            and quote.passage.document_id != best.passage.document_id
            and {quote.part.kind, best.part.kind} <= {"sentence", "item"}
            and contradicts(
                question,
                best.scored_text,
                quote.scored_text,
                headings=(best.passage.heading, quote.passage.heading),
                language=quote.passage.language or language,
            )
        ),
        None,
    )


def _select_quotes(best: Sequence[Quote], margin: float) -> list[Quote]:
    """The best quotes without duplicates, within the score margin and the character budget."""
    chosen: list[Quote] = []
    room = MAX_QUOTED_CHARACTERS
    for quote in best:
        if len(chosen) == MAX_QUOTES or quote.score < best[0].score - margin:
            break
        # Overlapping chunks and copies of documents repeat a sentence.
        is_repeated = any(
            quote.start < other.end and other.start < quote.end
            if quote.passage.document_id == other.passage.document_id
            else _single_spaced(quote.text).casefold() == _single_spaced(other.text).casefold()
            for other in chosen
        )
        if is_repeated or (chosen and len(quote.text) > room):
            continue
        chosen.append(quote)
        room -= len(quote.text)
    return chosen


def _merge_adjacent(chosen: Sequence[Quote]) -> list[Quote]:
    """Merge adjacent sentences of a passage, at the rank of the better one."""
    joined: list[Quote] = []
    for quote in chosen:
        for at, other in enumerate(joined):
            first, last = sorted((quote.part, other.part), key=lambda part: part.start)
            between = quote.passage.text[first.end : last.start]
            if (
                quote.passage.number == other.passage.number
                and {first.kind, last.kind} == {"sentence"}
                and not between.strip()
            ):
                joined[at] = replace(other, part=replace(first, end=last.end, cut=last.cut))
                break
        else:
            joined.append(quote)
    return joined


def _format_quote(quote: Quote) -> str:
    """A quotation as Markdown: a table row in words, code as a code block."""
    if quote.part.kind == "row":
        return row_in_words(quote.names, split_row(quote.text))
    if quote.part.kind == "block":
        return f"{dedent(quote.text)}\n\n"
    if quote.part.kind == "code":
        fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", quote.text)), default=0))
        return f"{fence}\n{quote.text}\n{fence}\n\n"
    return f"“{_single_spaced(quote.text)}{' …' if quote.part.cut else ''}”"


def _single_spaced(text: str) -> str:
    return " ".join(text.split())
