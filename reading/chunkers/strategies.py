"""The chunking strategies but for `split_document`; `registry` names them and their options."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, count, pairwise

import numpy as np
from numpy.typing import NDArray

from common.translation import gettext_noop
from reading.chunkers.atoms import Atoms, Extent
from reading.chunkers.base import ChunkerError, Span
from reading.chunkers.boundaries import (
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
from reading.chunkers.splitter import (
    AtomRange,
    Chunker,
    fit_to_budget,
    piece_extent,
    sentence_ranges,
    split_document,
)
from reading.code_languages import LANGUAGES
from reading.parsers import ParsedDocument
from reading.parsers.code import code_blocks
from reading.parsers.text_formats import line_offsets, markdown_blocks

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


def split_nothing(chunker: Chunker, document: ParsedDocument) -> list[Span]:
    """One chunk per document. Raises ChunkerError if the text exceeds the model's context."""
    text = document.text.strip()
    if not text:
        return []
    (tokens,) = chunker.measure.count_all([text])
    if tokens > chunker.limit:
        raise ChunkerError(
            gettext_noop(
                "The document has {tokens} tokens; the model reads {limit} at once. Choose the"
                " chunker “recursive” for its collection."
            ).format(tokens=f"{tokens:,}", limit=f"{chunker.limit:,}")
        )
    start = len(document.text) - len(document.text.lstrip())
    return [DocumentStructure(document).span(start, start + len(text), tokens)]


def split_windows(chunker: Chunker, document: ParsedDocument) -> list[Span]:
    """A sliding window: each chunk has `size` sentences, if they fit, and begins `step` after the
    previous one.

    `step` is at least half of `size`, so that only neighbours overlap.
    """
    size, step = chunker.values["size"], chunker.values["step"]

    def slide(
        atoms: Atoms, worth: Sequence[float], budget: int, overlap: int
    ) -> Iterator[AtomRange]:
        units = sentence_ranges(atoms, worth, budget)

        def reach(first: int) -> int:
            """Index after the last sentence of the window that begins at `first`."""
            start, last = units[first][0], first + 1
            while (
                last < min(first + size, len(units))
                and atoms.tokens(start, units[last][1]) <= budget
            ):
                last += 1
            return last

        first = before = 0
        while first < len(units):
            last = reach(first)
            yield units[first][0], units[last - 1][1]
            if last == len(units):
                return
            first, before = max(before, min(first + step, last)), last
            while reach(first) <= before:
                first += 1

    return split_document(chunker, document, arrange=slide, try_single_chunk=False)


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


split_markdown = partial(split_document, find_blocks=atomic_blocks)
split_code = partial(split_document, find_blocks=code_extents, weigh=code_worths)


_SAMPLE_CHARACTERS = 64 * 1024
_MIN_LINES = 20
#: Shares in a sample: of lines that end like a sentence, and of digits and signs among characters.
_MAX_SENTENCES, _MIN_SIGNS = 0.1, 0.2
_SENTENCE_LINE = re.compile(r"(?<=.{40})[.!?…][\"”»)]?$", re.M)
_SIGN = re.compile(r"[^\w\s]|\d")


def is_machine_text(text: str) -> bool:
    """Whether a program wrote it line by line, such as a log or a list of values, and not prose."""
    sample = text[:_SAMPLE_CHARACTERS]
    lines = sum(not line.isspace() for line in sample.splitlines() if line)
    if lines < _MIN_LINES:
        return False
    signs = len(_SIGN.findall(sample)) / max(1, len("".join(sample.split())))
    return signs >= _MIN_SIGNS and len(_SENTENCE_LINE.findall(sample)) <= _MAX_SENTENCES * lines


def split_by_type(chunker: Chunker, document: ParsedDocument) -> list[Span]:
    """Chooses by the text: Markdown as Markdown, source code as code, logs and values between their
    lines, everything else as plain text."""
    if document.media_type in _LANGUAGE_BY_MEDIA_TYPE:
        return split_code(chunker, document)
    if document.rendering == "plain" and is_machine_text(document.text):
        return split_document(chunker, document, weigh=code_worths)
    split = split_markdown if document.rendering == "markdown" else split_document
    return split(chunker, document)


