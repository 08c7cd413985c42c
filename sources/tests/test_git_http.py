"""Repositories of servers that may be hostile: by which number they are reached, and what they may
send."""

import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from dulwich.errors import GitProtocolError
from dulwich.objects import Blob, Commit, Tree
from dulwich.repo import Repo
from dulwich.server import DictBackend
from dulwich.web import make_wsgi_chain
from werkzeug.serving import WSGIRequestHandler, make_server

from documents.tests.web_server import Web, running
from sources import services
from sources.connectors import connector_class, git, git_http
from sources.connectors.base import SourceError
from sources.connectors.git_http import PackCheck
from sources.tests.places import GitPlace

LEAVE = "Five days of leave can be carried over."


class Handler(WSGIRequestHandler):
    """Notes the address that was connected to, and logs nothing."""

    def log(self, *args: Any) -> None:
        pass


class GitServer:
    """dulwich's server of one repository on a loopback address."""

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int = 0) -> None:
        self.asked: list[str] = []
        application = make_wsgi_chain(DictBackend({"/team": Repo(str(folder))}))

        def counted(environ: Any, start: Any) -> Any:
            self.asked.append(environ["PATH_INFO"])
            return application(environ, start)

        self._server = make_server(host, port, counted, threaded=True, request_handler=Handler)
        self.port = self._server.server_port

    @contextmanager
    def running(self) -> Iterator["GitServer"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}/team"


