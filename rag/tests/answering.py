"""Passages for tests of the pure parts of answering."""

from rag.events import Passage


def passage(
    text: str,
    number: int = 1,
    *,
    start: int = 0,
    document_id: int | None = None,
    title: str = "A title",
    language: str = "en",
) -> Passage:
    """The passage `[number]`, alone in a document of its own unless one is named."""
    return Passage(
        number=number,
        chunk_id=100 + number,
        document_id=number if document_id is None else document_id,
        document_key=f"document-{number}",
        version=1,
        collection_slug="shelf",
        title=title,
        heading_path=(),
        page=None,
        text=text,
        start=start,
        end=start + len(text),
        url=f"/documents/shelf/{number}/",
        language=language,
        rank=number,
        similarity=None,
        lexical=None,
        fused=1.0 / number,
        rerank=None,
    )
