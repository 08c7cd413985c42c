"""A document's text as safe HTML, with one passage marked."""

from documents.models import Document
from documents.rendering.markdown import render_markdown
from documents.rendering.plain import render_plain
from documents.rendering.result import OutlineEntry, RenderedDocument

__all__ = ["OutlineEntry", "RenderedDocument", "render_document"]


def render_document(
    document: Document, text: str, *, passage: tuple[int, int] | None = None
) -> RenderedDocument:
    """Render `text`, all of the document's or a part of it.

    `passage` is a (start, end) pair of character offsets into `text`; what of it lies outside is
    ignored. The first marked element has the id `passage`, every one the class `passage`.
    """
    render = render_markdown if document.rendering == "markdown" else render_plain
    return render(text, passage=_trimmed(text, passage), title=document.title)


def _trimmed(text: str, passage: tuple[int, int] | None) -> tuple[int, int] | None:
    """The passage inside the text, without white space at its ends; None where nothing is left."""
    if passage is None:
        return None
    start, end = max(passage[0], 0), min(passage[1], len(text))
    shown = text[start:end]
    start += len(shown) - len(shown.lstrip())
    end -= len(shown) - len(shown.rstrip())
    return (start, end) if start < end else None
