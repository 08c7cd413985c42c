"""Sections of a passage: the text below one heading, or some paragraphs of a long one. A token
encoder reads them one by one, and an answer is chosen among them. Begin with `split_sections`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reading.segments import split_segments

#: Longer sections, in characters, are cut between sentences.
MAX_SECTION_CHARACTERS = 700

#: How much more the tokens of a question count that are found least: 0 for the mean of all, and the
#: least alone for an endless one. Fitted in docs/decisions/0086.
SHARPNESS = 4.0
#: Weight of the tokens of the text itself beside those of the text with title and headings.
OWN_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Section:
    """`text[start:end]` without its heading, which is `heading`, without marks; "" where none is
    in the text above it. `header` is the header of the table that it begins with the rows of."""

    start: int
    end: int
    heading: str
    header: str = ""

    def lead(self, heading: str) -> str:
        """What the text is read below: the passage's title and headings on one line, with the
        section's own, and the header of its table."""
        own = " ".join(self.heading.split())
        line = f"{heading} > {own}" if own and own not in heading else heading
        return "\n".join(each for each in (line, self.header) if each)


def heading_line(title: str, heading_path: Sequence[str]) -> str:
    """Title and headings on one line; a heading that repeats the title is left out."""
    parts = [title, *(part for part in heading_path if part != title)]
    return " > ".join(" ".join(part.split()) for part in parts if part.strip())


def split_sections(text: str) -> list[Section]:
    """All sections in order; a heading without any text is none."""
    sections: list[Section] = []
    is_open = False
    for part in split_segments(text):
        if part.kind == "heading":
            is_open = False
            continue
        last = sections[-1] if is_open else None
        if last is not None and part.end - last.start <= MAX_SECTION_CHARACTERS:
            sections[-1] = replace(last, end=part.end)
        else:
            header = part.header.split("\n")[0]
            sections.append(Section(part.start, part.end, part.heading, header))
            is_open = True
    return sections


@dataclass(frozen=True, slots=True)
class TokenMatches:
    """How a question's tokens find the tokens of a passage, section by section.

    `similarities` (question tokens, passage tokens) float32 are cosines; `starts` and `ends` int32
    (passage tokens,) are characters of the passage's text, -1 for the tokens of title and headings,
    with which each section begins.
    """

    similarities: NDArray[np.float32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def by_section(self) -> Iterator["TokenMatches"]:
        """Those of each section, in order."""
        is_heading = self.starts < 0
        begins = np.flatnonzero(is_heading[1:] & ~is_heading[:-1]) + 1
        borders = [0, *begins.tolist(), len(self.starts)]
        for first, last in pairwise(borders):
            if (self.starts[first:last] >= 0).any():
                yield TokenMatches(
                    self.similarities[:, first:last], self.starts[first:last], self.ends[first:last]
                )

    @property
    def span(self) -> tuple[int, int]:
        """The characters of its first and last tokens."""
        text = self.starts >= 0
        return int(self.starts[text].min()), int(self.ends[text].max())

    @property
    def late_interaction(self) -> float:
        """How well the question's tokens find theirs: the best cosine of each (MaxSim,
        https://arxiv.org/abs/2004.12832), of which a low one counts more than a high one, and with
        OWN_WEIGHT the mean of the best ones in the text itself."""
        best = self.similarities.max(axis=1)
        soft_minimum = -np.log(np.exp(-SHARPNESS * best).mean()) / SHARPNESS
        own = self.similarities[:, self.starts >= 0].max(axis=1).mean()
        return float((soft_minimum + OWN_WEIGHT * own) / (1 + OWN_WEIGHT))

    def of(self, start: int, end: int) -> float:
        """The same for these characters together with title and headings; -1 without any token."""
        chosen = (self.starts < 0) | ((self.starts < end) & (self.ends > start))
        return float(self.similarities[:, chosen].max(axis=1).mean()) if chosen.any() else -1.0
