"""The pages of a document as they look: which documents have them, the image of a page and the
words on it. Begin with `page_layer` and `image_response`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.translation import gettext

from common.errors import NotFound
from common.web import CSP_FILES, CSP_HEADER
from documents.ingestion.sources import parser_limits
from documents.models import Document, ScannedPage
from documents.page_cache import page_cache
from reading.parsers import ParseError
from reading.parsers.boxes import turned_box
from reading.parsers.picture import PICTURES
from reading.sandbox import ParseRequest, run_in_sandbox
from reading.sandbox.protocol import MessageHeader

T = TypeVar("T")

#: Text, x0, y0, x1, y1: fractions of the width and height of the page from its top left corner.
Word = tuple[str, float, float, float, float]

PAGED_MEDIA_TYPES = frozenset({"application/pdf", *PICTURES})
IMAGE_MEDIA_TYPE = "image/webp"
#: Pixels; a page is rendered in no other widths.
WIDTHS = (160, 800, 1200, 1600, 2400)
DEFAULT_WIDTH = 1200
RENDER_SECONDS = 20.0
#: Pages that a process of the web server renders at once, and how long the next one waits.
_RENDERERS = BoundedSemaphore(2)
_PATIENCE_SECONDS = 20.0
_MAX_IMAGE_BYTES = 50 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PageLayer:
    """What lies over the image of page `number`. `width` and `height` are in points or pixels of
    the page as it is shown, `count` is the number of pages, `label` what stands on the page where
    that is not its number. `rotation` sets a scan upright, in degrees clockwise."""

    number: int
    count: int
    width: float
    height: float
    label: str
    words: Sequence[Word]
    rotation: int = 0


class PageUnavailable(NotFound):
    """The page cannot be shown; the text of the document may be there all the same."""


def image_width(wanted: int) -> int:
    """The least of WIDTHS that is not below `wanted`, or the largest."""
    return next((width for width in WIDTHS if width >= wanted), WIDTHS[-1])


def with_pages(document_ids: Sequence[int]) -> set[int]:
    """Which of the documents can show their pages, without a look at their files."""
    if not document_ids:
        return set()
    rows = Document.objects.filter(pk__in=document_ids, media_type__in=PAGED_MEDIA_TYPES)
    rows = rows.select_related("duplicate_of")
    return {row.pk for row in rows if file_of(row) is not None}


def thumbnail_url(collection_slug: str, document_id: int, page: int | None) -> str:
    """Where people see a small image of the page, by default the first."""
    own = [collection_slug, document_id, page or 1]
    return f"{reverse('document_page_image', args=own)}?width={WIDTHS[0]}"


def file_of(document: Document) -> Document | None:
    """The document that keeps the file with these bytes; None where it is not kept, or has changed
    since the text was read."""
    if document.media_type not in PAGED_MEDIA_TYPES or not document.source_sha256:
        return None
    if document.chunk_count and document.status != Document.Status.READY:
        return None  # the text is that of the file before
    if document.file:
        return document
    original = document.duplicate_of
    if original and original.file and original.source_sha256 == document.source_sha256:
        return original
    return None


def page_layer(document: Document, number: int) -> PageLayer:
    """Size and words of a page, numbered from 1. Raises PageUnavailable."""
    name = f"{number}.json"
    encoded = page_cache.get(document.source_sha256, name)
    try:
        layer = _layer(number, json.loads(encoded or b""))
    except (LookupError, TypeError, ValueError):
        layer = _run(
            document,
            "read_page_layer",
            {"page": number},
            lambda header, _body: _layer(number, header["layer"]),
        )
        fields = {each: getattr(layer, each) for each in ("width", "height", "count", "label")}
        _keep(document, name, json.dumps({**fields, "words": layer.words}).encode())
    # The words that OCR read, where it read the page, on the page set upright.
    scan = _scans(document, layer.number).first()
    if scan is None:
        return layer
    words = [
        _word(text, *turned_box(box, scan.rotation, 1, 1))
        for line in scan.lines
        for text, *box in line["words"]
    ]
    width, height = layer.width, layer.height
    if scan.rotation in {90, 270}:
        width, height = height, width
    return PageLayer(layer.number, layer.count, width, height, layer.label, words, scan.rotation)


def image_response(
    request: HttpRequest, document: Document, number: int, width: str
) -> HttpResponseBase:
    """The image of a page for a browser or program, which asks each time whether it may still see
    it. Raises PageUnavailable."""
    pixels = int(width) if width.isascii() and width.isdigit() and len(width) < 6 else DEFAULT_WIDTH
    pixels = image_width(pixels)
    if file_of(document) is None or not 1 <= number < 1_000_000:
        raise PageUnavailable(
            gettext("There is no page {number} of this document to show.").format(number=number)
        )
    rotation = _scans(document, number).values_list("rotation", flat=True).first() or 0
    name = f"{number}-{pixels}-{rotation}.webp"
    etag = f'"{document.source_sha256[:32]}-{name}"'
    answer = get_conditional_response(request, etag=etag)
    if answer is None or answer.status_code != 304:
        image = page_cache.get(document.source_sha256, name)
        if image is None:
            options = {"page": number, "width": pixels, "rotation": rotation}
            image = _run(document, "render_page", options, lambda _header, body: _image(body))
            _keep(document, name, image)
        answer = HttpResponse(image, content_type=IMAGE_MEDIA_TYPE)
    answer.headers["ETag"] = etag
    answer.headers["Cache-Control"] = "private, no-cache"
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers[CSP_HEADER] = CSP_FILES
    return answer


def _run(
    document: Document,
    task: str,
    options: dict[str, Any],
    decode: Callable[[MessageHeader, bytearray], T],
) -> T:
    """What the sandbox makes of the document's file, if that is still the one that was read."""
    holder = file_of(document)
    if holder is None:
        raise PageUnavailable(gettext("The original file of this document is not stored here."))

    def checked(header: MessageHeader, body: bytearray) -> tuple[str, T]:
        return str(header["sha256"]), decode(header, body)

    try:
        request = _request(holder, task, options)
        limits = parser_limits(
            seconds=min(settings.PARSER_SECONDS, RENDER_SECONDS),
            starts_programs=document.media_type == "image/heic",
        )
        with _renderer():
            sha256, result = run_in_sandbox(request, checked, limits=limits)
    except (OSError, ValueError, ParseError) as error:
        raise PageUnavailable(str(error)) from error
    if sha256 != document.source_sha256:
        raise PageUnavailable(
            gettext("The stored file is no longer the one that the text is from.")
        )
    return result


