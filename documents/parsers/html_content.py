"""Which part of a web page is the document: the rest is scripts, navigation and banners."""

from collections.abc import Iterator

from lxml import etree
from lxml.html import HtmlElement

from documents.parsers.html_tags import AROUND_ROLES, NEVER_TEXT

_DOCUMENT = frozenset({"main", "article"})
_MAY_BE_HIDDEN = "//body//*[@hidden or @aria-hidden or @style]"
_MAIN = "(//main | //*[@role='main'])[1]"


def remove_hidden(root: HtmlElement) -> None:
    """Drop from the tree what no reader ever sees as text.

    A page that hides all of its text until a script has run shows it here.
    """
    _drop(list(root.iter(*NEVER_TEXT)))
    _drop_unless_all(root, [node for node in root.xpath(_MAY_BE_HIDDEN) if _is_invisible(node)])


def main_content(body: HtmlElement) -> HtmlElement:
    """The element that holds the document, with the boilerplate around it dropped.

    Call `remove_hidden` first. A page that is nothing but boilerplate is kept whole.
    """
    total = _words(body)
    for candidate in (*body.xpath(_MAIN), *_only_article(body)):
        # A hollow <main> that a script was meant to fill holds less than a fifth.
        if _words(candidate) * 5 >= total > 0:
            body = candidate
            break
    _drop_unless_all(body, list(_around(body)))
    return body


def _only_article(body: HtmlElement) -> list[HtmlElement]:
    articles = body.xpath(".//article")
    return articles if len(articles) == 1 else []


def _around(body: HtmlElement) -> Iterator[HtmlElement]:
    """The outermost elements that only surround the document, in one walk."""
    articles = int(body.tag in _DOCUMENT)
    walker = etree.iterwalk(body, events=("start", "end"))
    for event, node in walker:
        if node is not body and node.tag in _DOCUMENT:
            articles += 1 if event == "start" else -1
        elif event == "start" and node is not body and _is_around(node, in_article=articles > 0):
            walker.skip_subtree()
            yield node


def _is_around(node: HtmlElement, *, in_article: bool) -> bool:
    """An article's own header and footer belong to it; a header with the title is no banner."""
    if node.get("role") in AROUND_ROLES or node.tag in {"nav", "aside"}:
        return True
    return node.tag in {"header", "footer"} and not in_article and node.find(".//h1") is None


def _is_invisible(node: HtmlElement) -> bool:
    if node.get("hidden") is not None or node.get("aria-hidden") == "true":
        return True
    style = "".join(node.get("style", "").lower().split())
    return "display:none" in style or "visibility:hidden" in style


def _words(node: HtmlElement) -> int:
    return sum(len(text.split()) for text in node.itertext())


def _drop_unless_all(root: HtmlElement, nodes: list[HtmlElement]) -> None:
    if _words(root) > sum(_words(node) for node in nodes):
        _drop(nodes)


def _drop(nodes: list[HtmlElement]) -> None:
    for node in nodes:
        if node.getparent() is not None:
            node.drop_tree()
