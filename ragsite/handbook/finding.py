"""Searching the documentation: by the site's own search where it holds it, else by words."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.http import HttpRequest
from django.utils.safestring import SafeString

from accounts.choosing import workspace_of
from common.errors import RagsiteError
from documents.management.commands.demo import COLLECTION
from ragsite.handbook.contents import Page, contents
from ragsite.handbook.rendering import anchor_of, render
from search.results import Snippet
from search.services import scope_for, search
from search.templatetags.passages import marked

MOST = 20
_WORDS = re.compile(r"\w+")
_AROUND = 110  # characters on both sides of a word


@dataclass(frozen=True, slots=True)
class Found:
    """A place in a page."""

    page: Page
    title: str
    url: str
    snippet: SafeString


def find(request: HttpRequest, question: str) -> list[Found]:
    """The best places first; none for a question without a word."""
    return _by_search(request, question) or _by_words(question)


def _by_search(request: HttpRequest, question: str) -> list[Found]:
    """By word and meaning, where whoever asks sees the demo corpus; else nothing."""
    if not request.user.is_authenticated:
        return []
    try:
        scope = scope_for(
            user=request.user, workspace=workspace_of(request), collections=[COLLECTION]
        )
        hits = search(question, scope=scope, k=MOST).hits
    except RagsiteError:
        return []
    places: dict[str, Found] = {}
    for found in filter(None, map(_of_hit, hits)):
        places.setdefault(found.url, found)  # a section of several passages, by its best one
    return list(places.values())


def _of_hit(hit: Any) -> Found | None:
    page = contents().of_file(Path(hit.document_key).resolve())
    if page is None:
        return None
    title = hit.heading_path[-1] if hit.heading_path else page.label
    return Found(page, title, f"{page.url}#{anchor_of(title)}", marked(hit.snippet, "markdown"))


def _by_words(question: str) -> list[Found]:
    words = [word.lower() for word in _WORDS.findall(question)][:20]
    if not words:
        return []
    ranked = sorted(_holding(words), key=lambda pair: -pair[0])
    return [found for _, found in ranked[:MOST]]


def _holding(words: list[str]) -> Iterator[tuple[float, Found]]:
    """Sections that hold all the words, with how much they are about them."""
    for page in contents().pages:
        for section in render(page).sections:
            title, text = section.title.lower(), html.unescape(section.text)
            lowered = text.lower()
            if all(word in title or word in lowered for word in words):
                score = sum(10.0 * (word in title) + min(lowered.count(word), 5) for word in words)
                url = f"{page.url}#{section.anchor}"
                yield score, Found(page, section.title, url, _around(text, words))


def _around(text: str, words: list[str]) -> SafeString:
    """The surroundings of the first of the words, all of them marked."""
    found = re.search("|".join(map(re.escape, words)), text, re.I)
    middle = found.start() if found else 0
    start = text.find(" ", middle - _AROUND) + 1 if middle > _AROUND else 0
    end = text.find(" ", middle + _AROUND)
    cut = text[start : end if end > 0 else None]
    ranges = [match.span() for match in re.finditer("|".join(map(re.escape, words)), cut, re.I)]
    return marked(Snippet(cut, start, tuple(ranges), start > 0, end > 0))
