"""XML without a format of its own as readable text: `path: value` lines, record by record, and
paragraphs where it is prose. Begin with `parse_xml`."""

import html
import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.normalise import (
    decode_nonblank,
    language_code,
    normalise_text,
    readable_title,
    without_blobs,
    without_invisible,
)
from reading.parsers.office_package import local_name

_Element = Any
#: Elements whose text needs no name before it.
_PROSE = frozenset(
    {"abstract", "body", "content", "description", "head", "p", "para", "summary", "text", "title"}
)
#: So long a text is prose, whatever its element is called.
_PROSE_CHARACTERS = 200
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,1000}>")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
#: Those of drawings say where lines are.
_WITHOUT_ATTRIBUTES = frozenset({"svg"})


def parse_xml(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Elements and attributes with a value; comments and the names of what only holds others are
    left out. What is no valid XML is read as plain text."""
    root = _root(data) if len(data) <= limits.max_part_bytes else None
    if root is None:
        return ParsedDocument(
            text=decode_nonblank(data), media_type="application/xml", title=readable_title(name)
        )
    has_attributes = local_name(root) not in _WITHOUT_ATTRIBUTES
    about: list[str] = []
    records = root
    # The outermost element that holds several.
    while len(records) == 1 and len(records[0]) and not _is_mixed(records):
        about += _attributes(records, "") if has_attributes else ()
        records = records[0]
    has_records = len(records) and not _is_mixed(records)
    if has_records and has_attributes:
        about += _attributes(records, "")
    values = list(records) if has_records else [records]
    parts = ["\n".join(_lines(each, "", has_attributes)) for each in values]
    text = "\n\n".join(part for part in ["\n".join(about), *parts] if part)
    if not text:
        raise ParseError("no_text", "The XML has no text. Check that the right file was saved.")
    limits.check_characters(len(text), "The XML, written out with its names,")
    title = next((each for each in records if local_name(each) == "title"), None)
    return ParsedDocument(
        text=text,
        media_type="application/xml",
        title=(_text(title) if title is not None else "")[:500] or readable_title(name),
        language=language_code(root.get(_LANGUAGE)),
    )


def _root(data: bytes) -> _Element | None:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True
    )
    try:
        return etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None


def _attributes(element: _Element, path: str) -> Iterator[str]:
    for attribute, value in element.attrib.items():
        if value.strip() and not attribute.startswith("{"):  # `xml:` and `xsi:`
            yield f"{path or local_name(element)}.{attribute}: {_clean(value)}"


def _lines(record: _Element, path: str, has_attributes: bool) -> Iterator[str]:
    """The values in a record; `path` leads to it from its own record."""
    name = local_name(record)
    if has_attributes:
        yield from _attributes(record, path)
    is_mixed = _is_mixed(record)
    if is_mixed or not len(record):
        if text := _text(record):
            is_prose = is_mixed or name in _PROSE or len(text) >= _PROSE_CHARACTERS
            yield text if is_prose else f"{path or name}: {text}"
        return
    for child in record:
        if isinstance(child.tag, str):
            below = f"{path}.{local_name(child)}" if path else local_name(child)
            yield from _lines(child, below, has_attributes)


def _is_mixed(element: _Element) -> bool:
    """Whether words stand between its elements."""
    texts = (element.text, *(child.tail for child in element))
    return len(element) > 0 and any((text or "").strip() for text in texts)


def _text(element: _Element) -> str:
    return _clean("".join(element.itertext()))


def _clean(text: str) -> str:
    """On one line, without the tags of HTML that is quoted in it."""
    if "<" in text and _TAG.search(text):
        text = html.unescape(_TAG.sub(" ", text))
    return without_blobs(without_invisible(normalise_text(" ".join(text.split()))))
