"""What rendering answers with."""

from dataclasses import dataclass

from django.utils.safestring import SafeString


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading. `level` is the document's own, 1 to 6; `anchor` is the id of the element."""

    title: str
    level: int
    anchor: str


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """HTML that may be put into a page as it is, and the headings in it."""

    html: SafeString
    outline: tuple[OutlineEntry, ...] = ()
