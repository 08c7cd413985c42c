"""Pages come from the internet, never from inside the network, and never more than is allowed."""

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from hypothesis import given
from hypothesis import strategies as st

from common.errors import Forbidden, InvalidInput
from documents import services
from documents.ingestion.web_pages import page_file_name
from documents.models import Collection, Document, IngestionRun
from documents.tests.factories import CollectionFactory
from documents.tests.web_server import Web, running, self_signed
from documents.validation import validate
from reading.web_fetch import Address, Fetched, FetchError, checked_url, fetch, is_public

PAGE = b"<html><title>Tea</title><body><h1>Tea</h1><p>Green tea is steamed.</p></body></html>"
LOOPBACK = ip_address("127.0.0.1")


@pytest.fixture
def web() -> Iterator[Web]:
    with running(Web()) as web:
        yield web


def or_loopback(address: Address) -> bool:
    """What tests may reach besides: their own server."""
    return address == LOOPBACK or is_public(address)


def to_loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def get(url: str, **options: Any) -> Fetched:
    defaults = {
        "max_bytes": 10_000,
        "is_allowed": or_loopback,
        "resolve": to_loopback,
        "seconds": 10.0,
    }
    return fetch(url, **{**defaults, **options})


def failure(url: str, **options: Any) -> FetchError:
    with pytest.raises(FetchError) as raised:
        get(url, **options)
    return raised.value


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "0.0.0.0"),
        *("169.254.169.254", "100.64.0.1", "100.100.100.200", "224.0.0.1", "255.255.255.255"),
        *("240.0.0.1", "192.0.2.1", "198.18.0.1", "168.63.129.16", "192.0.0.192"),
        *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:0:7f00:1::"),
    ],
)
def test_no_address_inside_a_network_is_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1"])
def test_addresses_of_the_internet_are(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_address_in_disguise_is_what_it_hides(address: Any) -> None:
    assert is_public(ip_address(f"::ffff:{address}")) == is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "0", "0177.0.0.1"),
        *("[::1]", "[::ffff:127.0.0.1]", "[::]"),
    ],
)
def test_no_spelling_of_this_machine_is_fetched(web: Web, host: str) -> None:
    web.page("/", PAGE)
    with pytest.raises(FetchError) as raised:
        fetch(web.url("/", host), max_bytes=1000, seconds=5.0)
    assert raised.value.code in {"forbidden_address", "unreachable", "malformed"}
    assert web.hosts == []


def test_a_host_with_one_inner_address_among_its_own_is_refused(web: Web) -> None:
    error = failure(web.url("/"), resolve=lambda host, port: ["127.0.0.1", "10.0.0.1"])
    assert error.code == "forbidden_address"
    assert web.hosts == []


def test_a_name_that_changes_its_address_is_connected_to_where_it_was_checked(web: Web) -> None:
    web.page("/", PAGE)
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    assert get(web.url("/"), resolve=lambda host, port: next(answers)).data == PAGE
    assert next(answers) == ["10.0.0.1"]  # it was asked once
    assert web.hosts == [f"docs.example:{web.port}"]


def test_an_address_that_does_not_answer_is_passed_over_for_the_next(web: Web) -> None:
    web.page("/", PAGE)
    both = ["127.0.0.2", "127.0.0.1"]  # nobody listens on the first
    fetched = get(web.url("/"), resolve=lambda host, port: both, is_allowed=lambda address: True)
    assert fetched.data == PAGE


def test_the_certificate_is_that_of_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = self_signed(tmp_path, "docs.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with running(Web(certificate)) as web:
        web.page("/", PAGE)
        assert get(f"https://docs.example:{web.port}/").data == PAGE
        assert "certificate" in str(failure(f"https://other.example:{web.port}/")).lower()


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://docs.example/", "gopher://docs.example/", "docs.example"),
        *("http://", "https:///path", "http://name:word@docs.example/", "javascript:alert(1)"),
        *("http://docs.example:99999/", "", "http://docs.example/" + "x" * 1100),
    ],
)
def test_what_is_no_address_of_a_page_is_refused(url: str) -> None:
    assert failure(url).code == "malformed"


def test_addresses_are_kept_in_one_form() -> None:
    assert str(checked_url("HTTP://Docs.Example:80#part")) == "http://docs.example/"
    assert str(checked_url("https://docs.example:443/a?b=1#c")) == "https://docs.example/a?b=1"


