"""An answer as safe HTML: Markdown, with its citations as links to sources and doubts marked.

What a model writes is as little trusted as what a document holds. Its addresses are shown and not
linked: a document may have told it to write them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from documents.rendering.renderer import SafeRenderer

#: Stand in the text while it goes through Markdown: where a doubt begins and ends, and in front of
#: the number of what is really a citation.
DOUBT, END, CITED = "\ue000", "\ue001", "\ue002"
_RESERVED = str.maketrans(dict.fromkeys((DOUBT, END, CITED), " "))
#: What begins a block. A sentence begins behind it, or the block would be none.
_BLOCK_START = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6}|>+)[ \t]+)*")
_CITATION = re.compile(rf"\[{CITED}(\d+)\]")
_TAGS = {
    *("a", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li"),
    *("mark", "ol", "p", "pre", "s", "span", "strong", "sub", "sup", "u", "ul", "b", "i", "ins"),
    *("table", "tbody", "td", "th", "thead", "tr", "kbd", "small"),
}
_ATTRIBUTES = {
    "*": {"class", "tabindex"},
    "a": {"href", "data-cite", "aria-label"},
    "div": {"role", "aria-label"},
    "mark": {"title"},
    "ol": {"start"},
}
_ELSEWHERE = re.compile(r"[a-z][a-z\d+.-]*:|//", re.IGNORECASE)
_OWN_LINK = re.compile(r"#source-\d+-\d+")


class AnswerRenderer(SafeRenderer):
    """Documents' renderer, but for links, which become their words and the address.

    An address within the documents is left out: it says nothing, and leads nowhere from here.
    """

    def link_open(self, *_: Any) -> str:
        """Nothing: the words follow."""
        return ""

    def link_close(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The address, where the words are not the address already."""
        opening = next(token for token in tokens[idx::-1] if token.type == "link_open")
        address = str(opening.attrGet("href"))
        is_shown = opening.info != "auto" and _ELSEWHERE.match(address)
        return f" ({escape(address)})" if is_shown else ""

    def citation(self, tokens: Sequence[Token], idx: int, _: Any, env: Any) -> str:
        """A link to the source beside the answer."""
        number = tokens[idx].content
        label = escape(f"Source {number}: {env['sources'][int(number)]}")
        return (
            f'<a class="cite" href="#source-{env["turn"]}-{number}" data-cite="{number}"'
            f' aria-label="{label}">{number}</a>'
        )


def _citation(state: StateInline, silent: bool) -> bool:
    """The inline rule for a citation."""
    found = _CITATION.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = found[1]
    state.pos = found.end()
    return True


_parser = (
    MarkdownIt("commonmark", renderer_cls=AnswerRenderer)
    .enable(["table", "strikethrough"])
    .disable("reference")
)
_parser.inline.ruler.before("link", "citation", _citation)


def render_answer(
    text: str,
    *,
    turn: int,
    sources: Mapping[int, str],
    citations: Iterable[tuple[int, int]] = (),
    doubts: Iterable[tuple[int, int]] = (),
) -> SafeString:
    """`sources` are titles by number. `citations` are (offset, number), `doubts` (start, end) of
    sentences without support, both in `text`.

    The links point to elements with the id `source-TURN-NUMBER`.
    """
    text = text.translate(_RESERVED)
    edits = [*_citation_edits(text, sources, citations), *_doubt_edits(text, doubts)]
    for at, mark in sorted(edits, reverse=True):
        text = text[:at] + mark + text[at:]
    tokens = _parser.parse(text, env := {"turn": turn, "sources": sources})
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    html = _parser.renderer.render(tokens, _parser.options, env)
    html = html.replace(DOUBT, '<mark class="doubt" title="No source says this">')
    # None is left but in code, where Markdown took no notice of it.
    html = html.replace(END, "</mark>").replace(CITED, "")
    return mark_safe(_sanitised(html))  # noqa: S308


def _citation_edits(
    text: str, sources: Mapping[int, str], citations: Iterable[tuple[int, int]]
) -> Iterable[tuple[int, str]]:
    for at, number in set(citations):
        if number in sources and text.startswith(f"[{number}]", at):
            yield at + 1, CITED


def _doubt_edits(text: str, doubts: Iterable[tuple[int, int]]) -> Iterable[tuple[int, str]]:
    """Within one block each: a mark that goes across two would tear both."""
    for start, end in doubts:
        block = _BLOCK_START.match(text, start, end)
        begin = block.end() if block else start
        sentence = text[begin:end].rstrip()
        if sentence and "\n\n" not in sentence:
            yield begin, DOUBT
            yield begin + len(sentence), END


def _sanitised(html: str) -> str:
    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=set(),
        url_relative=lambda url: url if _OWN_LINK.fullmatch(url) else None,
        link_rel=None,
    )
