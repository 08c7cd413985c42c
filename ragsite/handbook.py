"""The documentation as pages of the site: contents in the order of docs/index.md, rendering,
search.

Begin with `docs_page`. The pages are public: they show nothing that the site stores.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render as respond
from django.urls import reverse
from django.utils.html import escape, strip_tags
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from accounts.current_workspace import request_workspace
from common.errors import RagsiteError
from common.web import CSP_HEADER, CSP_IMAGES
from documents.demo_corpus import DOCS_COLLECTION
from documents.document_html import SafeRenderer
from search.query_options import scope_for
from search.results import Snippet
from search.services import search
from search.templatetags.passages import marked

ROOT: Path = settings.BASE_DIR
DOCS = ROOT / "docs"
#: Beside docs/, and linked from there.
_ROOT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_ABOUT = "About the project"
_DECISIONS = "Decisions"
_LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+\.md)\)")
_SECTIONS_BY_FOLDER = {"how-to": "Do something", "reference": "Look something up"}


@dataclass(frozen=True, slots=True)
class Page:
    """One file. `name` is its path below /docs/, `label` its title in the navigation."""

    name: str
    file: Path
    label: str
    section: str

    @property
    def url(self) -> str:
        return reverse("docs_page", args=[self.name]) if self.name else reverse("docs")


def contents() -> tuple[Page, ...]:
    """All pages in reading order. Only these are served. Read again when a page was added or
    removed, or the index changed.
    """
    folders = sorted(folder for folder in DOCS.iterdir() if folder.is_dir())
    watched = [DOCS, DOCS / "index.md", *folders]
    return _contents(tuple((path, path.stat().st_mtime_ns) for path in watched))


def page_of_file(file: Path) -> Page | None:
    return next((page for page in contents() if page.file == file), None)


def link_target(page: Page, href: str) -> str:
    """URL of `href` in `page`; empty where the target is not served."""
    path, hash_, fragment = href.partition("#")
    if "://" in href or href.startswith("mailto:") or not path:
        return href
    file = (page.file.parent / path).resolve()
    if found := page_of_file(file):
        return f"{found.url}{hash_}{fragment}"
    if file.parent == DOCS / "images":
        return reverse("docs_image", args=[file.name])
    if file == DOCS / "openapi.yaml":
        return reverse("schema")
    if file == DOCS / "how-to":
        return reverse("docs")
    return ""


@lru_cache(maxsize=2)
def _contents(changed: tuple[tuple[Path, int], ...]) -> tuple[Page, ...]:
    pages = {DOCS / "index.md": Page("", DOCS / "index.md", "Overview", "Learn")}
    # The pages that the index links to, under its headings.
    for part in (DOCS / "index.md").read_text().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        for label, link in _LINK.findall(text):
            file = (DOCS / link).resolve()
            section = _DECISIONS if file.parent.name == "decisions" else heading.strip()
            if file.exists() and file.is_relative_to(DOCS):
                plain = label.replace("`", "")
                pages.setdefault(
                    file, Page(_name(file), file, plain[0].upper() + plain[1:], section)
                )
    for file in sorted(DOCS.rglob("*.md")):
        section = _SECTIONS_BY_FOLDER.get(file.parent.name, _DECISIONS)
        pages.setdefault(file, Page(_name(file), file, _title(file), section))
    for file in (ROOT / name for name in _ROOT_PAGES):
        if file.exists():
            pages[file] = Page(file.stem.lower(), file, _title(file), _ABOUT)
    order = list(dict.fromkeys(page.section for page in pages.values()))
    return tuple(sorted(pages.values(), key=lambda page: order.index(page.section)))


def _name(file: Path) -> str:
    return str(file.relative_to(DOCS).with_suffix(""))


def _title(file: Path) -> str:
    with file.open() as lines:
        first = next((line for line in lines if line.startswith("# ")), f"# {file.stem}")
    return first[2:].strip()


_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_OUTLINE_LEVELS = (2, 3)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its text, as plain text, up to the next heading."""

    title: str
    level: int
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """`sections` begins with the page's own heading."""

    html: SafeString
    sections: tuple[Section, ...]

    @property
    def title(self) -> str:
        return self.sections[0].title if self.sections else ""

    @property
    def outline(self) -> list[Section]:
        return [section for section in self.sections if section.level in _OUTLINE_LEVELS]


def render_page(page: Page) -> RenderedPage:
    """Rendered once for each modification of the file."""
    return _render(page, page.file.stat().st_mtime_ns)


def anchor_of(title: str) -> str:
    """The same anchors as GitHub's, so that links work in both places."""
    return _NOT_IN_ANCHORS.sub("", title.lower()).replace(" ", "-")