def test_a_proxy_of_the_environment_is_not_asked(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.page("/", PAGE)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(web.url("/")).data == PAGE


# --- answers --------------------------------------------------------------------------------------


def test_a_page_comes_with_where_it_was_and_what_it_is(web: Web) -> None:
    web.page("/tea", PAGE, "text/html; charset=UTF-8")
    fetched = get(web.url("/tea"))
    assert (fetched.data, fetched.media_type, fetched.charset) == (PAGE, "text/html", "utf-8")
    assert fetched.url == fetched.final_url == web.url("/tea")


def test_redirects_are_followed_and_the_last_address_told(web: Web) -> None:
    web.page("/tea", PAGE)
    web.redirect("/old", "/older", 301)
    web.redirect("/older", web.url("/tea", "other.example"), 307)
    fetched = get(web.url("/old"))
    assert (fetched.url, fetched.final_url) == (
        web.url("/old"),
        web.url("/tea", "other.example"),
    )


@pytest.mark.parametrize(
    "to", ["http://10.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest"]
)
def test_redirects_lead_nowhere_else(web: Web, to: str) -> None:
    web.redirect("/", to)

    def ask(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "docs.example" else [host.strip("[]")]

    assert failure(web.url("/"), resolve=ask).code == "forbidden_address"


@pytest.mark.parametrize("to", ["file:///etc/passwd", "//", "ftp://docs.example/"])
def test_redirects_to_what_is_no_page_are_refused(web: Web, to: str) -> None:
    web.redirect("/", to)
    assert failure(web.url("/")).code in {"malformed", "unreachable"}


def test_redirects_end(web: Web) -> None:
    web.redirect("/", "/")
    assert "more than 5 times" in str(failure(web.url("/")))
    assert len(web.hosts) == 6


def test_a_size_that_is_told_is_believed_if_it_is_too_large(web: Web) -> None:
    web.page("/", b"x" * 100, Content_Length=str(10**12))
    assert failure(web.url("/")).code == "too_large"


def test_a_body_without_end_is_not_read_to_its_end(web: Web) -> None:
    sent = []

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        try:
            while not web.over.is_set():
                handler.wfile.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                sent.append(4096)
        except OSError:
            handler.close_connection = True

    web.pages["/"] = endless
    assert failure(web.url("/")).code == "too_large"
    assert sum(sent) < 50_000_000


def test_a_body_that_is_cut_off_is_no_page(web: Web) -> None:
    def cut_off(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"the beginning")
        handler.close_connection = True

    web.pages["/"] = cut_off
    assert failure(web.url("/")).code == "unreachable"


def test_a_packed_body_is_not_unpacked(web: Web) -> None:
    web.page("/", gzip.compress(b"x" * 10_000_000), Content_Encoding="gzip")
    error = failure(web.url("/"), max_bytes=20_000_000)
    assert (error.code, "gzip" in str(error)) == ("unsupported", True)


def test_a_server_that_says_nothing_or_drips_is_left(web: Web) -> None:
    web.pages["/silent"] = lambda handler: web.over.wait(10)

    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not web.over.wait(0.05):
            handler.wfile.write(b"x")

    web.pages["/drips"] = drip
    for path in ("/silent", "/drips"):
        assert "did not answer" in str(failure(web.url(path), seconds=0.4))


def test_a_host_that_nobody_knows_is_named() -> None:
    with pytest.raises(FetchError, match="has no address"):
        fetch("http://nowhere.invalid/", max_bytes=1000, seconds=5.0)


def fetched(url: str, media_type: str) -> Fetched:
    from django.utils import timezone

    return Fetched(url, url, b"", media_type, "", timezone.now())


@pytest.mark.parametrize(
    ("path", "media_type", "expected"),
    [
        ("/a/tea", "text/html", "tea.html"),
        ("/a/tea.html", "text/html", "tea.html"),
        ("/a/tea.php?x=1.pdf", "text/html", "tea.php.html"),
        ("/", "text/html", "index.html"),
        ("", "application/pdf", "index.pdf"),
        ("/notes.md", "text/plain", "notes.md"),
        ("/data", "application/json", "data.json"),
        ("/file.docx", "application/octet-stream", "file.docx"),
        ("/file", "image/png", "file"),
    ],
)
def test_the_server_says_what_it_is_and_else_the_address(
    path: str, media_type: str, expected: str
) -> None:
    assert page_file_name(fetched(f"https://docs.example{path}", media_type)) == expected


# --- documents ------------------------------------------------------------------------------------


@pytest.fixture
def collection(db: None, media_root: Path, settings: Any) -> Collection:
    settings.URL_INGESTION = True
    return CollectionFactory(slug="pages", default_language="en")


def ingest(collection: Collection, *urls: str, **options: Any) -> IngestionRun:
    defaults = {"queue": False, "fetch_with": get}
    return services.ingest_urls(collection=collection, urls=urls, **{**defaults, **options})


def test_a_page_becomes_a_document(collection: Collection, web: Web) -> None:
    web.page("/new", PAGE, "text/html; charset=utf-8")
    web.redirect("/tea", "/new")
    run = ingest(collection, web.url("/tea"), metadata={"topic": "tea"})
    document = Document.objects.get()
    assert (run.state, document.key, document.url) == ("succeeded", web.url("/tea"), document.key)
    assert (document.title, document.media_type) == ("Tea", "text/html")
    assert document.metadata["final_url"] == web.url("/new")
    assert document.metadata["topic"] == "tea"
    assert document.metadata["fetched_at"].startswith("20")
    assert validate().is_clean


def test_the_same_page_again_is_unchanged_and_a_new_one_replaces_it(
    collection: Collection, web: Web
) -> None:
    web.page("/tea", PAGE)
    ingest(collection, web.url("/tea"))
    assert ingest(collection, web.url("/tea") + "#part").skipped == 1
    web.page("/tea", PAGE.replace(b"steamed", b"roasted"))
    assert ingest(collection, web.url("/tea")).ready == 1
    assert "roasted" in Document.objects.get().chunks.get().text


def test_a_text_in_the_encoding_that_only_the_header_tells(
    collection: Collection, web: Web
) -> None:
    text = "Grüner Tee wird gedämpft, Çay değil: şöyle içilir."
    web.page("/tea.txt", text.encode("iso-8859-9"), "text/plain; charset=iso-8859-9")
    ingest(collection, web.url("/tea.txt"))
    assert Document.objects.get().chunks.get().text == text


def test_a_page_that_cannot_be_had_fails_alone(collection: Collection, web: Web) -> None:
    web.page("/tea", PAGE)
    run = ingest(collection, web.url("/nowhere"), web.url("/tea"))
    assert (run.state, run.ready, run.failed) == ("partial", 1, 1)
    item = run.items.get(state="failed")
    assert (item.name, item.error_code) == (web.url("/nowhere"), "unreachable")


def test_inner_addresses_fail_the_page_for_everybody(collection: Collection, web: Web) -> None:
    web.page("/", PAGE)
    run = services.ingest_urls(
        collection=collection, urls=[f"http://127.0.0.1:{web.port}/"], queue=False
    )
    assert run.items.get().error_code == "forbidden_address"
    assert web.hosts == []


def test_a_page_for_the_workers_is_stored_and_queued(collection: Collection, web: Web) -> None:
    web.page("/tea", PAGE)
    run = ingest(collection, web.url("/tea"), queue=True)
    document = Document.objects.get()
    assert (run.total, document.status, document.file.read()) == (1, "queued", PAGE)


def test_nothing_is_fetched_unless_that_is_switched_on(
    collection: Collection, web: Web, settings: Any
) -> None:
    settings.URL_INGESTION = False
    web.page("/tea", PAGE)
    with pytest.raises(Forbidden, match="RAGSITE_URL_INGESTION"):
        ingest(collection, web.url("/tea"))
    assert web.hosts == []
    with pytest.raises(CommandError) as raised:
        call_command("ingest", web.url("/tea"), "--collection", "pages")
    assert raised.value.returncode == 2


def test_what_is_no_address_is_refused_at_once(collection: Collection) -> None:
    with pytest.raises(InvalidInput, match="http"):
        ingest(collection, "ftp://docs.example/")
    assert not IngestionRun.objects.exists()


def test_the_command_fetches_beside_files(collection: Collection, web: Web, tmp_path: Path) -> None:
    """It may reach the public internet only, so that its page here fails, and the file does not."""
    (tmp_path / "note.txt").write_text("A note beside it.")
    out = io.StringIO()
    arguments = ("--collection", "pages", "--workspace", collection.workspace.slug, "--json")
    page = f"http://127.0.0.1:{web.port}/tea"
    with pytest.raises(SystemExit) as raised:
        call_command("ingest", page, str(tmp_path / "note.txt"), *arguments, stdout=out)
    report = json.loads(out.getvalue())
    assert raised.value.code == 1
    assert [(f["name"], f["code"]) for f in report["failures"]] == [(page, "forbidden_address")]
    assert report["documents"]["ready"] == 1
