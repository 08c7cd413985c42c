"""What an answer rests on. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A hit as an answer cites it: `[number]`.

    `text` is the document's text from `start` to `end`, as offsets in characters. `url` is the page
    on which it is shown in its place. The scores are the hit's, each None where no arm gave it.
    """

    number: int
    chunk_id: int
    document_id: int
    document_key: str
    version: int
    collection_slug: str
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    text: str
    start: int
    end: int
    url: str
    language: str
    rank: int
    similarity: float | None
    lexical: float | None
    fused: float
    rerank: float | None

    @property
    def heading(self) -> str:
        """Title and headings, as one line."""
        parts = [self.title, *(part for part in self.heading_path if part != self.title)]
        return " > ".join(" ".join(part.split()) for part in parts if part.strip())