class _Renderer(SafeRenderer):
    """Links stay on the site, images of docs/images are shown, headings get anchors."""

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """A link; without href where the target is not served."""
        href = link_target(env["page"], str(tokens[idx].attrGet("href")))
        rel = ' rel="noopener noreferrer"' if "://" in href else ""
        return f'<a href="{escape(href)}"{rel}>' if href else "<a>"

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        """An image of ours, or its description."""
        source = link_target(env["page"], str(tokens[idx].attrGet("src")))
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
def _render(page: Page, changed: int) -> RenderedPage:
    tokens = _parser.parse(page.file.read_text())
    taken: set[str] = set()
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            anchor = anchor_of(_words(inline))
            unique, number = anchor, 0
            while unique in taken:
                number += 1
                unique = f"{anchor}-{number}"
            taken.add(unique)
            opening.attrSet("id", unique)
    env = {"page": page}
    html = _parser.renderer.render(tokens, _parser.options, env)
    sections = []
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in pairwise([*starts, len(tokens)]):
        heading = tokens[start]
        below = _parser.renderer.render(tokens[start + 3 : end], _parser.options, env)
        sections.append(
            Section(
                title=_words(tokens[start + 1]),
                level=int(heading.tag[1]),
                anchor=str(heading.attrGet("id")),
                text=" ".join(strip_tags(below).split()),
            )
        )
    return RenderedPage(
        html=mark_safe(html),  # noqa: S308 - the project's own files, raw HTML in them is text
        sections=tuple(sections),
    )


def _words(inline: Token) -> str:
    """Plain text of a heading."""
    shown = {"text", "code_inline"}
    return "".join(each.content for each in inline.children or [] if each.type in shown)


MAX_RESULTS = 20
_WORDS = re.compile(r"\w+")
_AROUND = 110  # characters on both sides of a word


#: A section of a page that matches a search, for the template.
Match = dict[str, Any]


def search_docs(request: HttpRequest, question: str) -> list[Match]:
    """Matching sections, best first; none for a query without words."""
    if results := _search_site(request, question):
        return results
    words = [word.lower() for word in _WORDS.findall(question)][:20]
    if not words:
        return []
    ranked = sorted(_matching_sections(words), key=lambda pair: -pair[0])
    return [found for _, found in ranked[:MAX_RESULTS]]


def _search_site(request: HttpRequest, question: str) -> list[Match]:
    """Results of the site's own search, where the user can see the demo corpus; else none."""
    if not request.user.is_authenticated:
        return []
    try:
        scope = scope_for(
            user=request.user, workspace=request_workspace(request), collections=[DOCS_COLLECTION]
        )
        hits = search(question, scope=scope, k=MAX_RESULTS).hits
    except RagsiteError:
        return []
    places: dict[str, Match] = {}
    for hit in hits:
        if page := page_of_file(Path(hit.document_key).resolve()):
            title = hit.heading_path[-1] if hit.heading_path else page.label
            url = f"{page.url}#{anchor_of(title)}"
            snippet = marked(hit.snippet, "markdown")
            # A section of several passages, by its best one.
            places.setdefault(url, {"page": page, "title": title, "url": url, "snippet": snippet})
    return list(places.values())


def _matching_sections(words: list[str]) -> Iterator[tuple[float, Match]]:
    """Sections that contain all words, with a score."""
    for page in contents():
        for section in render_page(page).sections:
            title, text = section.title.lower(), html.unescape(section.text)
            lowered = text.lower()
            if all(word in title or word in lowered for word in words):
                score = sum(10.0 * (word in title) + min(lowered.count(word), 5) for word in words)
                url = f"{page.url}#{section.anchor}"
                # An excerpt around the first word, with all words marked.
                found = re.search("|".join(map(re.escape, words)), text, re.I)
                middle = found.start() if found else 0
                start = text.find(" ", middle - _AROUND) + 1 if middle > _AROUND else 0
                end = text.find(" ", middle + _AROUND)
                cut = text[start : end if end > 0 else None]
                ranges = [
                    match.span()
                    for match in re.finditer("|".join(map(re.escape, words)), cut, re.I)
                ]
                excerpt = marked(Snippet(cut, start, tuple(ranges), start > 0, end > 0))
                yield (
                    score,
                    {
                        "page": page,
                        "title": section.title,
                        "url": url,
                        "snippet": excerpt,
                    },
                )


_LONGEST_QUESTION = 500


@require_safe
def docs_page(request: HttpRequest, name: str = "") -> HttpResponse:
    """One page. Only names in the contents are served."""
    pages = contents()
    at = next((at for at, page in enumerate(pages) if page.name == name), None)
    if at is None:
        raise Http404
    return respond(
        request,
        "handbook/page.html",
        {
            "page": pages[at],
            "rendered": render_page(pages[at]),
            "pages": pages,
            "before": pages[at - 1] if at else None,
            "after": pages[at + 1] if at + 1 < len(pages) else None,
        },
    )


@require_safe
def docs_search(request: HttpRequest) -> HttpResponse:
    """Search results in the documentation."""
    question = request.GET.get("q", "").replace("\x00", "").strip()[:_LONGEST_QUESTION]
    return respond(
        request,
        "handbook/results.html",
        {
            "question": question,
            "found": search_docs(request, question) if question else [],
            "pages": contents(),
        },
    )


@require_safe
def docs_image(request: HttpRequest, name: str) -> FileResponse:
    """An image file of docs/images."""
    files = {file.name: file for file in (DOCS / "images").iterdir() if file.suffix == ".svg"}
    if name not in files:
        raise Http404
    headers = {CSP_HEADER: CSP_IMAGES}
    return FileResponse(files[name].open("rb"), content_type="image/svg+xml", headers=headers)
