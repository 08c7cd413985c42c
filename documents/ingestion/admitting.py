"""Whether a text may go into the document that has its key already."""

from typing import Any

from documents.ingestion.sources import BrokenSource, Source
from documents.models import Document

HIDDEN = "A document that you may not see has this key. Use another one."
OPEN = (
    "A document with this key is there, and others than those named in the access list may see it."
    " Change its access first, or use another key."
)


def refused(source: Source, document: Document | None, *, user: Any) -> BrokenSource | None:
    """Why the text may not become that of `document`; None where it may.

    A document keeps its access list. So a text that only some are to see is not put where others
    read it, and nobody writes into what they may not see. `user` None is the site itself.
    """
    if document is None:
        return None
    if user is not None and _is_hidden(document, user):
        return BrokenSource(source.name, source.size, "taken", HIDDEN)
    if source.access is not None and not _is_within(document, source.access):
        return BrokenSource(source.name, source.size, "access", OPEN)
    return None


def _is_hidden(document: Document, user: Any) -> bool:
    if document.access is None:
        return False
    return not Document.objects.visible_to(user).filter(pk=document.pk).exists()


def _is_within(document: Document, access: tuple[str, ...]) -> bool:
    return document.access is not None and set(document.access) <= set(access)
