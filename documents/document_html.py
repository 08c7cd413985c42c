"""A document's text as safe HTML, with one passage marked. Begin with `render_document`.

Raw HTML in Markdown becomes text and images become their descriptions (a page must not load from
other sites); `sanitise` applies an allow-list to the result.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from documents.models import Document


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading. `level` is the document's own, 1 to 6; `anchor` is the element's id."""

    title: str
    level: int
    anchor: str


@dataclass(frozen=True, slots=True)
class RenderedDocument:
    """Safe HTML, and the headings in it."""

    html: SafeString
    outline: tuple[OutlineEntry, ...] = ()


#: Keeps the ids of a document apart from those of the page around it.
ANCHOR_PREFIX = "h-"

_PHRASING_TAGS = {
    *("b", "br", "code", "del", "em", "i", "ins", "kbd", "s", "small", "strong", "sub", "sup", "u")
}
_ALLOWED_TAGS = _PHRASING_TAGS | {
    *("a", "blockquote", "div", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "span"),
    *("table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_ALLOWED_ATTRIBUTES = {
    "*": {"class", "id", "tabindex"},
    "a": {"href", "title"},
    "div": {"role", "aria-label"},
    "ol": {"start"},
}
_ALLOWED_SCHEMES = {"http", "https", "mailto"}


def sanitise(html: str) -> str:
    """Only what the renderer may produce (allow-list); links to other sites send no referrer."""
    return nh3.clean(
        html,
        tags=_ALLOWED_TAGS,
        attributes=_ALLOWED_ATTRIBUTES,
        url_schemes=_ALLOWED_SCHEMES,
        # Links inside the document are kept; a relative path has no target here and is dropped.
        url_relative=lambda url: (
            f"#{ANCHOR_PREFIX}{url[1:]}" if url[:1] == "#" and url[1:] else None
        ),
        link_rel="noopener noreferrer nofollow",
    )


#: Tags that only style words, written without attributes.
_STYLING_TAG = re.compile(r"</?(?:b|br|code|del|em|i|ins|kbd|s|small|strong|sub|sup|u)\s*/?>", re.I)
_ALIGNMENT = re.compile(r"text-align:(left|center|right)")


class SafeRenderer(RendererHTML):
    """Markdown tokens as safe HTML: raw HTML as text, images as their descriptions, wide blocks
    that scroll and are reachable by keyboard."""

    def html_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The text inside raw HTML, escaped, with styling tags but without their attributes."""
        text = nh3.clean(tokens[idx].content, tags=_PHRASING_TAGS, attributes={}).strip()
        return f"<p{self.renderAttrs(tokens[idx])}>{text}</p>\n" if text else ""

    def html_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Styling tags are kept; others are dropped, but not their contents."""
        content = tokens[idx].content
        return content if _STYLING_TAG.fullmatch(content) else ""

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """The image's description: loading it would call another site."""
        described = self.renderInlineAsText(tokens[idx].children or [], options, env)
        return f'<span class="image">{escapeHtml(described) or "image"}</span>'

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """A code block, indented or fenced."""
        tokens[idx].attrSet("tabindex", "0")
        attributes = self.renderAttrs(tokens[idx])
        return f"<pre{attributes}><code>{escapeHtml(tokens[idx].content)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The same for a fenced one."""
        return self.code_block(tokens, idx)

    def table_open(self, *_: Any) -> str:
        """Open a table in a scrollable box."""
        return '<div class="wide" tabindex="0" role="group" aria-label="Table">\n<table>\n'

    def table_close(self, *_: Any) -> str:
        """Close the table and its scrollable box."""
        return "</table>\n</div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """A cell with its alignment as class."""
        # A class, because the content security policy of a page allows no style attribute.
        alignment = _ALIGNMENT.search(str(tokens[idx].attrGet("style") or ""))
        chosen = f' class="{alignment[1]}"' if alignment else ""
        return f"<{tokens[idx].tag}{chosen}>"

    td_open = th_open

    def anchor(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """An empty element that is only a link target."""
        return f"<span{self.renderAttrs(tokens[idx])}></span>"


#: The indentation behind them is the next paragraph's: in source code it has a meaning.
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def render_plain(
    text: str, *, passage: tuple[int, int] | None, title: str = ""
) -> RenderedDocument:
    """One `<p>` per paragraph, the passage marked to the character; line breaks and indentation are
    left to the style sheet."""
    parts: list[str] = []
    marked = False
    for start, end in _paragraphs(text):
        if passage is None or passage[1] <= start or passage[0] >= end:
            parts.append(f"<p>{escape(text[start:end])}</p>")
            continue
        anchor = "" if marked else ' id="passage" tabindex="-1"'
        marked = True
        if passage[0] <= start and end <= passage[1]:
            parts.append(f'<p class="passage"{anchor}>{escape(text[start:end])}</p>')
            continue
        first, last = max(passage[0], start), min(passage[1], end)
        inside = f'<mark class="passage"{anchor}>{escape(text[first:last])}</mark>'
        parts.append(f"<p>{escape(text[start:first])}{inside}{escape(text[last:end])}</p>")
    return RenderedDocument(html=mark_safe("\n".join(parts)))  # noqa: S308 - escaped below


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.start()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


#: Blocks without blocks in them that a passage may touch. All carry the lines they come from.
_MARKABLE_TOKENS = {
    "paragraph_open",
    "heading_open",
    "fence",
    "code_block",
    "html_block",
    "tr_open",
}

_parser = MarkdownIt("commonmark", renderer_cls=SafeRenderer).enable(["table", "strikethrough"])


def render_markdown(
    text: str,
    *,
    passage: tuple[int, int] | None,
    quotation: tuple[int, int] | None = None,
    title: str = "",
) -> RenderedDocument:
    """Render `text`; every block that the passage touches has the class `passage`, and every row of
    a table in it that the quotation touches the class `quoted`. The first of these, else of those,
    has the id `passage`.

    A first heading that only repeats `title` is left out, because the page shows the title.
    """
    tokens = _parser.parse(text)
    if passage is not None:
        # The lines that hold the passage; blocks that share one of them get the class `passage`.
        lines = range(text.count("\n", 0, passage[0]), text.count("\n", 0, passage[1]) + 1)
        start, end = quotation or (0, 0)
        quoted = range(text.count("\n", 0, start), text.count("\n", 0, end) + 1)
        first: Token | None = None
        first_quoted: Token | None = None
        for index, token in enumerate(tokens):
            if token.type not in _MARKABLE_TOKENS or token.map is None:
                continue
            if token.map[0] < lines.stop and lines.start < token.map[1]:
                if token.hidden:
                    # A paragraph of a tight list has no element of its own: make it a span.
                    for half in (token, tokens[index + 2]):
                        half.hidden, half.block, half.tag = False, False, "span"
                token.attrJoin("class", "passage")
                first = first or token
                is_quoted = token.map[0] < quoted.stop and quoted.start < token.map[1]
                if quotation and token.type == "tr_open" and is_quoted:
                    token.attrJoin("class", "quoted")
                    first_quoted = first_quoted or token
        if anchor := first_quoted or first:
            anchor.attrSet("id", "passage")
            anchor.attrSet("tabindex", "-1")
    outline = _anchor_headings(tokens)
    if (
        outline
        and outline[0].title.strip() == title.strip()
        and (tokens[0].type == "heading_open" and "passage" not in str(tokens[0].attrGet("class")))
    ):
        tokens, outline = tokens[3:], outline[1:]
    html = _parser.renderer.render(tokens, _parser.options, {})
    return RenderedDocument(html=mark_safe(sanitise(html)), outline=tuple(outline))  # noqa: S308


def _anchor_headings(tokens: Sequence[Token]) -> list[OutlineEntry]:
    """Give every heading an id, move it one level below the page's own, and list them."""
    outline: list[OutlineEntry] = []
    taken: set[str] = set()
    for opening, inline, closing in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if opening.type != "heading_open":
            continue
        level = int(opening.tag[1])
        children = inline.children or ()
        words = [
            " " if child.type in {"softbreak", "hardbreak"} else child.content
            for child in children
            if child.type in {"text", "code_inline", "softbreak", "hardbreak", "image"}
        ]
        title = "".join(words).strip()
        wanted = ANCHOR_PREFIX + (slugify(title, allow_unicode=True) or "section")
        anchor, number = wanted, 1
        while anchor in taken:
            number += 1
            anchor = f"{wanted}-{number}"
        taken.add(anchor)
        opening.tag = closing.tag = f"h{min(level + 1, 6)}"
        if opening.attrGet("id") == "passage":
            # An empty target for a heading whose id is taken by the passage.
            inline.children = [
                Token("anchor", "span", 0, attrs={"id": anchor}),
                *(inline.children or ()),
            ]
        else:
            opening.attrSet("id", anchor)
        outline.append(OutlineEntry(title=title or "…", level=level, anchor=anchor))
    return outline


def render_document(
    document: Document,
    text: str,
    *,
    passage: tuple[int, int] | None = None,
    quotation: tuple[int, int] | None = None,
) -> RenderedDocument:
    """Render `text`, all of the document's or a part of it.

    `passage` is a (start, end) pair of character offsets into `text`; what lies outside is ignored.
    The first marked element has the id `passage`, every one the class `passage`. `quotation` are
    such offsets within the passage: rows of tables there are marked, too.
    """
    if passage is not None:
        # Within the text, and without surrounding white space.
        start, end = max(passage[0], 0), min(passage[1], len(text))
        marked = text[start:end]
        start += len(marked) - len(marked.lstrip())
        end -= len(marked) - len(marked.rstrip())
        passage = (start, end) if start < end else None
    if document.rendering == "markdown":
        return render_markdown(text, passage=passage, quotation=quotation, title=document.title)
    return render_plain(text, passage=passage, title=document.title)