def split_parents(chunker: Chunker, document: ParsedDocument) -> list[Span]:
    """Small chunks to search, each part of a larger passage: parents of at most `parent_tokens`,
    cut into children.

    Parents do not overlap, and their text is that of their children. No model reads a parent as a
    whole, so it may be longer than the model's context.
    """
    structure, measure, tokens = DocumentStructure(document), chunker.measure, chunker.tokens
    parent_tokens = chunker.values["parent_tokens"]
    blocks = atomic_blocks(document) if document.rendering == "markdown" else []
    spans: list[Span] = []
    numbers = count()
    for window in windows(document, measure=measure, budget=tokens, blocks=blocks):
        text, worth = window.text, window.worth(tokens)
        parents = fit_to_budget(
            text, window.atoms, window.worth(parent_tokens), measure, parent_tokens
        )
        for (first, last, _), number in zip(parents, numbers, strict=False):
            part = window.atoms.part(first, last)
            children = fit_to_budget(
                text, part, worth[first:last], measure, tokens, chunker.overlap
            )
            spans += [structure.span(*piece_extent(part, child), number) for child in children]
    return spans


def split_by_meaning(chunker: Chunker, document: ParsedDocument) -> list[Span]:
    """Cuts where the meaning changes: compares the `group` sentences before each gap with the
    `group` after it.

    The greatest distances of a text are cuts, those above its `percentile`, unless a piece would
    have fewer than `min_tokens`. Pieces above the budget are cut as by `recursive`. Every sentence
    is embedded `group` times, besides the chunks themselves.
    """
    structure, measure, tokens = DocumentStructure(document), chunker.measure, chunker.tokens
    min_tokens = min(chunker.values["min_tokens"], tokens)
    spans: list[Span] = []
    for window in windows(document, measure=measure, budget=tokens):
        atoms, worth = window.atoms, window.worth(tokens)
        units = sentence_ranges(atoms, worth, tokens)
        # Atoms at which pieces begin, and the end.
        edges = [0, len(atoms)]
        if len(units) >= 2 and atoms.tokens(0, len(atoms)) >= 2 * min_tokens:
            distances = _distances(chunker, window, units)
            least = np.percentile(distances, chunker.values["percentile"])
            # A stable sort: of equal distances the first is taken.
            for index in np.argsort(-distances, kind="stable"):
                if distances[index] > least:
                    gap = units[index + 1][0]
                    place = bisect_left(edges, gap)
                    sizes = atoms.tokens(edges[place - 1], gap), atoms.tokens(gap, edges[place])
                    if min(sizes) >= min_tokens:
                        edges.insert(place, gap)
        for first, last in pairwise(edges):
            part = atoms.part(first, last)
            pieces = fit_to_budget(
                window.text, part, worth[first:last], measure, tokens, chunker.overlap
            )
            spans += [structure.span(*piece_extent(part, piece)) for piece in pieces]
    return spans


def _distances(chunker: Chunker, window: Window, units: Sequence[AtomRange]) -> NDArray[np.float64]:
    """Cosine distance over each gap between two sentences, shape (len(units) - 1,)."""
    group = chunker.values["group"]
    sides = [
        (
            (units[max(0, gap - group)][0], units[gap - 1][1]),
            (units[gap][0], units[min(len(units), gap + group) - 1][1]),
        )
        for gap in range(1, len(units))
    ]
    ranges = {side: index for index, side in enumerate(dict.fromkeys(chain.from_iterable(sides)))}
    texts = [
        window.text[window.atoms.starts[first] : window.atoms.ends[last - 1]]
        for first, last in ranges
    ]
    assert chunker.embed is not None  # `get_chunker` refuses it
    vectors = np.asarray(chunker.embed(texts), dtype=np.float64)
    left = vectors[[ranges[before] for before, _ in sides]]
    right = vectors[[ranges[behind] for _, behind in sides]]
    # No cut where a vector is not finite.
    distances = 1 - (left * right).sum(axis=1, dtype=np.float64)
    return np.where(np.isfinite(distances), distances, 0.0)
