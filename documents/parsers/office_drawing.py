"""What drawings say: text boxes, descriptions of pictures, diagrams (SmartArt) and charts."""

from collections.abc import Iterator

from documents.parsers.html_text import clean
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office import Package
from documents.parsers.office_chart import write_chart
from documents.parsers.office_xml import A, Element, M, R, alternatives, local_name

_MACHINE_SAID = ("automatically generated", "ai-generated content", "automatisch generiert")


def write_drawing(out: MarkdownWriter, package: Package, part: str) -> None:
    """All of a sheet's drawing part."""
    root = package.xml(part)
    for text in paragraphs(root):
        out.write(text)
        out.end_block()
    write_graphics(out, package, part, root)


def write_graphics(out: MarkdownWriter, package: Package, part: str, node: Element) -> None:
    """Diagrams and charts that `node`, an element of `part`, refers to."""
    references = list(_references(node))
    relations = package.related(part) if references else {}
    for reference in references:
        relation = relations.get(reference)
        root = package.optional_xml(relation.target) if relation else None
        if root is None:
            continue
        if local_name(root) == "dataModel":
            out.lines([f"- {text}" for text in paragraphs(root)])
        else:
            write_chart(out, root)


def paragraphs(node: Element) -> Iterator[str]:
    """The text of each DrawingML paragraph that has any, on one line."""
    for element in without_doubles(node):
        if element.tag == f"{A}p" and (text := paragraph_text(element)):
            yield text


def paragraph_text(paragraph: Element) -> str:
    """Its runs on one line; the number of the slide is no text."""
    parts = []
    for node in paragraph.iter(f"{A}t", f"{A}br", f"{M}t"):
        parent = node.getparent()
        if parent is None or parent.get("type") != "slidenum":
            parts.append(" " if node.tag == f"{A}br" else node.text or "")
    return " ".join(clean("".join(parts)).split())


def description(node: Element) -> str:
    """What the author says that a picture shows; not what a program guesses."""
    words = " ".join(clean(node.get("descr", "")).split())
    return "" if any(said in words.lower() for said in _MACHINE_SAID) else words


def without_doubles(node: Element) -> Iterator[Element]:
    """The element and all below, of alternatives only one."""
    yield node
    for child in alternatives(node) if local_name(node) == "AlternateContent" else node:
        yield from without_doubles(child)


def _references(node: Element) -> Iterator[str]:
    for element in without_doubles(node):
        name = local_name(element)
        reference = element.get(f"{R}dm" if name == "relIds" else f"{R}id")
        if reference and name in {"relIds", "chart"}:
            yield reference
