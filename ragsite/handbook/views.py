"""Pages and search of the documentation. They are public: they show nothing that the site
stores.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import render as respond
from django.views.decorators.http import require_safe

from accounts.current_workspace import request_workspace
from common.errors import RagsiteError
from common.web import CSP_HEADER, CSP_IMAGES
from documents.management.commands.demo import COLLECTION
from ragsite.handbook.pages import DOCS, anchor_of, contents, page_of_file, render_page
from search.query_options import scope_for
from search.results import Snippet
from search.services import search
from search.templatetags.passages import marked

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
            user=request.user, workspace=request_workspace(request), collections=[COLLECTION]
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
