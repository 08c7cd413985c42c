"""A web site is read as its owner allows, each page once, and what did not change is not sent."""

import gzip
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from documents.tests.web_server import running
from sources.connectors.base import Item, ItemError, ItemGone, SourceError, Unfinished
from sources.connectors.web_site import WebSite, WebSiteOptions
from sources.tests.sites import Site

LONG_AGO = "2026-01-05"


@pytest.fixture
def site(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("sources.connectors.http.TRIES", 1)
    settings.SOURCES_DIR = tmp_path / "cache"
    with running(Site()) as site:
        yield site


def opened(site: Site, path: str = "/", **options: Any) -> WebSite:
    return WebSite(WebSiteOptions(**{"url": site.url(path), "delay": 0, **options}))


def listed(site: Site, path: str = "/", **options: Any) -> dict[str, Item]:
    """By the path of its address, what a whole listing names."""
    with opened(site, path, **options) as connector:
        while True:
            with suppress(Unfinished):
                items = list(connector.list_items())
                return {item.key.removeprefix(site.url("")): item for item in items}


def fetched(site: Site, item: Item, folder: Path, **options: Any) -> bytes:
    with opened(site, **options) as connector:
        connector.fetch(item, folder / "file", max_bytes=1_000_000)
    return (folder / "file").read_bytes()


def test_links_are_followed_and_one_page_is_one_item(site: Site) -> None:
    site.page("/", "Welcome.", "/rail/?utm_source=mail", "/rail/#fares", "bicycle", "/old")
    site.page("/rail/", "Trains are booked by the office.", "/", "deep")
    canonical = f'<link rel="canonical" href="{site.url("/rail/")}">'
    site.page("/bicycle", "Trains are booked by the office.", head=canonical)
    site.redirect("/old", "/new", 301)
    site.page("/new", "It is here now.", "/old")
    site.page("/rail/deep", "Deep down.", "/rail/deeper")
    site.page("/rail/deeper", "Too deep.")
    found = listed(site, depth=2)
    assert set(found) == {"/", "/rail/", "/new", "/rail/deep"}
    assert found["/rail/"].name == "rail/index.html"
    assert found["/new"].url == site.url("/new")
    assert len(site.requests) == len(set(site.requests)) + 1  # the first page is looked at first


def test_a_second_listing_is_sent_nothing_that_did_not_change(site: Site, tmp_path: Path) -> None:
    site.page("/", "Welcome.", "/rail", "/plan.pdf")
    site.page("/rail", "Trains.", "/far")
    site.page("/far", "Far.")
    site.file("/plan.pdf", b"%PDF-1.7 ...", "application/pdf")
    first = listed(site)
    site.asked()
    assert listed(site) == first
    assert site.sent == ["/"]  # where it begins is looked at anew
    site.page("/rail", "Trains, and buses.", "/far")
    second = listed(site)
    assert [key for key in first if first[key].version != second[key].version] == ["/rail"]
    assert b"and buses" in fetched(site, second["/rail"], tmp_path)


def test_pages_are_kept_from_the_listing_for_fetching(site: Site, tmp_path: Path) -> None:
    site.page("/", "Welcome.", "/rail")
    site.page("/rail", "Trains.")
    found = listed(site)
    site.asked()
    assert b"Trains." in fetched(site, found["/rail"], tmp_path)
    assert site.requests == []
    assert b"Trains." in fetched(site, found["/rail"], tmp_path)  # asked for again
    assert site.requests == ["/rail"]


def test_another_advertisement_is_no_change(site: Site) -> None:
    site.page("/", "Welcome.", head="<script>var ad = 1</script>")
    before = listed(site)["/"].version
    site.page("/", "Welcome.", head="<script>var ad = 2</script>")
    assert listed(site)["/"].version == before
    site.page("/", "Welcome back.")
    assert listed(site)["/"].version != before


def test_a_lost_cache_costs_requests_and_no_versions(site: Site, settings: Any) -> None:
    site.page("/", "Welcome.", "/rail")
    site.page("/rail", "Trains.")
    first = listed(site)
    (cache,) = settings.SOURCES_DIR.glob("web-*")
    (cache / "pages.sqlite3").write_bytes(b"not a database at all" * 100)
    assert listed(site) == first


def test_a_sitemap_is_read_with_its_index_and_believed_about_days_that_are_over(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    site.file("/robots.txt", f"Sitemap: {site.url('/index.xml')}".encode())
    index = "".join(
        f"<sitemap><loc>{site.url(name)}</loc></sitemap>" for name in ("/one.xml", "/two.xml.gz")
    )
    site.file("/index.xml", f"<sitemapindex>{index}</sitemapindex>".encode(), "text/xml")
    site.sitemap(("/rail", LONG_AGO), ("/bus", today), path="/one.xml")
    site.sitemap(("/ship", ""), ("/elsewhere", ""), path="/two.xml.gz")
    body = site.pages["/two.xml.gz"][2]  # type: ignore[index]
    site.file("/two.xml.gz", gzip.compress(body), "application/gzip")
    for path in ("/rail", "/bus", "/ship"):
        site.page(path, f"Go by {path}.", "/linked", "/timetable.csv")
    site.file("/timetable.csv", b"hour,minute\n7,5\n", "text/csv")
    site.page("/linked", "It is in no sitemap.")
    found = listed(site)
    assert set(found) == {"/rail", "/bus", "/ship", "/timetable.csv"}
    site.asked()
    later = datetime.now(UTC) + timedelta(seconds=1)
    monkeypatch.setattr("sources.connectors.web_cache.time.time", later.timestamp)
    assert listed(site) == found
    assert {"/bus", "/ship"} <= set(site.requests)
    assert "/rail" not in site.requests


def test_half_a_sitemap_is_no_sitemap(site: Site) -> None:
    site.page("/", "Welcome.")
    site.sitemap(("/", ""), ("/rail", ""))
    body = site.pages["/sitemap.xml"][2]  # type: ignore[index]
    site.file("/sitemap.xml", body[:-30], "application/xml")
    with pytest.raises(SourceError, match="is malformed"):
        listed(site)
    assert set(listed(site, sitemap="none")) == {"/"}


def test_robots_are_told_what_not_to_read(site: Site) -> None:
    rules = b"User-agent: *\nDisallow: /\n\nUser-agent: ragsite\nDisallow: /private\n"
    site.file("/robots.txt", rules)
    noindex = '<meta name="robots" content="noindex">'
    nofollow = '<meta name="robots" content="nofollow">'
    site.page("/", "Welcome.", "/private/salaries", "/draft", "/header", "/last")
    site.page("/draft", "Not yet.", "/behind-draft", head=noindex)
    site.page("/behind-draft", "Reached through a page that is not to be found.")
    site.page("/header", "By header.", X_Robots_Tag="noindex")
    site.page("/last", "The end.", "/unlinked", head=nofollow)
    site.page("/unlinked", "No robot is meant to come here.")
    assert set(listed(site)) == {"/", "/behind-draft", "/last"}
    assert "/private/salaries" not in site.requests

    site.file("/robots.txt", b"User-agent: *\nDisallow: /\n")
    with pytest.raises(SourceError, match="forbids robots") as refused:
        listed(site)
    assert refused.value.is_permanent
    site.fail("/robots.txt", 503)
    with pytest.raises(SourceError, match="paths are unknown"):
        listed(site)


def test_pauses_are_those_of_robots_txt_where_they_are_longer(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("sources.connectors.polite.time.sleep", pauses.append)
    site.page("/", "Welcome.", "/rail")
    site.page("/rail", "Trains.")
    listed(site, delay=3)
    assert 2.5 < max(pauses) <= 3
    site.file("/robots.txt", b"User-agent: *\nCrawl-delay: 7\n")
    pauses.clear()
    listed(site, delay=3)
    assert 6.5 < max(pauses) <= 7


def test_a_busy_server_is_left_alone_and_the_crawl_goes_on_later(site: Site) -> None:
    site.page("/", "Welcome.", "/rail", "/bus")
    site.page("/rail", "Trains.")
    site.fail("/bus", 429, Retry_After="3600")
    with pytest.raises(SourceError, match="limits the rate of requests"):
        listed(site)
    site.page("/bus", "Buses.")
    site.asked()
    assert set(listed(site)) == {"/", "/rail", "/bus"}
    assert site.requests == ["/robots.txt", "/bus"]


def test_a_listing_is_done_in_parts_and_goes_on_where_it_was_killed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.page("/", "Welcome.", "/rail", "/bus")
    site.page("/rail", "Trains.")
    site.page("/bus", "Buses.")
    monkeypatch.setattr("sources.connectors.web_site.LISTING_SECONDS", -1.0)
    for count in (1, 2):
        with opened(site) as connector, pytest.raises(Unfinished) as part:
            list(connector.list_items())
        assert part.value.count == count
    site.asked()
    assert set(listed(site)) == {"/", "/rail", "/bus"}
    assert site.requests == ["/robots.txt", "/bus"]

    with opened(site) as connector:
        listing = connector.list_items()
        next(listing)
        listing.close()  # type: ignore[attr-defined]
    site.asked()
    assert set(listed(site)) == {"/", "/rail", "/bus"}
    assert "/" not in site.requests


def test_only_pages_of_the_folder_or_of_the_paths_that_are_named(site: Site) -> None:
    for path in ("/handbook/", "/handbook/a", "/handbook/tag/x", "/blog/b", "/handbooks"):
        site.page(
            path, f"This is {path}.", "/handbook/a", "/handbook/tag/x", "/blog/b", "/", "//x/"
        )
    site.redirect("/handbook", "/handbook/")
    assert set(listed(site, "/handbook")) == {"/handbook/", "/handbook/a", "/handbook/tag/x"}
    chosen = listed(site, "/handbook/", include="blog/** handbook/**", exclude="**/tag/**")
    assert set(chosen) == {"/handbook/", "/handbook/a", "/blog/b"}


def test_a_calendar_without_end_and_folders_in_a_circle_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sources.connectors.web_site.MAX_QUERIES", 5)

    def answer(path: str) -> Any:
        month = int(path.partition("=")[2] or 0)
        if path.startswith(("/calendar", "/loop/")):
            site.page(path, f"Month {month}.", f"?month={month + 1}", "loop/")
        return Site.answer(site, path)

    monkeypatch.setattr(site, "answer", answer)
    site.page("/", "Welcome.", "/calendar")
    found = listed(site, depth=100)
    assert {"/calendar", "/calendar?month=4", "/loop/loop/loop/"} <= set(found)
    assert len(found) < 30


def test_a_site_with_more_pages_than_allowed_says_so(site: Site) -> None:
    site.page("/", "Welcome.", *(f"/{number}" for number in range(9)))
    for number in range(9):
        site.page(f"/{number}", f"Page {number}.")
    with opened(site, max_pages=5) as connector:
        assert len(list(connector.list_items())) == 5
        assert "more than 5 pages" in connector.note


def test_errors_logins_and_pages_for_missing_pages_are_no_content(
    site: Site, tmp_path: Path
) -> None:
    site.page("/", "Welcome.", "/login", "/forbidden", "/broken", "/empty", "/missing")
    site.page("/login", 'Sign in. <input type="password">')
    site.fail("/forbidden", 403)
    site.fail("/broken", 500)
    site.page("/empty", "")

    class Soft(dict[str, Any]):
        def get(self, path: str, other: Any = None) -> Any:
            page = b"<html><title>Oh</title><body>We could not find that.</body></html>"
            soft = (200, {"Content-Type": "text/html"}, page)
            return super().get(path, other if path == "/robots.txt" else soft)

    site.pages = Soft(site.pages)
    found = listed(site)
    assert set(found) == {"/", "/broken"}
    with opened(site) as connector, pytest.raises(ItemError, match="answers 500"):
        connector.fetch(found["/broken"], tmp_path / "file", max_bytes=1000)


def test_a_site_that_fails_in_the_middle_is_away_and_one_page_is_not(site: Site) -> None:
    paths = [f"/{number}" for number in range(8)]
    site.page("/", "Welcome.", *paths)
    for path in paths:
        site.page(path, f"Page {path}.", f"{path}/below")
        site.page(f"{path}/below", "Below.")
    before = listed(site)
    site.fail("/3", 500)
    assert listed(site) == before  # as it was, with what lies behind it
    for path in paths[2:]:
        site.fail(path, 500)
    with pytest.raises(SourceError, match="in a row"):
        listed(site)


def test_only_what_is_certainly_gone_is_gone(site: Site) -> None:
    names = ["/deleted", "/kept", "/hidden", "/moved", "/mended", "/later", "/failing", "/shut"]
    site.page("/", "Welcome.", *names)
    for name in names:
        site.page(name, f"This is {name}.")
    listed(site)
    site.page("/", "Welcome.", "/new")
    site.fail("/deleted", 410)
    site.page("/hidden", "This is /hidden.", head='<meta name="robots" content="noindex">')
    site.redirect("/moved", "/new", 301)
    site.page("/new", "This is /moved.")
    title = site.pages["/new"][2].replace(b"<title>/new", b"<title>/moved")  # type: ignore[index]
    site.file("/new", title, "text/html")
    site.redirect("/mended", "/", 301)
    site.redirect("/later", "/new", 302)
    site.fail("/failing", 500)
    site.fail("/shut", 403)
    assert set(listed(site)) == {"/", "/new"}
    with opened(site) as connector:
        gone = [name for name in names if connector.is_gone(site.url(name))]
    assert gone == ["/deleted", "/hidden", "/moved"]

    site.pages.clear()  # a server that has lost its files
    with opened(site) as connector:
        assert not connector.is_gone(site.url("/kept"))
    site.stop()
    with opened(site) as connector:
        assert not connector.is_gone(site.url("/kept"))


def test_a_canonical_address_that_is_the_own_one_otherwise_written_is_the_own_one(
    site: Site,
) -> None:
    for path in ("/", "/rail"):
        other = site.url(path).replace("localhost", "LOCALHOST") + "?utm_medium=x#top"
        site.page(path, f"This is {path}.", "/rail", head=f'<link rel="canonical" href="{other}">')
    assert set(listed(site)) == {"/", "/rail"}
    with opened(site) as connector:
        assert not connector.is_gone(site.url("/rail"))


def test_what_the_options_leave_out_now_is_gone(site: Site) -> None:
    site.page("/", "Welcome.", "/blog/a")
    site.page("/blog/a", "A.")
    with opened(site, exclude="blog/**") as connector:
        assert connector.is_gone(site.url("/blog/a"))
        assert not connector.is_gone(site.url("/"))


@pytest.mark.parametrize("target", ["http://169.254.169.254/", "http://localhost.example/"])
def test_a_redirection_into_the_network_is_refused(
    target: str, site: Site, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"localhost": ["127.0.0.1"], "localhost.example": ["10.0.0.1"]}
    monkeypatch.setattr(
        "sources.connectors.http.resolve_host", lambda host, port: answers.get(host, [host])
    )
    site.redirect("/", target)
    with pytest.raises(SourceError, match="outside the public internet") as refused:
        listed(site)
    assert refused.value.is_permanent
    # A page of another host is none of the site, wherever it is.
    site.page("/", "Welcome.", "/out", target)
    site.redirect("/out", target)
    assert set(listed(site)) == {"/"}
    settings.SOURCE_NETWORKS = []
    with pytest.raises(SourceError, match="outside the public internet"):
        listed(site)


def test_half_a_page_is_no_page(site: Site, tmp_path: Path) -> None:
    def half(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", "10000")
        request.end_headers()
        request.wfile.write(b"<html><body>Half of")
        request.close_connection = True

    site.page("/", "Welcome.", "/rail")
    site.page("/rail", "The whole page about trains.")
    before = listed(site)
    site.pages["/rail"] = half
    assert listed(site) == before
    with opened(site) as connector, pytest.raises(ItemError):
        connector.fetch(before["/rail"], tmp_path / "half", max_bytes=1_000_000)


def test_files_are_taken_by_their_type_and_texts_in_their_encoding(
    site: Site, tmp_path: Path
) -> None:
    site.page("/", "Welcome.", "/plan.pdf", "/notes.txt", "/picture.png", "/download?id=3")
    site.file("/plan.pdf", b"%PDF-1.7 ...", "application/pdf")
    site.file("/notes.txt", "Grüße".encode("latin-1"), "text/plain; charset=latin-1")
    site.file("/download?id=3", b"PK...", "application/vnd.oasis.opendocument.text")
    found = listed(site)
    assert set(found) == {"/", "/plan.pdf", "/notes.txt", "/download?id=3"}
    assert found["/download?id=3"].name == "download.odt"
    assert fetched(site, found["/notes.txt"], tmp_path).decode() == "Grüße"
    assert "/picture.png" not in site.requests
    site.fail("/plan.pdf", 404)
    with pytest.raises(ItemGone):
        fetched(site, found["/plan.pdf"], tmp_path)
    assert set(listed(site, files=False)) == {"/"}


def test_an_address_without_its_beginning_is_one_of_the_web() -> None:
    assert WebSiteOptions(url="example.org/handbook").url == "https://example.org/handbook"
    with pytest.raises(ValueError, match="begin with http"):
        WebSiteOptions(url="ftp://example.org/")
