"""Pictures from files, bounded before they are decoded: images by Pillow, pages of a PDF by
pdfium."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import islice

import numpy as np
import pypdfium2
from PIL import (  # noqa: F401 (the readers are known once they are imported)
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageOps,
    ImageSequence,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from documents.ocr.lines import Picture
from documents.parsers.base import ParseError

#: Readers of Pillow that may see a file: of the others some start programs.
_READERS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "AVIF")
#: Only these have pages; the frames of others are an animation, of which the first is read.
_PAGED = frozenset({"TIFF"})
#: Pixels of a picture that is decoded: a photograph of 100 megapixels takes 300 MB.
MAX_PIXELS = 100_000_000
#: Pixels in which text is looked for; larger pictures are reduced. A4 at 300 dpi has 8.7 million.
READ_PIXELS = 12_000_000
#: Less cannot hold a line of text.
MIN_SIDE = 8
MAX_ASPECT = 200
RENDER_DPI = 200
_POINTS_AN_INCH = 72
_ERRORS = (OSError, ValueError, SyntaxError, TypeError, ArithmeticError, LookupError, RuntimeError)


@contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    """Raises ParseError for what cannot be read, also while it is used."""
    try:
        with warnings.catch_warnings():
            # Its own bound is that of the pixels below.
            warnings.simplefilter("ignore")
            Image.MAX_IMAGE_PIXELS = None
            with Image.open(BytesIO(data), formats=_READERS) as image:
                yield image
    except _ERRORS as error:
        is_unknown = isinstance(error, UnidentifiedImageError)
        reason = "it begins like no picture" if is_unknown else str(error)[:100]
        raise ParseError(
            "malformed",
            f"The picture cannot be read ({reason}): it is damaged or incomplete. Save or scan it"
            " again.",
        ) from error


def count_pages(data: bytes, *, most: int) -> int:
    """Number of pages of an image file, `most` + 1 if there are more. Raises ParseError."""
    with _opened(data) as image:
        _check_size(*image.size)
        if image.format not in _PAGED:
            return 1
        return sum(1 for _ in islice(ImageSequence.Iterator(image), most + 1))


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
            "malformed", f"Page {number} of the PDF cannot be rendered. Make the PDF anew."
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
    if image.mode.startswith(("I", "F")):  # 16 bits and more, of which scanners fill any range
        values = np.asarray(image, np.float32)
        low, high = float(values.min()), float(values.max())
        grey = (values - low) * (255.0 / max(high - low, 1.0))
        image = Image.fromarray(grey.astype(np.uint8))
    elif image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image)
        image = paper.convert("L")
    else:
        image = image.convert("L")
    if image.width * image.height > READ_PIXELS:
        image = image.resize(_reduced(*image.size), Image.Resampling.BOX)
    return np.ascontiguousarray(np.asarray(image, np.uint8))
