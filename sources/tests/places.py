"""Real places of sources: a folder, a git repository, a WebDAV server, a web site. Begin with
`Place`."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import unquote
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from dulwich import porcelain
from dulwich.repo import Repo
from wsgidav.fs_dav_provider import FilesystemProvider
from wsgidav.wsgidav_app import WsgiDAVApp

from sources.tests.sites import Site

PASSWORD = "heron-and-kingfisher"


class Place:
    """Files below `root` for a connector of `kind` with `options`. After changes call `tell`."""

    kind = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir(parents=True, exist_ok=True)

    @property
    def options(self) -> dict[str, str]:
        return {"path": str(self.root)}

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def rename(self, name: str, to: str) -> None:
        target = self.root / to
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).rename(target)

    def tell(self) -> None:
        """Let the source show what was changed."""

    def leave(self) -> None:
        """Be away: not mounted, not running."""
        self.root.rename(self.root.with_name("away"))

    def come_back(self) -> None:
        self.root.with_name("away").rename(self.root)


class GitPlace(Place):
    """A repository whose work tree is `root`; `tell` commits."""

    kind = "git"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        Repo.init(str(root)).close()
        self._author = b"Ann <ann@example.org>"

    @property
    def options(self) -> dict[str, str]:
        return {"url": str(self.root)}

    def tell(self) -> None:
        porcelain.add(str(self.root))
        with Repo(str(self.root)) as repo:
            tree = {entry.path.decode() for entry in _tree(repo)}
            gone = [name for name in tree if not (self.root / name).exists()]
            repo.get_worktree().stage(gone)
        porcelain.commit(
            str(self.root), message=b"change", author=self._author, committer=self._author
        )


def _tree(repo: Repo) -> Iterator[Any]:
    with suppress(KeyError):
        yield from repo.object_store.iter_tree_contents(repo[repo.head()].tree)  # type: ignore[union-attr]


class WebDavPlace(Place):
    """Served by WsgiDAV on a loopback port, to one name with a password."""

    kind = "webdav"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.port = 0
        self._server: WSGIServer | None = None
        self.come_back()

    @property
    def options(self) -> dict[str, str]:
        url = f"http://localhost:{self.port}/team"
        return {"url": url, "username": "ann", "password": PASSWORD}

    def leave(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def come_back(self) -> None:
        application = WsgiDAVApp(
            {
                "provider_mapping": {"/team": FilesystemProvider(str(self.root))},
                "simple_dc": {"user_mapping": {"*": {"ann": {"password": PASSWORD}}}},
                "http_authenticator": {"accept_basic": True, "accept_digest": False},
                "logging": {"enable": False},
                "verbose": 0,
            }
        )
        self._server = make_server(
            "127.0.0.1", self.port, application, server_class=_Server, handler_class=_Quiet
        )
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


class SitePlace(Place, Site):
    """A web site whose first page, which is none to be found, links to all files."""

    kind = "web"

    def __init__(self, root: Path) -> None:
        Place.__init__(self, root)
        Site.__init__(self)
        self.come_back()

    @property
    def options(self) -> dict[str, str]:
        return {"url": self.url(), "delay": "0"}

    def leave(self) -> None:
        self.stop()

    def come_back(self) -> None:
        self.start()

    def answer(self, path: str) -> Any:
        if path == "/":
            names = sorted(
                str(each.relative_to(self.root)) for each in self.root.rglob("*") if each.is_file()
            )
            self.page("/", "", *names, head='<meta name="robots" content="noindex">')
        elif (file := self.root / unquote(path).lstrip("/")).is_file():
            return 200, {"Content-Type": "text/markdown"}, file.read_bytes()
        return super().answer(path)


@contextmanager
def opened(kind: type[Place], root: Path) -> Iterator[Place]:
    """A place that is shut down and removed at the end."""
    place = kind(root)
    try:
        yield place
    finally:
        place.leave()
        shutil.rmtree(root, ignore_errors=True)
