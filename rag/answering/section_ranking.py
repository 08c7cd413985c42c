"""Which sections of the passages found an answer is taken from. Begin with `rank_sections` and
`read_sections`. Without Django. Parameters are fitted in docs/decisions/0086.

A search ranks what a reader wants to see. An answer wants the section that says it, in whatever
words: late interaction finds it, and a reranker reads the best ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rag.answering.answer_types import AnswerKind, holds_kind
from rag.answering.tables import TableRow
from rag.events import Passage
from reading.sections import Section, TokenMatches, split_sections

#: Sections that are told apart by a reranker, each of some 150 tokens: on two cores 20 ms.
MAX_READ_SECTIONS = 8

#: Weights of a section's standard scores among all sections found: how the question's tokens find
#: its own, and those of the best section of its passage; the search's score of its passage, the
#: similarity of the passage to the question, and that of the document's title.
SECTION_WEIGHT, PASSAGE_WEIGHT = 1.0, 0.3
SEARCH_WEIGHT, NEARNESS_WEIGHT, TITLE_WEIGHT = 0.25, 0.2, 0.2
#: Weight of a reading, 0 for an unrelated section and 1 for a usual answer.
READING_WEIGHT = 1.2
#: A reranker's reading of the best section, as a rule.
USUAL_READING = 0.7
#: What a section gains that has the row of a table that is asked for.
TABLE_WEIGHT = 4.0

#: What a section gains that has an answer of the kind that is asked for, if that is a rare one:
#: numbers and dates are nearly everywhere.
KIND_WEIGHT = 0.7
RARE_KINDS = ("phone", "email", "money")

#: Means and standard deviations of the five scores over the sections found for a question, as a
#: rule, and for how many sections these count: of few sections found the best does not stand out.
USUAL = np.array([[0.449, 0.027], [0.466, 0.023], [0.71, 0.187], [0.81, 0.142], [0.56, 0.183]])
USUAL_SECTIONS = 20

#: Between title and headings, and what is read below them.
MAX_HEADING_CHARACTERS = 120

#: How well each text answers the question, in order: 0 is unrelated, 1 a usual answer; None if no
#: model can tell.
ReadFunction = Callable[[Sequence[str]], Sequence[float] | None]


@dataclass(frozen=True, slots=True)
class RankedSection:
    """A section of a passage: `start` and `end` are offsets in the passage's text, `lead` is what
    it is read below: title and headings, and the header of its table. `score` is in standard
    deviations above an average section found for the question. `matches` are None without a token
    encoder, `reading` without a reranker, `nearness`, the calibrated similarity of its passage,
    without an embedding model."""

    passage: Passage
    start: int
    end: int
    lead: str
    score: float
    matches: TokenMatches | None = None
    nearness: float | None = None
    reading: float | None = None

    @property
    def text(self) -> str:
        """As a reranker reads it."""
        heading, *header = self.lead.split("\n")
        text = self.passage.text[self.start : self.end]
        return "\n".join([heading[-MAX_HEADING_CHARACTERS:], *header, text])

    def holds(self, kind: AnswerKind) -> bool:
        """Whether it holds an answer of this kind."""
        _, _, header = self.lead.partition("\n")
        return holds_kind(kind, self.passage.text[self.start : self.end], header=header)

    def overlaps(self, other: "RankedSection") -> bool:
        """Whether both have some of the same text, as the sections of overlapping passages do."""
        first, second = self.passage, other.passage
        return (
            first.document_id == second.document_id
            and first.start + self.start < second.start + other.end
            and second.start + other.start < first.start + self.end
        )


def rank_sections(
    passages: Sequence[Passage],
    matches: Mapping[int, TokenMatches],
    *,
    nearness: Sequence[float] | None,
    title_nearness: Sequence[float] | None,
    answering_rows: Sequence[TableRow] = (),
    kind: AnswerKind | None = None,
) -> list[RankedSection]:
    """The sections of the passages, best first, none of which repeats another.

    `matches` are by the passages' chunks; a passage without them is taken for an average one.
    `nearness` and `title_nearness` are the calibrated similarities of each passage and of its
    document's title; None where no model can tell. `answering_rows` are rows of tables that
    answer the question, `kind` is the kind of answer that it wants.
    """
    found: list[RankedSection] = []
    scores: list[list[float]] = []
    for place, passage in enumerate(passages):
        sections = split_sections(passage.text)
        of_passage: list[tuple[Section, TokenMatches | None]] = [(each, None) for each in sections]
        if passage.chunk_id in matches:
            of_passage = [
                (_section_at(sections, each), each)
                for each in matches[passage.chunk_id].by_section()
            ]
        similarities = [each.late_interaction if each else np.nan for _, each in of_passage]
        for (section, tokens), similarity in zip(of_passage, similarities, strict=True):
            found.append(
                RankedSection(
                    passage,
                    section.start,
                    section.end,
                    section.lead(passage.heading),
                    score=0.0,
                    matches=tokens,
                    nearness=nearness[place] if nearness else None,
                )
            )
            scores.append(
                [
                    similarity,
                    max(similarities),
                    passage.fused,
                    nearness[place] if nearness else np.nan,
                    title_nearness[place] if title_nearness else np.nan,
                ]
            )
    if not found:
        return []
    weights = np.array(
        [SECTION_WEIGHT, PASSAGE_WEIGHT, SEARCH_WEIGHT, NEARNESS_WEIGHT, TITLE_WEIGHT]
    )
    # The weight of what no model could tell goes to the others.
    is_known = ~np.isnan(np.array(scores)).all(axis=0)
    weights *= weights.sum() / weights[is_known].sum()
    total = standard_scores(np.array(scores)) @ weights
    asked = {(row.passage.chunk_id, row.part.start) for row in answering_rows}
    ranked = []
    for each, score in zip(found, total.tolist(), strict=True):
        has_row = any(
            chunk == each.passage.chunk_id and each.start <= start < each.end
            for chunk, start in asked
        )
        has_kind = kind in RARE_KINDS and each.holds(kind)
        bonus = TABLE_WEIGHT * has_row + KIND_WEIGHT * has_kind
        ranked.append(replace(each, score=score + bonus))
    ranked.sort(key=lambda each: -each.score)
    kept: list[RankedSection] = []
    for each in ranked:
        if not any(each.overlaps(other) for other in kept):
            kept.append(each)
    return kept


def _section_at(sections: Sequence[Section], tokens: TokenMatches) -> Section:
    """The section that tokens are of, which were encoded when the passage was stored."""
    start, end = tokens.span
    shared = [min(end, each.end) - max(start, each.start) for each in sections]
    if not sections:
        return Section(start, end, "")
    return replace(sections[int(np.argmax(shared))], start=start, end=end)


def standard_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column of `scores` (sections, USUAL) in standard deviations from its mean, both drawn
    towards what is USUAL where there are few; 0 for what is NaN."""
    known = ~np.isnan(scores)
    count = known.sum(axis=0)
    filled = np.where(known, scores, 0.0)
    means = (filled.sum(axis=0) + USUAL_SECTIONS * USUAL[:, 0]) / (count + USUAL_SECTIONS)
    squares = (np.where(known, scores - means, 0.0) ** 2).sum(axis=0)
    squares += USUAL_SECTIONS * (USUAL[:, 1] ** 2 + (means - USUAL[:, 0]) ** 2)
    deviations = np.sqrt(squares / (count + USUAL_SECTIONS))
    return np.where(known, (scores - means) / deviations, 0.0)


def read_sections(sections: Sequence[RankedSection], read: ReadFunction) -> list[RankedSection]:
    """The sections, best first, as a reranker orders the first of them. Unchanged where it tells
    nothing."""
    first, others = sections[:MAX_READ_SECTIONS], sections[MAX_READ_SECTIONS:]
    readings = read([section.text for section in first])
    if not readings:
        return list(sections)
    ordered = [
        replace(section, reading=reading, score=section.score + READING_WEIGHT * reading)
        for section, reading in zip(first, readings, strict=True)
    ]
    return [*sorted(ordered, key=lambda section: -section.score), *others]


def by_best_section(
    passages: Sequence[Passage], sections: Sequence[RankedSection]
) -> list[Passage]:
    """The passages in the order of their best sections; those without any come last."""
    place: dict[int, int] = {}
    for at, section in enumerate(sections):
        place.setdefault(section.passage.chunk_id, at)
    return sorted(passages, key=lambda passage: place.get(passage.chunk_id, len(sections)))
