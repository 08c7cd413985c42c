"""One page of a PDF or picture as it looks: rendered as an image by pdfium or Pillow
(`render_page`), and its size, label and words (`read_page_layer`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageOps, UnidentifiedImageError
from pypdfium2 import PdfDocument, PdfiumError, PdfPage

from reading.parsers.base import ParseError
from reading.parsers.image_file import (
    IMAGE_ERRORS,
    PAGED,
    count_frames,
    on_white,
    open_image,
)
from reading.parsers.image_file import (
    MAX_PIXELS as MAX_PICTURE_PIXELS,
)
from reading.parsers.pdf_page import Word, page_label, page_words

IMAGE_MEDIA_TYPE = "image/webp"
_PDF = b"%PDF-"
#: Where readers look for the mark of a PDF.
_PDF_HEAD = 1024
#: Pixels of a rendered page: A4 at 300 dpi has 8.7 million.
MAX_PIXELS = 12_000_000
MAX_PICTURE_PAGES = 10_000
#: Words of a page: a dense page of a newspaper has 5,000.
MAX_WORDS = 20_000
_QUALITY = 85
#: Of `Image.transpose`, which turns against the clock.
_TURNS = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class PageLayer:
    """What lies over the image of a page. `width` and `height` are in points or pixels, `count` is
    the number of pages, `label` what stands on the page where that is not its number. Words of
    pictures are not known here."""

    width: float
    height: float
    count: int
    label: str
    words: list[Word]


def render_page(data: bytes, *, page: int, width: int, rotation: int = 0) -> bytes:
    """The page, numbered from 1, as a WebP image of `width` pixels, less where it would have more
    than MAX_PIXELS. `rotation` turns it clockwise by quarters. Raises ParseError."""
    is_sideways = rotation in {90, 270}
    if _PDF in data[:_PDF_HEAD]:
        with _pdf_page(data, page) as shown:
            size = _fitted(shown.get_size(), width, is_sideways)
            scale = max(size[0] / shown.get_width(), size[1] / shown.get_height())
            image = shown.render(scale=scale, rev_byteorder=True, prefer_bgrx=True).to_pil()
            image = image.convert("RGB")
    else:
        with _picture(data, page) as opened:
            image = _reduced(opened, width, is_sideways)
    if rotation:
        image = image.transpose(_TURNS[rotation])
    encoded = BytesIO()
    image.save(encoded, "WEBP", quality=_QUALITY, method=0)
    return encoded.getvalue()


def read_page_layer(data: bytes, *, page: int) -> PageLayer:
    """Size, label and words of the page, numbered from 1. Raises ParseError."""
    if _PDF in data[:_PDF_HEAD]:
        with _pdf_page(data, page) as shown:
            return PageLayer(
                width=shown.get_width(),
                height=shown.get_height(),
                count=len(shown.pdf),
                label=page_label(shown.pdf, page),
                words=page_words(shown)[:MAX_WORDS],
            )
    with _picture(data, page) as image:
        width, height = image.size
        if image.getexif().get(_ORIENTATION, 1) in _SIDEWAYS:
            width, height = height, width
        return PageLayer(width, height, count_frames(image, most=MAX_PICTURE_PAGES), "", [])


#: The tag of EXIF, and its values of pictures that lie on their side.
_ORIENTATION = 0x0112
_SIDEWAYS = frozenset({5, 6, 7, 8})


@contextmanager
def _pdf_page(data: bytes, number: int) -> Iterator[PdfPage]:
    try:
        with PdfDocument(data) as document:
            document.init_forms()
            if not 1 <= number <= len(document):
                raise _no_page(number, len(document))
            page = document[number - 1]
            if not all(side > 0 for side in page.get_size()):
                raise _render_error(number, "it has no size")
            yield page
    except (PdfiumError, ValueError) as error:
        raise _render_error(number, str(error)[:100]) from error


@contextmanager
def _picture(data: bytes, number: int) -> Iterator[Image.Image]:
    try:
        with open_image(data) as image:
            if number > 1:
                if image.format not in PAGED:
                    raise _no_page(number, 1)
                try:
                    image.seek(number - 1)
                except EOFError as error:
                    raise _no_page(number, number - 1) from error
            if image.width * image.height > MAX_PICTURE_PIXELS:
                raise ParseError(
                    "too_large",
                    f"The picture has {image.width:,} × {image.height:,} pixels;"
                    f" {MAX_PICTURE_PIXELS:,} are shown. Save it smaller.",
                )
            yield image
    except UnidentifiedImageError as error:
        raise _render_error(number, "the file is damaged") from error
    except IMAGE_ERRORS as error:
        raise _render_error(number, str(error)[:100]) from error


def _no_page(number: int, count: int) -> ParseError:
    return ParseError("unreadable", f"There is no page {number}: the last one is {count}.")


def _render_error(number: int, reason: str) -> ParseError:
    return ParseError(
        "unreadable",
        f"Page {number} cannot be shown ({reason}). Download the file to see it.",
    )


def _fitted(size: tuple[float, float], width: int, is_sideways: bool) -> tuple[int, int]:
    """Pixels of a page that is `width` wide when it has been turned."""
    across, down = size
    scale = width / (down if is_sideways else across)
    scale = min(scale, (MAX_PIXELS / max(across * down, 1e-6)) ** 0.5)
    return max(1, round(across * scale)), max(1, round(down * scale))


def _reduced(opened: Image.Image, width: int, is_sideways: bool) -> Image.Image:
    """The picture in colours, as its camera held it, reduced to `width`."""
    if opened.format in {"JPEG", "MPO"}:
        longest = max(_fitted(opened.size, width, is_sideways)) * 2
        opened.draft("RGB", (longest, longest))  # decoded smaller, which is faster
    image = on_white(ImageOps.exif_transpose(opened)).convert("RGB")
    wanted = _fitted(image.size, width, is_sideways)
    if wanted[0] < image.width:
        image = image.resize(wanted, Image.Resampling.BOX, reducing_gap=2.0)
    return image
