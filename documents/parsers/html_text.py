"""The text of one HTML element on one line."""

from lxml import etree
from lxml.html import HtmlElement

from documents.parsers.html_tags import SEPARATING


def one_line(element: HtmlElement) -> str:
    """Words separated by one space; inline marks vanish, images give their alternative text."""
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in SEPARATING:
            parts.append(" ")
        if event == "start":
            parts += [node.get("alt", "") if node.tag == "img" else "", node.text or ""]
        elif node is not element:
            parts.append(node.tail or "")
    return " ".join(clean("".join(parts)).split())


def clean(text: str) -> str:
    """Without soft hyphens, which would hide a word from search."""
    return text.replace("\u00ad", "")
