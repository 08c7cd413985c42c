"""The documentation under /docs/: public, whole, linked, searchable, and nothing else is served."""

import re
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils.html import escape

from documents import services
from documents.ingestion.sources import discover
from documents.tests.factories import CollectionFactory, MembershipFactory
from ragsite.handbook import DOCS, contents, render_page

pytestmark = pytest.mark.django_db
PAGES = contents()


class Links(HTMLParser):
    """What a page links to, and the ids that can be linked to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.hrefs.append(str(given["href"]))
        if given.get("id"):
            self.ids.append(str(given["id"]))


@pytest.fixture(scope="module")
def links() -> dict[str, Links]:
    return {page.url: Links(render_page(page).html) for page in PAGES}


def test_every_file_of_docs_is_a_page(client: Client) -> None:
    assert {page.file for page in PAGES} >= set(DOCS.rglob("*.md"))
    for page in PAGES:
        answer = client.get(page.url)
        assert answer.status_code == 200, page.url
        assert f"<title>{escape(render_page(page).title)} · ragsite" in answer.content.decode()


def test_a_link_between_pages_leads_to_a_heading_that_is_there(links: dict[str, Links]) -> None:
    dead = [
        (url, href)
        for url, found in links.items()
        for href in found.hrefs
        if href.startswith(("/docs/", "#"))
        and not href.startswith("/docs/images/")
        and not _leads_somewhere(url, href, links)
    ]
    assert dead == []


def _leads_somewhere(url: str, href: str, links: dict[str, Links]) -> bool:
    path, _, fragment = href.partition("#")
    found = links.get(path or url)
    return found is not None and (not fragment or fragment in found.ids)


def test_ids_of_a_page_are_unique(client: Client) -> None:
    for name in ("reference/api", "how-to/use-openai"):
        ids = Links(client.get(f"/docs/{name}/").content.decode()).ids
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "path",
    [
        "/docs/../manage.py/",
        "/docs/..%2F..%2Fmanage.py/",
        "/docs/%2e%2e/ragsite/settings/",
        "/docs//etc/passwd/",
        "/docs/tutorial.md/",
        "/docs/images/..%2Findex.md",
        "/docs/nowhere/",
    ],
)
def test_nothing_but_the_pages_is_served(client: Client, path: str) -> None:
    assert client.get(path, follow=True).status_code == 404


def test_the_picture_of_the_architecture_is_shown(client: Client) -> None:
    page = client.get("/docs/architecture/").content.decode()
    image = re.search(r'<img src="(/docs/images/[^"]+)" alt="How ragsite is built', page)
    assert image
    answer = client.get(image[1])
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert b"".join(answer.streaming_content).startswith(b"<svg")


def test_pages_follow_each_other(client: Client) -> None:
    page = client.get("/docs/tutorial/").content.decode()
    assert 'href="/docs/" rel="prev"' in page
    assert 'rel="next"' in page
    assert 'aria-current="page">Tutorial' in page


def test_comments_for_the_tests_are_not_shown(client: Client) -> None:
    assert "<!-- " in (DOCS / "tutorial.md").read_text()
    assert "not run:" not in client.get("/docs/tutorial/").content.decode()


def test_a_stranger_finds_pages_by_their_words(client: Client) -> None:
    page = client.get("/docs/search/", {"q": "write a parser"}).content.decode()
    assert 'href="/docs/how-to/write-a-parser/' in page
    assert "<mark>" in page


def test_what_is_asked_cannot_become_markup(client: Client) -> None:
    page = client.get("/docs/search/", {"q": "<script>alert(1)</script>\x00"}).content.decode()
    assert "<script>alert" not in page
    assert "No page contains all of these words" in page


def test_with_the_demo_corpus_the_sites_own_search_answers(client: Client) -> None:
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace, slug="ragsite-docs")
    services.ingest_inline(collection=collection, sources=discover([DOCS / "how-to" / "rerank.md"]))
    client.force_login(member.user)
    page = client.get("/docs/search/", {"q": "“reranker” -nowhere sort best passages"})
    # Only words that stand in this page: no other of the documentation is in the collection.
    hrefs = [
        href
        for href in Links(page.content.decode()).hrefs
        if href.startswith("/docs/") and "#" in href
    ]
    assert hrefs
    assert all(href.startswith("/docs/how-to/rerank/#") for href in hrefs)
