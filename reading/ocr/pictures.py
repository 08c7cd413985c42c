"""Pictures from files, bounded before they are decoded: images by Pillow, pages of a PDF by
pdfium."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pypdfium2
from PIL import Image, ImageOps, UnidentifiedImageError

from reading.ocr.lines import Picture
from reading.parsers.base import ParseError
from reading.parsers.image_file import (
    IMAGE_ERRORS,
    MAX_PIXELS,
    count_frames,
    on_white,
    open_image,
)

#: Pixels in which text is looked for; larger pictures are reduced. A4 at 300 dpi has 8.7 million.
READ_PIXELS = 12_000_000
#: Less cannot hold a line of text.
MIN_SIDE = 8
MAX_ASPECT = 200
RENDER_DPI = 200
_POINTS_AN_INCH = 72


@contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    """Raises ParseError for what cannot be read, also while it is used."""
    try:
        with open_image(data) as image:
            yield image
    except IMAGE_ERRORS as error:
        is_unknown = isinstance(error, UnidentifiedImageError)
        reason = "its format is unknown" if is_unknown else str(error)[:100]
        raise ParseError(
            "malformed",
            f"The picture cannot be read ({reason}): it is damaged or incomplete. Save it or scan"
            " it again.",
        ) from error


def count_pages(data: bytes, *, most: int) -> int:
    """Number of pages of an image file, `most` + 1 if there are more. Raises ParseError."""
    with _opened(data) as image:
        _check_size(*image.size)
        return count_frames(image, most=most + 1)


def image_page(data: bytes, number: int) -> Picture:
    """A page of an image file, from 1, turned as its camera says. Raises ParseError."""
    with _opened(data) as image:
        if number > 1:
            image.seek(number - 1)
        _check_size(*image.size)
        width, height = image.size
        if width * height > READ_PIXELS:
            image.draft("L", _reduced(width, height))  # JPEG is decoded smaller
        return _grey(ImageOps.exif_transpose(image))


def pdf_page(data: bytes, number: int) -> Picture:
    """A page of a PDF, from 1, rendered at RENDER_DPI or less. Raises ParseError."""
    try:
        with pypdfium2.PdfDocument(data) as document:
            page = document[number - 1]
            width, height = page.get_size()
            scale = RENDER_DPI / _POINTS_AN_INCH
            pixels = max(width * height * scale * scale, 1.0)
            scale *= min(1.0, (READ_PIXELS / pixels) ** 0.5)
            if min(width, height) * scale < 1 or max(width, height) > MAX_ASPECT * min(
                width, height
            ):
                raise _no_room(width, height)
            bitmap = page.render(scale=scale, grayscale=True)
            picture = np.array(bitmap.to_numpy(), np.uint8)
    except (pypdfium2.PdfiumError, IndexError, ValueError) as error:
        raise ParseError(
            "malformed", f"Page {number} of the PDF cannot be rendered. Export the PDF again."
        ) from error
    return picture[..., 0] if picture.ndim > 2 else picture


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise ParseError(
            "too_large",
            f"The picture has {width:,} × {height:,} pixels; {MAX_PIXELS:,} are allowed. Save it"
            " smaller.",
        )
    if min(width, height) < MIN_SIDE or max(width, height) > MAX_ASPECT * min(width, height):
        raise _no_room(width, height)


def _no_room(width: float, height: float) -> ParseError:
    return ParseError(
        "no_text",
        f"The picture is {width:,.0f} × {height:,.0f}: too narrow for text. Cut it into pages.",
    )


def _reduced(width: int, height: int) -> tuple[int, int]:
    scale = min(1.0, (READ_PIXELS / (width * height)) ** 0.5)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _grey(image: Image.Image) -> Picture:
    """Eight bits of grey, on white where it is transparent."""
    image = on_white(image).convert("L")
    if image.width * image.height > READ_PIXELS:
        image = image.resize(_reduced(*image.size), Image.Resampling.BOX)
    return np.ascontiguousarray(np.asarray(image, np.uint8))
