"""A page of the documentation as HTML, with an outline and its sections to search in."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from documents.rendering.renderer import SafeRenderer
from ragsite.handbook.contents import Page, target

_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_SHOWN_IN_OUTLINE = (2, 3)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it, as plain text, up to the next heading."""

    title: str
    level: int
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """`sections` begins with the page's own heading."""

    html: SafeString
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        return self.sections[0].title if self.sections else ""

    @property
    def outline(self) -> list[Section]:
        return [section for section in self.sections if section.level in _SHOWN_IN_OUTLINE]


def render(page: Page) -> Rendered:
    """Rendered once for each state of the file."""
    return _render(page, page.file.stat().st_mtime_ns)


def anchor_of(title: str) -> str:
    """As GitHub makes them, so that a link with an anchor works in both places."""
    return _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-")


class _Renderer(SafeRenderer):
    """Links stay on the site, images of docs/images are shown, headings can be linked to."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """A link; without an address where what it names is not served."""
        href = target(env["page"], str(tokens[idx].attrGet("href")))
        rel = ' rel="noopener noreferrer"' if "://" in href else ""
        return f'<a href="{escape(href)}"{rel}>' if href else "<a>"

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """An image of ours, or its description."""
        source = target(env["page"], str(tokens[idx].attrGet("src")))
        if "://" in source or not source:
            return super().image(tokens, idx, options, env)
        described = self.renderInlineAsText(tokens[idx].children or [], options, env)
        return f'<img src="{escape(source)}" alt="{escape(described)}" loading="lazy">'

    def heading_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Behind a heading stands the link to it."""
        opening = tokens[idx - 2]
        anchor, title = opening.attrGet("id"), escape(tokens[idx - 1].content)
        link = f'<a class="anchor" href="#{anchor}" aria-label="Link to “{title}”">#</a>'
        return f"{link if opening.tag != 'h1' else ''}</{opening.tag}>\n"


_parser = MarkdownIt("commonmark", renderer_cls=_Renderer).enable(["table", "strikethrough"])


@lru_cache(maxsize=256)
def _render(page: Page, changed: int) -> Rendered:
    tokens = _parser.parse(page.file.read_text())
    taken: set[str] = set()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", _unique(anchor_of(_words(inline)), taken))
    env = {"page": page}
    html = _parser.renderer.render(tokens, _parser.options, env)
    return Rendered(
        html=mark_safe(html),  # noqa: S308 - the project's own files, raw HTML in them is text
        sections=tuple(_sections(tokens, env)),
    )


def _sections(tokens: Sequence[Token], env: dict[str, Any]) -> Iterator[Section]:
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        heading = tokens[start]
        html = _parser.renderer.render(list(tokens[start + 3 : end]), _parser.options, env)
        yield Section(
            title=_words(tokens[start + 1]),
            level=int(heading.tag[1]),
            anchor=str(heading.attrGet("id")),
            text=" ".join(strip_tags(html).split()),
        )


def _words(inline: Token) -> str:
    """A heading without its markup."""
    shown = {"text", "code_inline"}
    return "".join(each.content for each in inline.children or [] if each.type in shown)


def _unique(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    taken.add(name)
    return name
