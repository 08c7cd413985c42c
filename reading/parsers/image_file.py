"""Image files as Pillow opens them, bounded before they are decoded: `open_image` and, for what is
to be seen on paper, `on_white`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import islice

from pi_heif import HeifImagePlugin  # noqa: F401
from PIL import (  # noqa: F401 (the readers are known once they are imported)
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageSequence,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

#: Readers of Pillow that may see a file: of the others some start programs.
_READERS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "AVIF", "HEIF")
#: Only these have pages; the frames of others are an animation, of which the first is taken.
PAGED = frozenset({"TIFF"})
#: Pixels of a picture that is decoded: a photograph of 100 megapixels takes 300 MB.
MAX_PIXELS = 100_000_000
#: What Pillow raises for files that it cannot read.
IMAGE_ERRORS = (
    *(OSError, ValueError, SyntaxError, TypeError, ArithmeticError, LookupError, RuntimeError),
)


@contextmanager
def open_image(data: bytes) -> Iterator[Image.Image]:
    """The image, not yet decoded. Raises IMAGE_ERRORS, also while it is used."""
    with warnings.catch_warnings():
        # Its own bound is MAX_PIXELS, which callers check.
        warnings.simplefilter("ignore")
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(BytesIO(data), formats=_READERS) as image:
            yield image


def count_frames(image: Image.Image, *, most: int) -> int:
    """Number of pages, at most `most`."""
    if image.format not in PAGED:
        return 1
    return sum(1 for _ in islice(ImageSequence.Iterator(image), most))


def on_white(image: Image.Image) -> Image.Image:
    """The image in eight bits a channel, on white where it is transparent."""
    if image.mode.startswith(("I", "F")):  # 16 bits and more, of which scanners fill any range
        values = image.convert("F")
        low, high = (float(value) for value in values.getextrema())  # type: ignore[arg-type]
        factor = 255.0 / max(high - low, 1.0)
        return values.point(lambda value: value * factor - low * factor).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, "white")
        paper.alpha_composite(image)
        return paper
    return image