def _request(holder: Document, task: str, options: dict[str, Any]) -> ParseRequest:
    name = holder.source or holder.key
    try:
        path = Path(holder.file.path)
    except NotImplementedError:  # not in a file system of ours
        with holder.file.open("rb") as opened:
            if opened.size > settings.MAX_UPLOAD_BYTES:
                raise ValueError(f"{name} has {opened.size:,} bytes") from None
            return ParseRequest(name=name, data=opened.read(), task=task, options=options)
    return ParseRequest(name=name, path=path, task=task, options=options)


@contextmanager
def _renderer() -> Iterator[None]:
    if not _RENDERERS.acquire(timeout=_PATIENCE_SECONDS):
        raise PageUnavailable(gettext("Too many pages are being rendered. Try again in a moment."))
    try:
        yield
    finally:
        _RENDERERS.release()


def _keep(document: Document, name: str, content: bytes) -> None:
    sha256 = document.source_sha256
    page_cache.put(sha256, name, content)
    if page_cache.is_sweep_due:
        sweep_pages()
    elif not Document.objects.filter(pk=document.pk).exists():  # deleted meanwhile
        page_cache.forget([sha256])


def sweep_pages() -> None:
    """Remove the pages of files that no document has any more."""
    hashes = set(page_cache.hashes())
    rows = Document.objects.filter(source_sha256__in=hashes)
    page_cache.forget(hashes.difference(rows.values_list("source_sha256", flat=True)))


def _image(body: bytes | bytearray) -> bytes:
    if not body.startswith(b"RIFF") or body[8:12] != b"WEBP" or len(body) > _MAX_IMAGE_BYTES:
        raise ValueError("not the image of a page")
    return bytes(body)


def _layer(number: int, fields: Mapping[str, Any]) -> PageLayer:
    """Checks what a file may have made of the process. Raises LookupError, TypeError or
    ValueError."""
    width, height = float(fields["width"]), float(fields["height"])
    if not (0 < width < 1e6 and 0 < height < 1e6):
        raise ValueError("a page without a size")
    return PageLayer(
        number=number,
        count=min(max(int(fields["count"]), 1), 1_000_000),
        width=width,
        height=height,
        label=str(fields["label"]),
        words=[_word(*word) for word in fields["words"]],
    )


def _word(text: str, *box: float) -> Word:
    x0, y0, x1, y1 = (round(min(max(float(side), 0.0), 1.0), 5) for side in box)
    return str(text), x0, y0, x1, y1


def _scans(document: Document, number: int) -> "QuerySet[ScannedPage]":
    return ScannedPage.objects.filter(
        document__in=[document.pk, document.text_id],
        source_sha256=document.source_sha256,
        page=number,
    )
