"""Web pages and texts that a program put into a Word file as they were, for Word to convert."""

import email.policy
from email import message_from_bytes

from documents.parsers.base import ParsedDocument, ParseError
from documents.parsers.html import HtmlParser
from documents.parsers.plain import PlainParser


def foreign_document(data: bytes, *, part: str) -> ParsedDocument | None:
    """What `w:altChunk` refers to; None for what we cannot read, such as RTF."""
    try:
        if part.endswith((".htm", ".html", ".xhtml")):
            return HtmlParser(whole=True).parse(data, name=part)
        if part.endswith((".mht", ".mhtml")):
            return _web_archive(data, part)
        return PlainParser().parse(data, name=part) if part.endswith(".txt") else None
    except (ParseError, LookupError, AttributeError):  # of a torn archive, or one of no charset
        return None


def _web_archive(data: bytes, part: str) -> ParsedDocument | None:
    """The page of a web archive, which is an e-mail with its images as attachments."""
    message = message_from_bytes(data, policy=email.policy.default)
    body = message.get_body(preferencelist=("html",))
    if body is None:
        return None
    return HtmlParser(whole=True).parse(body.get_content().encode(), name=part)
