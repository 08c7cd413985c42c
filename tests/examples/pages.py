"""What the documentation shows: its fenced blocks, and what invisible comments say of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")],
)
#: What may stand in `<!-- … -->` before a block; CONTRIBUTING.md explains each.
DIRECTIVES = ("first", "not run", "status", "output of", "file", "request", "options of")
_COMMENT = re.compile(r"<!--\s*([a-z ]+?)(?::\s*(.*?))?\s*-->", re.S)
_parser = MarkdownIt("commonmark")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `line` is that of its fence, from 1."""

    page: str
    line: int
    language: str
    text: str
    said: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_run(self) -> bool:
        return "not run" not in self.said

    @property
    def is_shell(self) -> bool:
        return self.language in {"sh", "bash", "shell", "console"}


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    said: dict[str, str] = {}
    text = page.read_text()
    if "```" not in text:
        return  # without the parser's work
    for token in _parser.parse(text):
        if token.type == "html_block":
            found = _COMMENT.findall(token.content)
            said |= {name: text for name, text in found if name in DIRECTIVES}
        elif token.type == "fence":
            assert token.map
            yield Block(
                page=str(page.relative_to(ROOT)),
                line=token.map[0] + 1,
                language=token.info.split(maxsplit=1)[0] if token.info.strip() else "",
                text=token.content,
                said=said,
            )
            said = {}
