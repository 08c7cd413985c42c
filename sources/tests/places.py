"""Real places of sources: a folder, a git repository, servers of WebDAV, S3 and IMAP, a web site.
Begin with `Place`."""

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import boto3
from dulwich import porcelain
from dulwich.repo import Repo
from imapclient import IMAPClient
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from wsgidav.fs_dav_provider import FilesystemProvider
from wsgidav.wsgidav_app import WsgiDAVApp

from sources.tests.sites import Site

PASSWORD = "heron-and-kingfisher"
MAIL_USER = "ann@example.org"


class Place:
    """Files below `root` for a connector of `kind` with `options`. After changes call `tell`."""

    kind = "folder"
    #: Whether a file can get another text, and stay the same file.
    can_change = True

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


class _Quiet(WSGIRequestHandler):
    def log(self, *args: Any) -> None:
        pass


class WebPlace(Place):
    """Served by an application on a loopback port."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.port = 0
        self._server: BaseWSGIServer | None = None
        self.come_back()

    def application(self) -> Any:
        raise NotImplementedError

    def leave(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def come_back(self) -> None:
        self._server = make_server(
            "127.0.0.1", self.port, self.application(), threaded=True, request_handler=_Quiet
        )
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()


class WebDavPlace(WebPlace):
    """Served by WsgiDAV, to one name with a password."""

    kind = "webdav"

    @property
    def options(self) -> dict[str, str]:
        url = f"http://localhost:{self.port}/team"
        return {"url": url, "username": "ann", "password": PASSWORD}

    def application(self) -> Any:
        return WsgiDAVApp(
            {
                "provider_mapping": {"/team": FilesystemProvider(str(self.root))},
                "simple_dc": {"user_mapping": {"*": {"ann": {"password": PASSWORD}}}},
                "http_authenticator": {"accept_basic": True, "accept_digest": False},
                "logging": {"enable": False},
                "verbose": 0,
            }
        )


class S3Place(WebPlace):
    """A bucket of moto, which implements S3; the files are below a folder of the bucket."""

    kind = "s3"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.bucket = f"team-{uuid4().hex[:12]}"
        self.endpoint = f"http://localhost:{self.port}"
        self.client = self.service("s3")
        self.client.create_bucket(Bucket=self.bucket)

    def service(self, name: str, **keys: str) -> Any:
        """A client for a service of this server, as other programs have it."""
        keys = keys or {"aws_access_key_id": "any", "aws_secret_access_key": "thing"}
        return boto3.client(name, endpoint_url=self.endpoint, region_name="us-east-1", **keys)

    @property
    def options(self) -> dict[str, str]:
        return {
            "endpoint": self.endpoint,
            "bucket": self.bucket,
            "prefix": "docs",
            "access_key": "any",
            "secret_key": "thing",
        }

    def application(self) -> Any:
        from moto.server import DomainDispatcherApplication, create_backend_app

        return DomainDispatcherApplication(create_backend_app)

    def write(self, name: str, text: str | bytes, **options: Any) -> None:
        body = text.encode() if isinstance(text, str) else text
        self.client.put_object(Bucket=self.bucket, Key=f"docs/{name}", Body=body, **options)

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=f"docs/{name}")

    def rename(self, name: str, to: str) -> None:
        source = {"Bucket": self.bucket, "Key": f"docs/{name}"}
        self.client.copy_object(Bucket=self.bucket, Key=f"docs/{to}", CopySource=source)
        self.remove(name)


class MailPlace(Place):
    """A mailbox of pymap. A file is a message whose subject is its name; what it had before is
    another message, and is deleted."""

    kind = "imap"
    can_change = False

    def __init__(self, root: Path) -> None:
        from sources.tests.mail_server import MailServer

        super().__init__(root)
        self.server = MailServer(MAIL_USER, PASSWORD)
        self.server.start()
        self._messages: dict[str, tuple[str, int]] = {}
        self._client: IMAPClient | None = None

    @property
    def client(self) -> IMAPClient:
        """As other programs have it: logged in, and allowed to write."""
        if self._client is None:
            self._client = IMAPClient("localhost", self.server.port, ssl=False)
            self._client.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._client.login(MAIL_USER, PASSWORD)
        return self._client

    @property
    def options(self) -> dict[str, str]:
        return {
            "host": "localhost",
            "port": str(self.server.port),
            "security": "none",
            "username": MAIL_USER,
            "password": PASSWORD,
        }

    def write(self, name: str, text: str | bytes) -> None:
        """A message with this text, or these bytes."""
        head = f"Subject: {name.rpartition('/')[2]}\r\n\r\n"
        before = self._messages.get(name)
        folder = self._folder(name)
        told = self.client.append(folder, (head + text).encode() if isinstance(text, str) else text)
        uid = int(re.findall(rb"APPENDUID \d+ (\d+)", told)[0])
        if before is not None:
            self.remove(name)
        self._messages[name] = folder, uid

    def remove(self, name: str) -> None:
        folder, uid = self._messages.pop(name)
        self.client.select_folder(folder)
        self.client.delete_messages([uid])
        self.client.expunge()

    def rename(self, name: str, to: str) -> None:
        """Move it to the folder."""
        folder, uid = self._messages.pop(name)
        target = self._folder(to)
        self.client.select_folder(folder)
        (told,) = re.findall(rb"COPYUID \d+ \d+ (\d+)", self._move(uid, target))
        self._messages[to] = target, int(told)

    def forget(self) -> None:
        """Its folders were deleted by somebody else."""
        self._messages.clear()

    def _move(self, uid: int, target: str) -> bytes:
        self.client.move([uid], target)
        return b" ".join(map(bytes, self.client._imap.untagged_responses.get("OK", ())))

    def _folder(self, name: str) -> str:
        folder = name.rpartition("/")[0] or "INBOX"
        if not self.client.folder_exists(folder):
            self.client.create_folder(folder)
        return folder

    def leave(self) -> None:
        self._client = None
        self.server.stop()

    def come_back(self) -> None:
        self.server.start()


def file_of(name: str) -> str:
    """The name of the file that a place was given, by that of its document."""
    mail = re.fullmatch(r"(.*/)\d{4}-\d\d-\d\d (.*)\.eml", name)
    return name if mail is None else f"{mail[1].removeprefix('INBOX/')}{mail[2]}"


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
