"""HTML tag names by their meaning for the text, and the text of one element on one line."""

from lxml import etree
from lxml.html import HtmlElement

# One string each: a list of words reads better on four lines than on forty.
# ruff: noqa: SIM905

NON_TEXT_TAGS = (
    "script style template noscript svg math iframe object embed applet canvas audio video map "
    "button select textarea input datalist dialog"
).split()
BOILERPLATE_ROLES = frozenset("navigation banner contentinfo complementary search".split())

HEADING_TAGS = frozenset("h1 h2 h3 h4 h5 h6".split())
LIST_TAGS = frozenset("ul ol menu dir".split())
CODE_TAGS = frozenset("code kbd samp tt".split())
BLOCK_TAGS = LIST_TAGS | frozenset(
    "html body div p section article main header footer aside nav address figure figcaption "
    "details summary fieldset legend form dl dt dd hr center table thead tbody tfoot tr td th "
    "caption hgroup label blockquote li".split()
)
#: Elements that make a table a means of layout when one of its cells holds them.
LAYOUT_CELL_TAGS = "h1 h2 h3 h4 h5 h6 ul ol dl pre blockquote table".split()
#: Elements that separate words when everything is written on one line.
SEPARATING_TAGS = frozenset("br p div li dt dd tr td th h1 h2 h3 h4 h5 h6 section article".split())


def element_text(element: HtmlElement) -> str:
    """Text with single spaces between words; inline markup is dropped, images give their
    alternative text."""
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in SEPARATING_TAGS:
            parts.append(" ")
        if event == "start":
            parts += [node.get("alt", "") if node.tag == "img" else "", node.text or ""]
        elif node is not element:
            parts.append(node.tail or "")
    return single_line("".join(parts))


def without_soft_hyphens(text: str) -> str:
    """Without soft hyphens, which would hide words from the search."""
    return text.replace("\u00ad", "")


def single_line(text: str) -> str:
    """The words with single spaces between them, without soft hyphens."""
    return " ".join(without_soft_hyphens(text).split())
