"""A tree of HTML elements as Markdown that reads well and keeps headings, lists, tables, code."""

import re
from dataclasses import dataclass, field

from lxml import etree
from lxml.html import HtmlElement

from documents.parsers.base import Heading
from documents.parsers.html_table import pipe_table
from documents.parsers.html_tags import BLOCKS, CODE, HEADINGS, LISTS
from documents.parsers.html_text import one_line
from documents.parsers.markdown_writer import MarkdownWriter


def to_markdown(root: HtmlElement) -> tuple[str, tuple[Heading, ...]]:
    """The text of `root` and its headings with their offsets in that text."""
    walk = _Walk()
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            walk.end(element)
            if element is not root:
                walk.out.write(element.tail or "")
        elif walk.whole(element):
            walker.skip_subtree()
        else:
            walk.start(element)
    return walk.out.finish()


@dataclass(slots=True)
class _Walk:
    out: MarkdownWriter = field(default_factory=MarkdownWriter)
    counters: list[int | None] = field(default_factory=list)

    def whole(self, element: HtmlElement) -> bool:
        """Write an element that is taken as one; False if its children are to be walked."""
        match element.tag:
            case tag if tag in HEADINGS:
                self.out.heading(int(tag[1]), one_line(element))
            case "pre":
                self.out.code(_raw_text(element), language=_code_language(element))
            case tag if tag in CODE:
                self.out.write(_inline_code(one_line(element)))
            case "table":
                lines = pipe_table(element)
                self.out.lines(lines or [])
                return lines is not None
            case _:
                return False
        return True

    def start(self, element: HtmlElement) -> None:
        if element.tag in BLOCKS:
            self.out.end_block()
        match element.tag:
            case "br":
                self.out.end_line()
            case "img":
                self.out.write(element.get("alt", ""))
            case "blockquote":
                self.out.open("> ", "> ")
            case tag if tag in LISTS:
                self.counters.append(_first_number(element) if tag == "ol" else None)
                self.out.open_list()
            case "li":
                marker = self._marker()
                self.out.open(marker, " " * len(marker))
        self.out.write(element.text or "")

    def end(self, element: HtmlElement) -> None:
        if element.tag not in BLOCKS:
            return
        self.out.end_block()
        if element.tag in {"blockquote", "li"}:
            self.out.close()
        elif element.tag in LISTS:
            self.counters.pop()
            self.out.close_list()

    def _marker(self) -> str:
        number = self.counters[-1] if self.counters else None
        if number is None:
            return "- "
        self.counters[-1] = number + 1
        return f"{number}. "


def _first_number(element: HtmlElement) -> int:
    start = element.get("start", "1")
    return int(start) if re.fullmatch(r"[0-9]{1,8}", start) else 1


def _raw_text(element: HtmlElement) -> str:
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            parts.append("\n" if node.tag == "br" else node.text or "")
        elif node is not element:
            parts.append(node.tail or "")
    return "".join(parts)


def _code_language(element: HtmlElement) -> str:
    classes = " ".join(node.get("class", "") for node in (element, *element.findall("code")))
    match = re.search(r"\b(?:language|lang|highlight-source)-([\w+#-]{1,20})", classes)
    return match[1] if match else ""


def _inline_code(text: str) -> str:
    return f"`{text}`" if text and "`" not in text else text
