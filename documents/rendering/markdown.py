"""Markdown as HTML that is safe to show, whatever the author wrote into it.

Raw HTML in the text becomes text, images become their descriptions (a page must not call other
sites), and an allow-list stands behind all of it.
"""

from collections.abc import Iterable, Sequence

from django.utils.safestring import mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

from documents.rendering.renderer import SafeRenderer
from documents.rendering.result import OutlineEntry, RenderedDocument
from documents.rendering.sanitising import ANCHOR_PREFIX, sanitise

#: Blocks without blocks in them that a passage may touch. All carry the lines they come from.
_MARKABLE = {"paragraph_open", "heading_open", "fence", "code_block", "html_block", "tr_open"}

_parser = MarkdownIt("commonmark", renderer_cls=SafeRenderer).enable(["table", "strikethrough"])


def render_markdown(
    text: str, *, passage: tuple[int, int] | None, title: str = ""
) -> RenderedDocument:
    """Render `text`; every block that the passage touches has the class `passage`.

    A first heading that only repeats `title` is left out, because the page shows the title.
    """
    tokens = _parser.parse(text)
    if passage is not None:
        _mark(tokens, _lines(text, *passage))
    outline = _anchor_headings(tokens)
    if outline and outline[0].title.strip() == title.strip() and _is_unmarked_start(tokens):
        tokens, outline = tokens[3:], outline[1:]
    html = _parser.renderer.render(tokens, _parser.options, {})
    return RenderedDocument(html=mark_safe(sanitise(html)), outline=tuple(outline))  # noqa: S308


def _lines(text: str, start: int, end: int) -> range:
    """The lines that hold the characters from `start` to `end`."""
    return range(text.count("\n", 0, start), text.count("\n", 0, end) + 1)


def _mark(tokens: Sequence[Token], lines: range) -> None:
    """Class the blocks that share a line with `lines`."""
    first = True
    for index, token in enumerate(tokens):
        if token.type not in _MARKABLE or token.map is None:
            continue
        if token.map[0] < lines.stop and lines.start < token.map[1]:
            if token.hidden:
                _show_as_span(token, tokens[index + 2])
            token.attrJoin("class", "passage")
            if first:
                token.attrSet("id", "passage")
                token.attrSet("tabindex", "-1")
                first = False


def _show_as_span(opening: Token, closing: Token) -> None:
    """A paragraph of a tight list has no element of its own: give it one, to be marked."""
    for token in (opening, closing):
        token.hidden, token.block, token.tag = False, False, "span"


def _anchor_headings(tokens: Sequence[Token]) -> list[OutlineEntry]:
    """Give every heading an id, push it one level below the page's own, and list them."""
    outline: list[OutlineEntry] = []
    taken: set[str] = set()
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type != "heading_open":
            continue
        level = int(opening.tag[1])
        title = _plain_text(inline.children or ())
        anchor = _unique(ANCHOR_PREFIX + (slugify(title, allow_unicode=True) or "section"), taken)
        opening.tag = closing.tag = f"h{min(level + 1, 6)}"
        if opening.attrGet("id") == "passage":
            inline.children = [_anchor(anchor), *(inline.children or ())]
        else:
            opening.attrSet("id", anchor)
        outline.append(OutlineEntry(title=title or "…", level=level, anchor=anchor))
    return outline


def _anchor(name: str) -> Token:
    """An empty element for a heading whose id is taken by the passage."""
    return Token("anchor", "span", 0, attrs={"id": name})


def _unique(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name


def _plain_text(children: Iterable[Token]) -> str:
    words = [
        " " if child.type in {"softbreak", "hardbreak"} else child.content
        for child in children
        if child.type in {"text", "code_inline", "softbreak", "hardbreak", "image"}
    ]
    return "".join(words).strip()


def _is_unmarked_start(tokens: Sequence[Token]) -> bool:
    return tokens[0].type == "heading_open" and "passage" not in str(tokens[0].attrGet("class"))
