"""A feed is a window: its entries come, change and stay."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from documents.ingestion import pipeline
from documents.models import Collection, Document
from documents.tests.factories import CollectionFactory
from documents.tests.web_server import running
from sources import runs, services
from sources.connectors.base import Item, SourceError
from sources.connectors.feed import Feed, FeedOptions
from sources.models import DataSourceRun
from sources.tests.sites import Site


@pytest.fixture
def site(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr("sources.connectors.http.TRIES", 1)
    monkeypatch.setattr("sources.connectors.feed.PAUSE", 0.0)
    settings.SOURCES_DIR = tmp_path / "cache"
    with running(Site()) as site:
        yield site


def rss(site: Site, *entries: tuple[str, str], path: str = "/feed") -> None:
    """(name, text) of each entry."""
    items = "".join(
        f'<item><guid isPermaLink="false">{name}</guid>'
        f"<title>About {name} &amp;amp; more</title>"
        f"<link>/{name}?utm_source=feed</link><author>Ann</author>"
        f"<pubDate>Tue, 03 Nov 2026 09:00:00 GMT</pubDate>"
        f"<description><![CDATA[<p>{text}</p>]]></description></item>"
        for name, text in entries
    )
    text = f'<rss version="2.0"><channel><title>News</title>{items}</channel></rss>'
    site.file(path, text.encode(), "application/rss+xml")


def listed(site: Site, path: str = "/feed", **options: Any) -> dict[str, Item]:
    with Feed(FeedOptions(url=site.url(path), **options)) as feed:
        return {item.key: item for item in feed.list_items()}


def fetched(
    site: Site, item: Item, folder: Path, path: str = "/feed", **options: Any
) -> tuple[str, dict[str, Any]]:
    with Feed(FeedOptions(url=site.url(path), **options)) as feed:
        said = feed.fetch(item, folder / "entry", max_bytes=100_000)
    return (folder / "entry").read_text(), said


def test_an_entry_has_its_title_date_author_and_address(site: Site, tmp_path: Path) -> None:
    rss(site, ("rail", "Trains are booked by the office."))
    (item,) = listed(site).values()
    assert item.name == "2026-11-03 About rail & more.html"
    assert item.url == site.url("/rail")
    text, said = fetched(site, item, tmp_path)
    assert "Trains are booked" in text
    assert said == {
        "title": "About rail & more",
        "metadata": {"author": "Ann", "date": "2026-11-03T09:00:00+00:00"},
    }


def test_atom_is_read_with_plain_texts_as_they_are(site: Site, tmp_path: Path) -> None:
    site.file(
        "/feed",
        b'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><id>urn:1</id>'
        b"<title>Prices</title><updated>2026-11-04T10:00:00Z</updated>"
        b'<content type="text">Cheaper if a &lt; b.</content></entry></feed>',
        "application/atom+xml",
    )
    (item,) = listed(site).values()
    assert (item.key, item.name) == ("urn:1", "2026-11-04 Prices.html")
    assert "a &lt; b" in fetched(site, item, tmp_path)[0]


def test_an_unchanged_feed_is_not_sent_again(site: Site) -> None:
    rss(site, ("rail", "Trains."), ("bus", "Buses."))
    first = listed(site)
    site.asked()
    assert listed(site) == first
    assert site.sent == []
    rss(site, ("rail", "Trains."), ("bus", "Buses and trams."))
    second = listed(site)
    assert [key for key in first if first[key].version != second[key].version] == ["bus"]


def test_the_page_behind_an_entry_is_read_where_that_is_wanted(site: Site, tmp_path: Path) -> None:
    rss(site, ("rail", "Trains …"), ("bus", "Buses …"), ("shut", "Shut …"))
    site.page("/rail", "Trains are booked by the office, and paid by it.")
    site.fail("/bus", 404)
    site.file("/robots.txt", b"User-agent: *\nDisallow: /shut\n")
    found = listed(site, full_pages=True)
    assert "paid by it" in fetched(site, found["rail"], tmp_path, full_pages=True)[0]
    with pytest.raises(Exception, match="no longer exists"):
        fetched(site, found["bus"], tmp_path, full_pages=True)
    assert "Shut …" in fetched(site, found["shut"], tmp_path, full_pages=True)[0]


def test_a_page_that_names_its_feed_does_as_well(site: Site) -> None:
    named = '<link rel="alternate" type="application/rss+xml" href="news.xml">'
    site.page("/blog/", "Our news.", head=named)
    rss(site, ("rail", "Trains."), path="/blog/news.xml")
    assert set(listed(site, "/blog/")) == {"rail"}
    site.page("/plain", "No news.")
    with pytest.raises(SourceError, match="does not link to a feed"):
        listed(site, "/plain")
    site.file("/text", b"This is no feed at all.")
    with pytest.raises(SourceError, match="is not an RSS or Atom feed"):
        listed(site, "/text")
    site.fail("/feed", 503)
    with pytest.raises(SourceError, match="answers 503"):
        listed(site)


@pytest.mark.django_db
@pytest.mark.usefixtures("media_root")
def test_what_has_left_the_feed_stays(site: Site) -> None:
    collection: Collection = CollectionFactory(slug="news", default_language="en")
    source = services.create_source(
        collection=collection, name="News", connector="feed", options={"url": site.url("/feed")}
    )

    def read() -> DataSourceRun:
        services.start_run(source=source, enqueue=False)
        run = runs.work_on(source.pk, seconds=None)
        assert run is not None
        ids = list(Document.objects.exclude(status="ready").values_list("pk", flat=True))
        pipeline.embed_documents(pipeline.parse_documents(ids))
        return run

    rss(site, *((f"entry{number}", f"Text {number}.") for number in range(12)))
    assert read().fetched == 12
    rss(site, ("entry11", "Text 11."), ("entry12", "Text 12."))
    run = read()
    assert (run.state, run.fetched, run.deleted) == ("succeeded", 1, 0)
    rss(site)  # nothing new for a while
    assert read().state == "succeeded"
    assert Document.objects.filter(collection=collection).count() == 13
    document = Document.objects.get(key__endswith="entry3")
    assert (document.title, document.metadata["author"]) == ("About entry3 & more", "Ann")
    assert "Text 3." in document.chunks.get().text
