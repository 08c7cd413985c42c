"""Which part of a web page is the document: the rest is scripts, navigation and banners."""

from lxml.html import HtmlElement

from documents.parsers.html_tags import AROUND_ROLES, AROUND_TEXT, NEVER_TEXT

_MAIN = "(//main | //*[@role='main'])[1]"


def remove_hidden(root: HtmlElement) -> None:
    """Drop from the tree what no reader ever sees as text."""
    _drop(list(root.iter(*NEVER_TEXT)))
    _drop(root.xpath("//*[@hidden or @aria-hidden='true']"))
    _drop([node for node in root.xpath("//*[@style]") if _is_invisible(node)])


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
    around = [node for node in body.iter() if node is not body and _is_around(node, body)]
    if _words(body) > sum(_words(node) for node in _outermost(around)):
        _drop(around)
    return body


def _only_article(body: HtmlElement) -> list[HtmlElement]:
    articles = body.xpath(".//article")
    return articles if len(articles) == 1 else []


def _is_around(node: HtmlElement, body: HtmlElement) -> bool:
    if node.get("role") in AROUND_ROLES or node.tag == "nav":
        return True
    if node.tag not in AROUND_TEXT:
        return False
    # An article's own header and footer belong to it; a header with the title is no banner.
    inside = any(parent.tag in {"article", "main"} for parent in node.iterancestors())
    return node.tag == "aside" or not (inside or node.find(".//h1") is not None)


def _outermost(nodes: list[HtmlElement]) -> list[HtmlElement]:
    chosen: set[HtmlElement] = set(nodes)
    return [node for node in nodes if not any(up in chosen for up in node.iterancestors())]


def _is_invisible(node: HtmlElement) -> bool:
    style = "".join(node.get("style", "").lower().split())
    return "display:none" in style or "visibility:hidden" in style


def _words(node: HtmlElement) -> int:
    return sum(len(text.split()) for text in node.itertext())


def _drop(nodes: list[HtmlElement]) -> None:
    for node in nodes:
        if node.getparent() is not None:
            node.drop_tree()
