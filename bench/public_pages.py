"""Pages of a clone as Markdown files, for the questions of a set in `bench/answers`:
`python -m bench.public_pages SET CLONE DIR`. `pages.tsv` of the set names them."""

import re
import sys
from pathlib import Path

_FRONT_MATTER = re.compile(r"\ufeff?---\n(.*?)\n---\n", re.DOTALL)
QUOTES = " '\""
_TITLE = re.compile(r"^title:\s*(.+)$", re.MULTILINE)
#: Templates, comments, imports of components, and these themselves.
_CODE = re.compile(
    r"<%.*?%>|<!--.*?-->"
    r"|\{/\*.*?\*/\}|^(?:import|export) [^\n]*$|</?[A-Z]\w*\b[^>]*>|^[ \t]*:::[^\n]*$"
    r"|!\[[^\]]*\]\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)


def page_text(source: str) -> str:
    """The page's Markdown below its title, without what only its site understands."""
    front = _FRONT_MATTER.match(source)
    title = _TITLE.search(front[1]) if front else None
    text = _CODE.sub("", source[front.end() :] if front else source).strip()
    heading = f"# {title[1].strip(QUOTES)}\n\n" if title and not text.startswith("# ") else ""
    return f"{heading}{text}\n"


def main(of_set: Path, clone: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for line in (of_set / "pages.tsv").read_text().splitlines():
        path, name = line.split("\t")
        (directory / name).write_text(page_text((clone / path).read_text()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
