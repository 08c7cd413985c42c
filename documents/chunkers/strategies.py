"""The chunking strategies, `GapChunker` serves most of them; `registry` names
them and their options."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from documents.chunkers.atoms import Atoms, Extent, TokenMeasure
from documents.chunkers.base import Chunker, ChunkerError, Embed, Span
from documents.chunkers.boundaries import (
    HEADING_WORTH,
    INSIDE_WORD_WORTH,
    PARAGRAPH_WORTH,
    SENTENCE_WORTH,
    WORD_WORTH,
    DocumentStructure,
    Window,
    keep_blocks_together,
    punctuation_worth,
    windows,
)
from documents.chunkers.splitter import (
    ArrangeFunction,
    AtomRange,
    Budget,
    WeighFunction,
    fit_to_budget,
    pack_atoms,
    piece_extent,
    sentence_ranges,
    split_document,
)
from documents.code_languages import LANGUAGES
from documents.parsers import ParsedDocument
from documents.parsers.code import code_blocks
from documents.parsers.text_formats import line_offsets, markdown_blocks


@dataclass(frozen=True, slots=True)
class GapChunker:
    """For any text: cuts at headings, else paragraphs, else sentences, else words.

    `weigh` rates the gaps otherwise, `arrange` chooses among them otherwise; the extents of
    `blocks` are kept together where they fit.
    """

    measure: TokenMeasure
    budget: Budget
    weigh: WeighFunction = Window.worth
    arrange: ArrangeFunction = pack_atoms
    blocks: Callable[[ParsedDocument], list[Extent]] | None = None

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document,
            measure=self.measure,
            budget=self.budget,
            blocks=self.blocks(document) if self.blocks else (),
            weigh=self.weigh,
            arrange=self.arrange,
        )


#: More than fullness can outweigh.
_WORTH_STEP = 2.0


def sentence_worths(window: Window, budget: int) -> list[float]:
    """Ends of sentences and of paragraphs are worth the same, headings more."""
    return [
        SENTENCE_WORTH if SENTENCE_WORTH <= value <= PARAGRAPH_WORTH else value
        for value in _worths_from(SENTENCE_WORTH, window.worth(budget))
    ]


def paragraph_worths(window: Window, budget: int) -> list[float]:
    """A paragraph that does not fit is cut between its sentences."""
    return _worths_from(PARAGRAPH_WORTH, window.worth(budget))


def _worths_from(least: float, worth: list[float]) -> list[float]:
    """Gaps of less worth are taken only if there is no other."""
    return [value - _WORTH_STEP if INSIDE_WORD_WORTH <= value < least else value for value in worth]


def equal_worths(window: Window, budget: int) -> list[float]:
    """All gaps between words are alike."""
    atoms = window.atoms
    return [
        INSIDE_WORD_WORTH if k and atoms.is_inside_word(k) else WORD_WORTH
        for k in range(len(atoms))
    ]


@dataclass(frozen=True, slots=True)
class WholeDocumentChunker:
    """One chunk per document. Raises ChunkerError if the text exceeds the model's context (`limit`
    tokens)."""

    measure: TokenMeasure
    limit: int

    def split(self, document: ParsedDocument) -> list[Span]:
        text = document.text.strip()
        if not text:
            return []
        (count,) = self.measure.count_all([text])
        if count > self.limit:
            raise ChunkerError(
                f"The document has {count:,} tokens and the model reads {self.limit:,} at once. "
                "Choose the chunker “recursive” for its collection."
            )
        start = len(document.text) - len(document.text.lstrip())
        structure = DocumentStructure(document)
        return [structure.span(start, start + len(text), count)]


@dataclass(frozen=True, slots=True)
class WindowChunker:
    """A sliding window: each chunk has `size` sentences, if they fit, and begins `step` after the
    previous one.

    `step` is at least half of `size`, so that only neighbours overlap.
    """

    measure: TokenMeasure
    tokens: int
    size: int
    step: int

    def split(self, document: ParsedDocument) -> list[Span]:
        return split_document(
            document,
            measure=self.measure,
            budget=Budget(self.tokens, 0),
            arrange=self._slide,
            try_single_chunk=False,
        )

    def _slide(
        self, atoms: Atoms, worth: Sequence[float], budget: int, overlap: int
    ) -> Iterator[AtomRange]:
        units = sentence_ranges(atoms, worth, budget)
        first = before = 0
        while first < len(units):
            last = self._reach(atoms, units, first, budget)
            yield units[first][0], units[last - 1][1]
            if last == len(units):
                return
            first, before = max(before, min(first + self.step, last)), last
            while self._reach(atoms, units, first, budget) <= before:
                first += 1

    def _reach(self, atoms: Atoms, units: Sequence[AtomRange], first: int, budget: int) -> int:
        """Index after the last sentence of the window that begins at `first`."""
        start = units[first][0]
        last = first + 1
        while (
            last < min(first + self.size, len(units))
            and atoms.tokens(start, units[last][1]) <= budget
        ):
            last += 1
        return last


_ATOMIC_TOKENS = frozenset({"fence", "code_block", "table_open", "html_block"})


def atomic_blocks(document: ParsedDocument) -> list[Extent]:
    """Extents of code blocks and tables in order, including those inside lists and quotations."""
    lines = line_offsets(document.text)
    return [
        (lines[token.map[0]], lines[token.map[1]])
        for token in markdown_blocks(document.text)
        if token.type in _ATOMIC_TOKENS and token.map
    ]


#: An outermost block is a better place than one inside it, and that better than those in there.
_OUTER_WORTH, _NESTING_STEP = 2, 0.15

_LANGUAGE_BY_MEDIA_TYPE = {language.media_type: language.name for language in LANGUAGES}


def code_extents(document: ParsedDocument) -> list[Extent]:
    """Extents of classes and functions; none if it is not source code."""
    blocks = code_blocks(document.text, _LANGUAGE_BY_MEDIA_TYPE.get(document.media_type, ""))
    return [(block.start, block.end) for block in blocks]


def code_worths(window: Window, budget: int) -> list[float]:
    """Best before classes and functions, else at blank lines, else between lines."""
    text, atoms = window.text, window.atoms
    worth = punctuation_worth(text, atoms)
    if not worth:
        return worth
    # Nothing is to fit the first time: so everything is cut between its lines.
    keep_blocks_together(worth, text, atoms, [(atoms.starts[0], atoms.ends[-1])], budget=0)
    keep_blocks_together(worth, text, atoms, window.blocks, budget=budget)
    around: list[int] = []
    for start, end in window.blocks:
        around = [outer for outer in around if outer > start]
        first = atoms.at(start)
        if worth[first] > WORD_WORTH:
            # The head of a class goes with its first method rather than with what is before it.
            worth[first] = HEADING_WORTH + _NESTING_STEP * max(0, _OUTER_WORTH - len(around))
        around.append(end)
    return worth


@dataclass(frozen=True, slots=True)
class AutoChunker:
    """Chooses by the text: Markdown as Markdown, source code as code, everything else as plain
    text."""

    plain: Chunker
    markdown: Chunker
    code: Chunker

    def split(self, document: ParsedDocument) -> list[Span]:
        if document.media_type in _LANGUAGE_BY_MEDIA_TYPE:
            return self.code.split(document)
        chunker = self.markdown if document.rendering == "markdown" else self.plain
        return chunker.split(document)


@dataclass(frozen=True, slots=True)
class ParentChildChunker:
    """Small chunks to search, each part of a larger passage: parents of at most `parent_tokens`,
    cut into children.

    Parents do not overlap, and their text is that of their children. No model reads a parent as a
    whole, so it may be longer than the model's context.
    """

    measure: TokenMeasure
    budget: Budget
    parent_tokens: int

    def split(self, document: ParsedDocument) -> list[Span]:
        structure = DocumentStructure(document)
        blocks = atomic_blocks(document) if document.rendering == "markdown" else []
        within = windows(document, measure=self.measure, budget=self.budget.tokens, blocks=blocks)
        parents = chain.from_iterable(map(self._parents, within))
        return [
            structure.span(*child, parent)
            for parent, children in enumerate(parents)
            for child in children
        ]

    def _parents(self, window: Window) -> Iterator[list[tuple[int, int, int]]]:
        text, atoms = window.text, window.atoms
        worth = window.worth(self.budget.tokens)
        parents = fit_to_budget(
            text,
            atoms,
            window.worth(self.parent_tokens),
            self.measure,
            Budget(self.parent_tokens, 0),
        )
        for parent in parents:
            part = atoms.part(parent.first, parent.last)
            children = fit_to_budget(
                text, part, worth[parent.first : parent.last], self.measure, self.budget
            )
            yield [piece_extent(part, child) for child in children]


@dataclass(frozen=True, slots=True)
class SemanticChunker:
    """Cuts where the meaning changes: compares the `group` sentences before each gap with the
    `group` after it.

    The greatest distances of a text are cuts, those above its `percentile`, unless a piece would
    have fewer than `min_tokens`. Pieces above the budget are cut as by `recursive`. Every sentence
    is embedded `group` times, besides the chunks themselves.
    """

    measure: TokenMeasure
    budget: Budget
    min_tokens: int
    group: int
    percentile: int
    embed: Embed

    def split(self, document: ParsedDocument) -> list[Span]:
        structure = DocumentStructure(document)
        return [
            structure.span(*found)
            for window in windows(document, measure=self.measure, budget=self.budget.tokens)
            for found in self._within(window)
        ]

    def _within(self, window: Window) -> Iterator[tuple[int, int, int]]:
        worth = window.worth(self.budget.tokens)
        units = sentence_ranges(window.atoms, worth, self.budget.tokens)
        for first, last in pairwise(self._edges(window, units)):
            part = window.atoms.part(first, last)
            pieces = fit_to_budget(window.text, part, worth[first:last], self.measure, self.budget)
            yield from (piece_extent(part, piece) for piece in pieces)

    def _edges(self, window: Window, units: Sequence[AtomRange]) -> list[int]:
        """Atoms at which pieces begin, and the end."""
        atoms, edges = window.atoms, [0, len(window.atoms)]
        if len(units) < 2 or atoms.tokens(0, len(atoms)) < 2 * self.min_tokens:
            return edges
        distances = self._distances(window, units)
        least = np.percentile(distances, self.percentile)
        # A stable sort: of equal distances the first is taken.
        for index in np.argsort(-distances, kind="stable"):
            if distances[index] > least:
                gap = units[index + 1][0]
                place = bisect_left(edges, gap)
                sizes = atoms.tokens(edges[place - 1], gap), atoms.tokens(gap, edges[place])
                if min(sizes) >= self.min_tokens:
                    edges.insert(place, gap)
        return edges

    def _distances(self, window: Window, units: Sequence[AtomRange]) -> NDArray[np.float64]:
        """Cosine distance over each gap between two sentences, shape (len(units) - 1,)."""
        sides = [
            (
                (units[max(0, gap - self.group)][0], units[gap - 1][1]),
                (units[gap][0], units[min(len(units), gap + self.group) - 1][1]),
            )
            for gap in range(1, len(units))
        ]
        ranges = {
            side: index for index, side in enumerate(dict.fromkeys(chain.from_iterable(sides)))
        }
        texts = [
            window.text[window.atoms.starts[first] : window.atoms.ends[last - 1]]
            for first, last in ranges
        ]
        vectors = np.asarray(self.embed(texts), dtype=np.float64)
        left = vectors[[ranges[before] for before, _ in sides]]
        right = vectors[[ranges[behind] for _, behind in sides]]
        # No cut where a vector is not finite.
        distances = 1 - (left * right).sum(axis=1, dtype=np.float64)
        return np.where(np.isfinite(distances), distances, 0.0)