@pytest.fixture(autouse=True)
def _settings(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.SOURCES_DIR = tmp_path / "cache"
    settings.SOURCE_NETWORKS = ["127.0.0.0/8", "::1/128"]


@pytest.fixture
def place(tmp_path: Path) -> GitPlace:
    place = GitPlace(tmp_path / "team")
    place.write("leave.md", LEAVE)
    place.write("travel/rail.md", "Trains are booked by the office.\n" * 50)
    place.tell()
    return place


@pytest.fixture
def server(place: GitPlace) -> Iterator[GitServer]:
    with GitServer(place.root).running() as server:
        yield server


def connector(url: str) -> Any:
    kind = connector_class("git")
    return kind(kind.Options(url=url))


def names(url: str) -> list[str]:
    opened = connector(url)
    try:
        return sorted(item.key for item in opened.list_items())
    finally:
        opened.close()


def test_a_repository_is_fetched_and_then_only_what_is_new(
    server: GitServer, place: GitPlace, tmp_path: Path
) -> None:
    assert names(server.url) == ["leave.md", "travel/rail.md"]
    asked = len(server.asked)
    assert names(server.url) == ["leave.md", "travel/rail.md"]
    assert "/team/git-upload-pack" in server.asked[:asked]
    place.write("bicycle.md", "25 cents.")
    place.write("leave.md", "Six days.")
    place.tell()
    opened = connector(server.url)
    items = {item.key: item for item in opened.list_items()}
    opened.fetch(items["leave.md"], tmp_path / "leave", max_bytes=1000)
    opened.close()
    assert sorted(items) == ["bicycle.md", "leave.md", "travel/rail.md"]
    assert (tmp_path / "leave").read_text() == "Six days."


def test_the_number_that_was_checked_is_the_one_connected_to(
    place: GitPlace, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name has an allowed address when it is checked; for the system it is 127.0.0.1."""
    settings.SOURCE_NETWORKS = ["127.0.0.2/32"]
    monkeypatch.setattr("sources.connectors.http.resolve_host", lambda *_: ["127.0.0.2"])
    inside = GitPlace(tmp_path / "inside")
    inside.write("secret.md", "Of nobody's business.")
    inside.tell()
    with (
        GitServer(inside.root).running() as hidden,
        GitServer(place.root, "127.0.0.2", hidden.port).running() as public,
    ):
        assert names(public.url) == ["leave.md", "travel/rail.md"]
        assert public.asked
        assert hidden.asked == []


def test_a_name_that_changes_its_answer_is_refused_at_its_next_connection(
    place: GitPlace, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SOURCE_NETWORKS = ["127.0.0.2/32"]
    answers = iter(["127.0.0.2"])
    monkeypatch.setattr(
        "sources.connectors.http.resolve_host", lambda *_: [next(answers, "127.0.0.1")]
    )
    with GitServer(place.root, "127.0.0.2").running() as server:
        with pytest.raises(SourceError, match="outside the public internet") as refused:
            names(server.url)
        assert server.asked == ["/team/info/refs"]
    assert refused.value.is_permanent


def test_a_repository_of_this_server_is_named_by_path_or_address(tmp_path: Path) -> None:
    place = GitPlace(tmp_path / "our team")
    place.write("leave.md", LEAVE)
    (place.root / "link.md").symlink_to("leave.md")
    (place.root / "outside.txt").symlink_to("/etc/hostname")
    place.tell()
    assert names(str(place.root)) == names(place.root.as_uri()) == ["leave.md"]
    with pytest.raises(SourceError, match="an absolute path on the server"):
        names(f"file://other.example.org{place.root}")


def test_a_web_site_is_no_repository() -> None:
    with running(Web()) as web:
        web.file("/team/info/refs", b"0" * 40 + b"\trefs/heads/main\n")
        with pytest.raises(SourceError, match="no address of a git repository"):
            services.first_items("git", {"url": web.url("/team", host="localhost")})


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ("MAX_BYTES", r"100 bytes\. Fetch"),
        ("MAX_LISTING_BYTES", r"100 bytes\. Fetch"),
        ("MAX_OBJECTS", "files and folders"),
        ("MAX_OBJECT_BYTES", "bytes in one file"),
        ("MAX_UNPACKED_BYTES", "bytes unpacked"),
    ],
)
def test_a_repository_has_bounds(
    server: GitServer, bound: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_http, bound, 2 if bound == "MAX_OBJECTS" else 100)
    with pytest.raises(SourceError, match=said):
        names(server.url)
    monkeypatch.undo()


@pytest.mark.parametrize("in_headers", [True, False])
def test_a_server_that_drips_is_left_when_the_time_is_over(
    in_headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_http, "GIT_SECONDS", 0.3)

    def drip(request: Any) -> None:
        kind = f"Content-Type: {git_http._ADVERTISEMENT}\r\n\r\n"
        request.wfile.write(b"HTTP/1.1 200 OK\r\n" + (b"X: " if in_headers else kind.encode()))
        while not web.over.wait(0.01):
            request.wfile.write(b"f")
        request.close_connection = True

    with running(Web()) as web:
        web.pages["/team/info/refs"] = drip
        with pytest.raises(SourceError, match=r"seconds\. Fetch"):
            services.first_items("git", {"url": web.url("/team", host="localhost")})


def test_a_folder_that_is_in_itself_many_times_over_is_not_walked(
    server: GitServer, place: GitPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "MAX_ENTRIES", 1000)
    with Repo(str(place.root)) as repo:
        blob = Blob.from_string(b"x")
        repo.object_store.add_object(blob)
        kind, sha = 0o100644, blob.id
        for _ in range(12):  # 10 ** 12 files
            tree = Tree()
            for name in range(10):
                tree.add(b"%d" % name, kind, sha)
            repo.object_store.add_object(tree)
            kind, sha = 0o040000, tree.id
        commit = Commit()
        commit.tree, commit.author, commit.committer = sha, b"A <a@b>", b"A <a@b>"
        commit.author_time = commit.commit_time = 0
        commit.author_timezone = commit.commit_timezone = 0
        commit.message = b"bomb"
        repo.object_store.add_object(commit)
        repo.refs[repo.refs.follow(b"HEAD")[0][-1]] = commit.id  # type: ignore[index, arg-type]
    with pytest.raises(SourceError, match="1,000 files and folders"):
        names(server.url)


def number(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def packed(kind: int, content: bytes, *, declared: int | None = None, base: bytes = b"") -> bytes:
    """An object of a pack."""
    size = len(content) if declared is None else declared
    first = kind << 4 | size & 15
    rest = size >> 4
    head = bytes([first | 128]) + number(rest) if rest else bytes([first])
    return head + base + zlib.compress(content)


def pack(*objects: bytes) -> bytes:
    return struct.pack(">4sLL", b"PACK", 2, len(objects)) + b"".join(objects) + b"c" * 20


SMALL = [packed(3, b"x" * 100), packed(3, b""), packed(6, b"\x64\x64\x90\x64", base=b"\x05")]
SMALL.append(packed(7, b"\x64\x64\x90\x64", base=b"b" * 20))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_a_pack_is_read_however_it_is_cut(size: int) -> None:
    data = pack(*SMALL) + b"more"
    check = PackCheck()
    for at in range(0, len(data), size):
        check.feed(data[at : at + size])
    assert check._objects == 0
    assert check._total == 100 + 2 * (4 + 100)
    assert check._rest == b""


BIG = 10**9


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        (pack(packed(3, b"x" * 5000, declared=5)), GitProtocolError, "larger than it says"),
        (pack(packed(3, b"x", declared=BIG)), SourceError, "bytes in one file"),
        (
            pack(packed(7, number(5) + number(BIG) + b"\x90", base=b"b" * 20)),
            SourceError,
            "bytes in one file",
        ),
        (struct.pack(">4sLL", b"PACK", 2, BIG), SourceError, "files and folders"),
        (b"HELLO, WORLD", GitProtocolError, "no pack"),
        (pack(b"\x35not zlib"), GitProtocolError, "broken"),
        (pack(b"\xff" * 20), GitProtocolError, "too many digits"),
    ],
)
def test_a_pack_that_would_unpack_to_too_much_is_refused(
    data: bytes, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        PackCheck().feed(data)


def test_many_objects_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_http, "MAX_UNPACKED_BYTES", 1000)
    check = PackCheck()
    check.feed(pack(*[packed(3, b"x" * 100)] * 10))
    with pytest.raises(SourceError, match="1,000 bytes unpacked"):
        PackCheck().feed(pack(*[packed(3, b"x" * 100)] * 11))
