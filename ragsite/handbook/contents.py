"""Which pages there are, in the order of docs/index.md, and where a link in one leads."""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse

ROOT: Path = settings.BASE_DIR
DOCS = ROOT / "docs"
#: Beside docs/, and linked from there.
_BESIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_ABOUT = "About the project"
_DECISIONS = "Decisions"
_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")
_SECTIONS_BY_FOLDER = {"how-to": "Do something", "reference": "Look something up"}


@dataclass(frozen=True, slots=True)
class Page:
    """One file. `name` is its address below /docs/, `label` what the navigation calls it."""

    name: str
    file: Path
    label: str
    section: str

    @property
    def url(self) -> str:
        return reverse("docs_page", args=[self.name]) if self.name else reverse("docs")


@dataclass(frozen=True, slots=True)
class Contents:
    """All pages in reading order. Nothing but these is ever served."""

    pages: tuple[Page, ...]

    def named(self, name: str) -> Page | None:
        return next((page for page in self.pages if page.name == name), None)

    def of_file(self, file: Path) -> Page | None:
        return next((page for page in self.pages if page.file == file), None)

    def sections(self) -> dict[str, list[Page]]:
        found: dict[str, list[Page]] = {}
        for page in self.pages:
            found.setdefault(page.section, []).append(page)
        return found

    def beside(self, page: Page) -> tuple[Page | None, Page | None]:
        """The pages before and after."""
        at = self.pages.index(page)
        return (
            self.pages[at - 1] if at else None,
            self.pages[at + 1] if at + 1 < len(self.pages) else None,
        )


def contents() -> Contents:
    """Read anew when a page came or went, or the index changed."""
    files = tuple(sorted(DOCS.rglob("*.md")))
    return _contents(files, (DOCS / "index.md").stat().st_mtime_ns)


def target(page: Page, href: str) -> str:
    """Where `href` in `page` leads on the site; empty where there is nothing to lead to."""
    path, hash_, fragment = href.partition("#")
    if "://" in href or href.startswith("mailto:") or not path:
        return href
    file = (page.file.parent / path).resolve()
    if found := contents().of_file(file):
        return f"{found.url}{hash_}{fragment}"
    if file.parent == DOCS / "images":
        return reverse("docs_image", args=[file.name])
    if file == DOCS / "openapi.yaml":
        return reverse("schema")
    if file == DOCS / "how-to":
        return reverse("docs")
    return ""


@lru_cache(maxsize=2)
def _contents(files: tuple[Path, ...], changed: int) -> Contents:
    pages = [Page("", DOCS / "index.md", "Overview", "Learn"), *_indexed()]
    known = {page.file for page in pages}
    pages += [_unlisted(file) for file in files if file not in known]
    pages += [_beside(ROOT / name) for name in _BESIDE if (ROOT / name).exists()]
    order = list(dict.fromkeys(page.section for page in pages))
    return Contents(tuple(sorted(pages, key=lambda page: order.index(page.section))))


def _indexed() -> list[Page]:
    """What the index links to, under its headings."""
    pages: dict[Path, Page] = {}
    for part in (DOCS / "index.md").read_text().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        for label, link in _LINK.findall(text):
            file = (DOCS / link).resolve()
            section = _DECISIONS if file.parent.name == "decisions" else heading.strip()
            if file.exists() and file.is_relative_to(DOCS):
                plain = label.replace("`", "")
                named = plain[0].upper() + plain[1:]
                pages.setdefault(file, Page(_name(file), file, named, section))
    return list(pages.values())


def _unlisted(file: Path) -> Page:
    """A page that the index does not name yet."""
    section = _SECTIONS_BY_FOLDER.get(file.parent.name, _DECISIONS)
    return Page(_name(file), file, _title(file), section)


def _beside(file: Path) -> Page:
    return Page(file.stem.lower(), file, _title(file), _ABOUT)


def _name(file: Path) -> str:
    return str(file.relative_to(DOCS).with_suffix(""))


def _title(file: Path) -> str:
    with file.open() as lines:
        first = next((line for line in lines if line.startswith("# ")), f"# {file.stem}")
    return first[2:].strip()
