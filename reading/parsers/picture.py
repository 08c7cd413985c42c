"""Pictures: scans and photographs in an image file, a page each. Their text is what OCR reads."""

from collections.abc import Mapping

from reading.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from reading.parsers.normalise import normalise_text, readable_title

#: Media types of what this module reads.
PICTURES = tuple(
    f"image/{kind}" for kind in ("png", "jpeg", "tiff", "webp", "gif", "bmp", "avif", "heic")
)
_HEIC = "image/heic"
#: A still picture in HEVC, as phones take them, or one whose coding is named later.
_HEIC_BRANDS = frozenset({b"ftypheic", b"ftypheix", b"ftyphevc", b"ftypheim", b"ftypmif1"})
#: By the first bytes of a file.
_MEDIA_TYPES = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)
_PAGE_BREAK = "\n\n"


def picture_media_type(data: bytes) -> str:
    """The media type of a picture that this module reads; empty for anything else."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:12] in {b"ftypavif", b"ftypavis"}:
        return "image/avif"
    if data[4:12] in _HEIC_BRANDS:
        return _HEIC
    if data[:2] == b"BM" and data[6:10] == bytes(4):
        return "image/bmp"
    return next((name for magic, name in _MEDIA_TYPES if data.startswith(magic)), "")


def needs_threads(head: bytes) -> bool:
    """Whether decoding a file that begins with `head` starts threads: the HEVC decoder has no other
    way."""
    return picture_media_type(head) == _HEIC


def parse_picture(
    data: bytes,
    *,
    name: str,
    limits: Limits = DEFAULT_LIMITS,
    page_texts: Mapping[int, str] | None = None,
) -> ParsedDocument:
    """PNG, JPEG, WebP, AVIF, HEIC, BMP, the first picture of a GIF, all pages of a TIFF.

    All pages are `scans`, unless `page_texts` has what was read off them. Nothing else is taken
    from the file: what a camera writes into it, such as the place, is nobody's business.
    """
    from reading.ocr.pictures import count_pages  # noqa: PLC0415 (its libraries take 200 ms)

    count = count_pages(data, most=limits.max_pages)
    if count > limits.max_pages:
        raise ParseError(
            "too_large",
            f"The picture has more than {limits.max_pages:,} pages. Split it.",
        )
    texts = page_texts or {}
    if texts and not any(text.strip() for text in texts.values()):
        raise ParseError(
            "no_text",
            "No text was recognized in the picture. If it has text, scan or photograph it at a"
            " higher resolution.",
        )
    parts: list[str] = []
    pages: list[Page] = []
    offset = 0
    for number in range(1, count + 1) if texts else ():
        part = normalise_text(texts.get(number, "")).strip("\n")
        pages.append(Page(offset, number))
        parts.append(part)
        offset += len(part) + len(_PAGE_BREAK)
    whole = _PAGE_BREAK.join(parts)
    limits.check_characters(len(whole), "The picture")
    return ParsedDocument(
        text=whole,
        media_type=picture_media_type(data),
        title=readable_title(name),
        pages=tuple(pages) if count > 1 else (),
        scans=() if texts else tuple(range(1, count + 1)),
        metadata={"page_count": count} if count > 1 else {},
    )
