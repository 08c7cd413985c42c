"""Sources as they stand beside an answer: passages in their present text, with what was quoted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.plain_words import without_signs

HEADINGS = 2
TEASER = 240  # characters


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a passage's text."""

    text: str
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A passage under its number. `parts` is empty where the text is there no longer."""

    number: int
    title: str
    place: str
    url: str
    is_cited: bool
    parts: tuple[Part, ...]

    @property
    def teaser(self) -> str:
        """What tells a reader of the answer what kind of text it rests on."""
        text = "".join(part.text for part in self.parts)[:TEASER] if self.is_cited else ""
        return without_signs(text)


def shown_sources(
    passages: Sequence[Mapping[str, Any]],
    citations: Sequence[Mapping[str, Any]],
    *,
    collections: Mapping[str, str],
) -> list[ShownSource]:
    """`passages` and `citations` are in the form of events; `collections` are names by slug."""
    return [
        ShownSource(
            number=passage["number"],
            title=passage["title"] or passage["document_key"],
            place=_place(passage, collections),
            url=passage["url"],
            is_cited=bool(quotes := _quotes(passage, citations)),
            parts=tuple(_parts(passage["text"], quotes)),
        )
        for passage in passages
    ]


def _place(passage: Mapping[str, Any], collections: Mapping[str, str]) -> str:
    path = [heading for heading in passage["heading_path"] if heading != passage["title"]]
    headings = " › ".join(path[-HEADINGS:])
    page = f"page {passage['page']}" if passage["page"] else ""
    name = collections.get(passage["collection"], passage["collection"])
    return " · ".join(part for part in (name, headings, page) if part)


def _quotes(
    passage: Mapping[str, Any], citations: Iterable[Mapping[str, Any]]
) -> list[tuple[int, int]]:
    """What of the passage was cited, as offsets into its text, in order and apart."""
    start, end = passage["start"], passage["end"]
    merged: list[tuple[int, int]] = []
    for cited in sorted(
        (max(cited["start"], start) - start, min(cited["end"], end) - start)
        for cited in citations
        if cited["number"] == passage["number"]
    ):
        if merged and cited[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(cited[1], merged[-1][1]))
        else:
            merged.append(cited)
    return merged


def _parts(text: str, quotes: Sequence[tuple[int, int]]) -> Iterable[Part]:
    """Where the whole passage is cited nothing of it is marked."""
    at = 0
    for start, end in quotes:
        if end - start >= len(text.strip()):
            continue
        yield from (
            Part(piece, is_quoted)
            for piece, is_quoted in ((text[at:start], False), (text[start:end], True))
            if piece
        )
        at = end
    if text[at:]:
        yield Part(text[at:], is_quoted=False)
