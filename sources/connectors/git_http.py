"""Git over HTTP from servers that need no trust: connections to checked addresses only, and bounds
on what is sent. Begin with `BoundedGitClient`."""

import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import urllib3
from dulwich.client import FetchPackResult, Urllib3HttpGitClient
from dulwich.errors import GitProtocolError
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from common.translation import format_number, gettext
from sources.connectors.base import SourceError
from sources.connectors.http import reachable_addresses

#: For everything, however slowly it comes; and of silence.
GIT_SECONDS = 900.0
READ_SECONDS = 60.0
#: All answers together, and those with references alone.
MAX_BYTES = 2 * 1024**3
MAX_LISTING_BYTES = 64 * 1024**2
#: Of a pack: objects (files and folders), and bytes of one and of all of them unpacked.
MAX_OBJECTS = 200_000
MAX_OBJECT_BYTES = 256 * 1024**2
MAX_UNPACKED_BYTES = 8 * 1024**3

_ADVERTISEMENT = "application/x-git-upload-pack-advertisement"


class _CheckedConnection(HTTPConnection):
    """Looks the host up itself, and opens the socket to the number that was checked: a name could
    have another address a moment later. Host header and certificate stay those of the name."""

    sockets: ClassVar[list[socket.socket]]

    def _new_conn(self) -> socket.socket:
        failure: OSError | None = None
        for address in reachable_addresses(self._dns_host, self.port):
            try:
                opened = socket.create_connection((address, self.port), READ_SECONDS)
            except TimeoutError as error:
                raise ConnectTimeoutError(self, f"{self.host} does not answer.") from error
            except OSError as error:  # such as IPv6 where there is none
                failure = error
            else:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                # A duplicate, because TLS takes the socket itself over.
                self.sockets.append(opened.dup())
                return opened
        raise NewConnectionError(self, f"{self.host} cannot be reached: {failure}") from failure


class _CheckedTlsConnection(_CheckedConnection, HTTPSConnection):
    """The same with TLS."""


