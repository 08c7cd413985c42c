"""Reading a page as its visitor does."""

from typing import Any

from lxml import html as lxml_html


def parse(answer: Any) -> lxml_html.HtmlElement:
    """The document of an answer."""
    return lxml_html.document_fromstring(answer.text)


def words(element: lxml_html.HtmlElement) -> str:
    """The text as a reader hears it."""
    return " ".join(" ".join(element.itertext()).split())


def rows(tree: lxml_html.HtmlElement) -> list[str]:
    """The first line of each row's name."""
    return [next(row.find("th").itertext()).strip() for row in tree.iterfind(".//tbody/tr")]


def href(tree: lxml_html.HtmlElement, text: str) -> str:
    """The address of the first link with this text."""
    found = (link for link in tree.iterfind(".//a") if link.text_content().strip() == text)
    return str(next(found).get("href"))
