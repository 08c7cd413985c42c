"""How Markdown's tokens become HTML here, where that differs from the library."""

import re
from collections.abc import Sequence
from typing import Any

from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from documents.rendering.sanitising import keep_phrasing

#: Tags that only style words, written without attributes.
_STYLING_TAG = re.compile(r"</?(?:b|br|code|del|em|i|ins|kbd|s|small|strong|sub|sup|u)\s*/?>", re.I)
_ALIGNMENT = re.compile(r"text-align:(left|center|right)")


class SafeRenderer(RendererHTML):
    """Raw HTML as text, images as words, wide blocks that scroll and can be reached by keyboard."""

    def html_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """The text inside raw HTML."""
        text = keep_phrasing(tokens[idx].content).strip()
        return f"<p{self.renderAttrs(tokens[idx])}>{text}</p>\n" if text else ""

    def html_inline(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Tags that style words stay; others go, and what they enclose stays."""
        content = tokens[idx].content
        return content if _STYLING_TAG.fullmatch(content) else ""

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """The description of the image: the image itself lies on another site, or nowhere."""
        described = self.renderInlineAsText(tokens[idx].children or [], options, env)
        return f'<span class="image">{escapeHtml(described) or "image"}</span>'

    def fence(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Code."""
        return self._code(tokens[idx])

    def code_block(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """Indented code."""
        return self._code(tokens[idx])

    def _code(self, token: Token) -> str:
        token.attrSet("tabindex", "0")
        return f"<pre{self.renderAttrs(token)}><code>{escapeHtml(token.content)}</code></pre>\n"

    def table_open(self, *_: Any) -> str:
        """A table in a box that scrolls."""
        return '<div class="wide" tabindex="0" role="group" aria-label="Table">\n<table>\n'

    def table_close(self, *_: Any) -> str:
        """The end of both."""
        return "</table>\n</div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """A heading cell."""
        return self._cell(tokens[idx])

    def td_open(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """A cell."""
        return self._cell(tokens[idx])

    def _cell(self, token: Token) -> str:
        # A class, because the content security policy of a page allows no style attribute.
        alignment = _ALIGNMENT.search(str(token.attrGet("style") or ""))
        chosen = f' class="{alignment[1]}"' if alignment else ""
        return f"<{token.tag}{chosen}>"

    def anchor(self, tokens: Sequence[Token], idx: int, *_: Any) -> str:
        """An element that is only a target."""
        return f"<span{self.renderAttrs(tokens[idx])}></span>"