class BoundedGitClient(Urllib3HttpGitClient):
    """Fetches from one server by its smart protocol. Raises SourceError for addresses that may not
    be reached and for what exceeds the bounds; redirections are not followed."""

    def __init__(self, url: str, *, username: str = "", password: str = "") -> None:
        self._sockets: list[socket.socket] = []
        self._is_late = False
        self._received = 0
        pool = urllib3.PoolManager(
            timeout=READ_SECONDS, retries=urllib3.Retry(2, redirect=0, read=0)
        )
        own = {"sockets": self._sockets}
        plain = type("Connection", (_CheckedConnection,), own)
        encrypted = type("TlsConnection", (_CheckedTlsConnection,), own)
        pool.pool_classes_by_scheme = {
            "http": type("Pool", (urllib3.HTTPConnectionPool,), {"ConnectionCls": plain}),
            "https": type("TlsPool", (urllib3.HTTPSConnectionPool,), {"ConnectionCls": encrypted}),
        }
        parts = urlsplit(url)
        super().__init__(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
            pool_manager=pool,
            username=username or None,
            password=password or None,
            quiet=True,
        )
        self._path = parts.path

    def fetch_newest(
        self, repo: Any, wants: Callable[[dict[Any, Any]], list[Any]]
    ) -> FetchPackResult:
        """Fetch the commits that `wants` chooses of the references, without their history."""
        with self._within_time():
            result: FetchPackResult = self.fetch(
                self._path, repo, determine_wants=lambda refs, depth=None: wants(refs), depth=1
            )
            return result

    def fetch_pack(
        self,
        path: Any,
        determine_wants: Any,
        graph_walker: Any,
        pack_data: Any,
        *args: Any,
        **options: Any,
    ) -> FetchPackResult:
        """Fetch a pack, checked as it comes."""
        check = PackCheck()

        def checked(data: bytes) -> int:
            check.feed(data)
            written: int = pack_data(data)
            return written

        return super().fetch_pack(path, determine_wants, graph_walker, checked, *args, **options)

    def _http_request(
        self, url: str, headers: Any = None, data: Any = None, raise_for_status: bool = True
    ) -> tuple[Any, Callable[[int], bytes]]:
        answer, read = super()._http_request(url, headers, data, raise_for_status)
        if data is None and not (answer.content_type or "").startswith(_ADVERTISEMENT):
            answer.close()
            raise GitProtocolError("this is no address of a git repository that a server serves")
        is_listing = data is None or (isinstance(data, bytes) and b"want " not in data)
        most = self._received + MAX_LISTING_BYTES if is_listing else MAX_BYTES

        def counted(size: int = -1) -> bytes:
            piece = read(min(size, MAX_LISTING_BYTES) if size >= 0 else MAX_LISTING_BYTES)
            self._received += len(piece)
            if self._received > min(most, MAX_BYTES):
                raise too_much(gettext("{limit} bytes"), min(most, MAX_BYTES))
            return piece

        return answer, counted

    @contextmanager
    def _within_time(self) -> Iterator[None]:
        """Within the block all connections end after GIT_SECONDS."""

        def hang_up() -> None:
            self._is_late = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(GIT_SECONDS, hang_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception as error:
            if self._is_late:
                raise too_much(gettext("{limit} seconds"), GIT_SECONDS) from error
            raise
        finally:
            timer.cancel()
            for each in self._sockets:
                each.close()
            self._sockets.clear()
            self.pool_manager.clear()


def too_much(what: str, limit: float) -> SourceError:
    """The error for a repository that exceeds a bound, `what` with a place for `limit`."""
    return SourceError(
        gettext("The repository takes more than {bound}. Fetch from a smaller one.").format(
            bound=what.format(limit=format_number(int(limit)))
        )
    )


class PackCheck:
    """Reads a pack as it comes (https://git-scm.com/docs/pack-format), keeps nothing of it, and
    raises SourceError where it has too many objects or unpacks to too much: a few bytes may stand
    for gigabytes."""

    def __init__(self) -> None:
        self._rest = b""
        self._objects: int | None = None  # that are still to come; None before the header
        self._inflate: Any = None  # of the object that is being read
        self._declared = 0
        self._size = 0
        self._total = 0
        self._delta: bytes | None = None  # the beginning of a delta

    def feed(self, data: bytes) -> None:
        """Raises SourceError, and GitProtocolError for what is no pack."""
        self._rest += data
        try:
            while self._step():
                pass
        except zlib.error as error:
            raise GitProtocolError(f"the pack is broken: {error}") from error

    def _step(self) -> bool:
        """One part of the pack; False where more must come first."""
        if self._objects is None:
            return self._read_head()
        if self._inflate is not None:
            return self._read_content()
        if self._objects == 0:
            self._rest = b""  # the checksum, which dulwich compares
            return False
        return self._read_object_head()

    def _read_head(self) -> bool:
        if len(self._rest) < 12:
            return False
        signature, _, self._objects = struct.unpack(">4sLL", self._rest[:12])
        if signature != b"PACK":
            raise GitProtocolError("the server sends no pack")
        if self._objects > MAX_OBJECTS:
            raise too_much(gettext("{limit} files and folders"), MAX_OBJECTS)
        self._rest = self._rest[12:]
        return True

    def _read_object_head(self) -> bool:
        found = _number(self._rest, 0)
        if found is None:
            return False
        at = found[1]
        kind = self._rest[0] >> 4 & 7
        # Of the first byte four bits are the size's.
        self._declared = (found[0] >> 7 << 4) | (self._rest[0] & 15)
        self._check_object(self._declared)
        if kind == 6:
            if (base := _number(self._rest, at)) is None:
                return False
            at = base[1]
        elif kind == 7:
            at += 20
        if len(self._rest) < at:
            return False
        self._delta = b"" if kind in (6, 7) else None
        self._rest, self._size, self._inflate = self._rest[at:], 0, zlib.decompressobj()
        return True

    def _read_content(self) -> bool:
        piece = self._inflate.decompress(self._rest, 1024 * 1024)
        self._size += len(piece)
        self._total += len(piece)
        if self._size > self._declared:
            raise GitProtocolError("an object of the pack is larger than it says")
        if self._delta is not None and len(self._delta) < 32:
            self._delta += piece[:32]
        has_ended = self._inflate.eof
        self._rest = self._inflate.unused_data if has_ended else self._inflate.unconsumed_tail
        if has_ended:
            if self._delta is not None and (source := _number(self._delta, 0)):
                result = _number(self._delta, source[1])
                self._check_object(result[0] if result else 0)
                self._total += result[0] if result else 0
            assert self._objects is not None
            self._objects -= 1
            self._inflate = None
        if self._total > MAX_UNPACKED_BYTES:
            raise too_much(gettext("{limit} bytes unpacked"), MAX_UNPACKED_BYTES)
        return has_ended or bool(piece)

    def _check_object(self, size: int) -> None:
        if size > MAX_OBJECT_BYTES:
            raise too_much(gettext("{limit} bytes in one file"), MAX_OBJECT_BYTES)


def _number(data: bytes, at: int) -> tuple[int, int] | None:
    """A number of seven bits a byte, the lowest first, and where it ends; None where more must
    come."""
    number = 0
    for place, byte in enumerate(data[at : at + 10]):
        number |= (byte & 127) << (7 * place)
        if byte < 128:
            return number, at + place + 1
    if len(data) - at >= 10:
        raise GitProtocolError("a number in the pack has too many digits")
    return None
