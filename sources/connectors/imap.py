"""The messages of an IMAP mailbox (RFC 3501, RFC 9051). Begin with `Imap`."""

import io
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from imaplib import IMAP4
from ipaddress import ip_address
from pathlib import Path
from socket import create_connection
from typing import Any, ClassVar, Literal

from imapclient import IMAPClient
from imapclient.exceptions import LoginError
from pydantic import Field, SecretStr

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import matches_glob
from reading.parsers import ParseError
from reading.parsers.mail import MAIL, read_mail, safe_name
from reading.web_fetch import is_public
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Item,
    ItemError,
    ItemGone,
    SourceError,
    check_size,
)
from sources.connectors.http import reachable_addresses

TLS_PORT, PLAIN_PORT = 993, 143
#: For each wait, and for one command however slowly its answer comes.
WAIT_SECONDS = 60.0
COMMAND_SECONDS = 300.0
#: Numbers of messages that one search covers, messages whose headers are asked for at once, and
#: bytes of one message that are.
SEARCHED_UIDS = 50_000
LISTED_MESSAGES = 500
FETCHED_BYTES = 1024 * 1024
#: Of any answer: a page of headers is far smaller.
MAX_ANSWER_BYTES = 32 * 1024 * 1024
#: A folder that is open is opened anew after this, to see what has changed in it.
OPEN_SECONDS = 10.0

_NO_MESSAGES = frozenset({b"\\noselect", b"\\nonexistent"})
#: Marks (RFC 6154) and last names of folders that are passed over unless they are named.
_PASSED_OVER = frozenset({b"\\junk", b"\\trash", b"\\drafts", b"\\all", b"\\flagged"})
_PASSED_OVER_NAMES = frozenset(
    {
        *("junk", "junk e-mail", "spam", "trash", "deleted items", "deleted messages", "drafts"),
        *("papierkorb", "gelöschte elemente", "junk-e-mail", "entwürfe"),
        *("papelera", "correo no deseado", "borradores"),
    }
)
#: For the name of a message; a subject may be as long as its sender likes.
_HEAD = b"BODY.PEEK[HEADER.FIELDS (SUBJECT DATE)]<0.2000>"
#: In refusals of a login that have nothing to do with the password.
_FOR_A_TIME = ("[unavailable]", "[inuse]", "[limit]", "temporar", "too many", "try again")


class ImapOptions(ConnectorOptions):
    host: str = Field(
        title=gettext_noop("Server"), description=gettext_noop("Such as imap.example.org.")
    )
    username: str = Field(title=gettext_noop("User name"))
    password: SecretStr = Field(
        title=gettext_noop("Password"),
        description=gettext_noop(
            "Use a separate password for this site, often called an app password."
        ),
    )
    folders: str = Field(
        default="**",
        title=gettext_noop("Folders"),
        description=gettext_noop(
            "Separated by commas, such as INBOX, Projects/**. Spam, trash and drafts"
            " only if listed."
        ),
    )
    since: date | None = Field(
        default=None,
        title=gettext_noop("Messages since"),
        description=gettext_noop("The first day of arrival. Empty: all messages."),
    )
    security: Literal["tls", "starttls", "none"] = Field(
        default="tls",
        title=gettext_noop("Encryption"),
        description=gettext_noop("Choose none only for servers in your own network."),
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        title=gettext_noop("Port"),
        description=gettext_noop("Empty: 993 with tls, else 143."),
    )


class Imap(Connector):
    """Reads messages without marking them as read. A key is folder, UIDVALIDITY and UID, which a
    server gives to one message alone; messages never change, so that all have one version. Those
    that moved, or were given new numbers, are known again by their bytes."""

    kind = "imap"
    label = gettext_noop("Mailbox (IMAP)")
    Options: ClassVar[type[ConnectorOptions]] = ImapOptions

    def __init__(self, options: ImapOptions) -> None:
        self._options = options
        self._opened: _Client | None = None
        #: Name, UIDVALIDITY and age of the folder that is open.
        self._folder = ("", 0, 0.0)

    def list_items(self) -> Iterator[Item]:
        with self._errors():
            for folder, path in self._wanted_folders():
                for uids, validity in self._uids(folder):
                    found = self._command().fetch(uids, [b"RFC822.SIZE", b"INTERNALDATE", _HEAD])
                    for uid, values in found.items():
                        yield Item(
                            key=f"{folder}/{validity}/{uid}",
                            version="1",
                            name=f"{path}/{_file_name(values)}",
                            size=values.get(b"RFC822.SIZE"),
                            modified_at=values.get(b"INTERNALDATE"),
                        )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        check_size(item.size, max_bytes)
        folder, validity, uid = _parsed_key(item.key)
        with self._errors(), file.open("wb") as opened:
            if self._open_folder(folder) != validity:
                raise ItemGone("The server has renumbered its messages.")
            while True:
                at = opened.tell()
                what = f"BODY.PEEK[]<{at}.{FETCHED_BYTES}>".encode()
                try:
                    found = self._command().fetch([uid], [what])
                except IMAP4.abort:
                    raise
                except IMAP4.error as error:
                    raise ItemError(f"The server cannot read it: {_reason(error)}.") from error
                if uid not in found:
                    raise ItemGone(f"{item.name} is there no more.")
                piece = found[uid].get(f"BODY[]<{at}>".encode(), b"") or b""
                if not piece and not at:
                    raise ItemError("The server sends an empty message. Open it in a mail program.")
                opened.write(piece)
                check_size(opened.tell(), max_bytes)
                if len(piece) < FETCHED_BYTES:
                    return {}

    def is_gone(self, key: str) -> bool:
        folder, validity, uid = _parsed_key(key)
        with self._errors():
            try:
                now = self._open_folder(folder)
            except IMAP4.abort:
                raise
            except IMAP4.error:
                names = {name for name, _, _ in self._folders()}
                return bool(names) and folder not in names
            # Its old number is no message's any more; under the new one it was listed.
            return now != validity or not self._command().search(["UID", str(uid), "UNDELETED"])

    def close(self) -> None:
        if self._opened is not None:
            with suppress(IMAP4.error, OSError):
                self._command(seconds=5.0).logout()
            self._hang_up()

    def _hang_up(self) -> None:
        if self._opened is not None:
            with suppress(OSError):
                self._opened.shutdown()
        self._opened, self._folder = None, ("", 0, 0.0)

    # --- folders ---------------------------------------------------------------------------------

    def _folders(self) -> list[tuple[str, str, frozenset[bytes]]]:
        """Of each folder the name that the server knows, its path with slashes, and its marks."""
        found = []
        for flags, delimiter, name in self._command().list_folders():
            path = name.replace(delimiter.decode(), "/") if delimiter else name
            found.append((name, path, frozenset(flag.lower() for flag in flags)))
        return found

    def _wanted_folders(self) -> list[tuple[str, str]]:
        globs = [each.strip().lower() for each in self._options.folders.split(",")]
        folders = [each for each in self._folders() if not each[2] & _NO_MESSAGES]
        wanted = []
        for name, path, flags in folders:
            last = path.rpartition("/")[2].lower()
            is_passed_over = bool(flags & _PASSED_OVER) or last in _PASSED_OVER_NAMES
            if path.lower() in globs or (
                not is_passed_over and any(matches_glob(path.lower(), glob) for glob in globs)
            ):
                wanted.append((name, path))
        if not wanted:
            names = ", ".join(path for _, path, _ in folders[:20]) or "none"
            raise SourceError(
                gettext("No folder matches {folders}. The mailbox has: {names}.").format(
                    folders=self._options.folders, names=names
                )
            )
        return wanted

    def _open_folder(self, folder: str) -> int:
        """Open it to be read only; returns its UIDVALIDITY. Raises IMAP4.error."""
        name, validity, opened_at = self._folder
        if name != folder or time.monotonic() - opened_at > OPEN_SECONDS:
            validity = self._examine(folder)[0]
        return validity

    def _examine(self, folder: str) -> tuple[int, int | None]:
        self._folder = ("", 0, 0.0)
        answer = self._command().select_folder(folder, readonly=True)
        validity, following = answer.get(b"UIDVALIDITY"), answer.get(b"UIDNEXT")
        if not validity:
            raise SourceError(
                gettext(
                    "The server gives the messages in {folder} no permanent ids (UIDVALIDITY)."
                    " This mailbox cannot be synchronized."
                ).format(folder=folder),
                is_permanent=True,
            )
        self._folder = (folder, validity, time.monotonic())
        return validity, following

    def _uids(self, folder: str) -> Iterator[tuple[list[int], int]]:
        """The numbers of its messages that are wanted, by pages."""
        try:
            validity, following = self._examine(folder)
        except IMAP4.abort:
            raise
        except IMAP4.error as error:
            reason = f"{folder} cannot be opened: {_reason(error)}. Leave it out of the folders."
            raise SourceError(reason) from error
        since: list[Any] = ["SINCE", self._options.since] if self._options.since else []
        # By ranges: the numbers of a large folder would be more than a line may have.
        for first in range(1, following or 2, SEARCHED_UIDS):
            last = min(first + SEARCHED_UIDS, following) - 1 if following else "*"
            uids = self._command().search(["UID", f"{first}:{last}", "UNDELETED", *since])
            for at in range(0, len(uids), LISTED_MESSAGES):
                yield uids[at : at + LISTED_MESSAGES], validity

    # --- connection ------------------------------------------------------------------------------

    def _command(self, *, seconds: float | None = None) -> "_Client":
        """The client, connected, with the time and bytes that one more command may take."""
        if self._opened is None:
            self._opened = _Client(self._options)
            self._log_in(self._opened)
        self._opened.allow(seconds)
        return self._opened

    def _log_in(self, client: "_Client") -> None:
        client.allow()
        name, password = self._options.username, self._options.password.get_secret_value()
        try:
            if (name + password).isascii():
                client.login(name, password)
            else:
                client.plain_login(name, password)
        except LoginError as error:
            if isinstance(error.__context__, IMAP4.abort):
                raise error.__context__ from error
            told = str(error).lower()
            raise SourceError(
                gettext(
                    "The server refuses the login of {name}: {reason}. Check name and password."
                    " If the account has a second factor, create an app password."
                ).format(name=name, reason=_reason(error)),
                is_permanent=not any(each in told for each in _FOR_A_TIME),
            ) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors of the connection and the protocol as SourceError."""
        host = self._options.host
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise SourceError(
                gettext(
                    "The certificate of {host} is not trusted: {reason}. Check the name of the"
                    " server. Add your own certificates to SSL_CERT_FILE."
                ).format(host=host, reason=error.verify_message)
            ) from error
        except (IMAP4.error, OSError, ValueError) as error:
            self._hang_up()
            cure = ""
            if isinstance(error, ssl.SSLError):
                cure = " " + gettext("Check that the port fits the encryption.")
            raise SourceError(
                gettext("{host} cannot be read: {reason}.{cure}").format(
                    host=host, cure=cure, reason=_reason(error)
                )
            ) from error


def _reason(error: BaseException) -> str:
    """What the server said, or what became of the connection."""
    said = error.args[0] if isinstance(error, IMAP4.error) and error.args else error
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    text = text.removeprefix("b'").removesuffix("'").rstrip(".")
    return text[:300] or type(error).__name__


def _parsed_key(key: str) -> tuple[str, int, int]:
    folder, validity, uid = key.rsplit("/", 2)
    return folder, int(validity), int(uid)


def _file_name(values: dict[bytes, Any]) -> str:
    """Such as `2026-11-24 Minutes.eml`, by the day on which it was written."""
    # Servers repeat the names of the headers each in their way.
    head = next((value for name, value in values.items() if name.startswith(b"BODY[HEADER")), b"")
    subject, day = "", ""
    with suppress(ParseError):
        mail = read_mail(head or b"")
        subject, day = mail.subject, mail.date[:10]
    if not day and (came := values.get(b"INTERNALDATE")) is not None:
        day = came.date().isoformat()
    name = safe_name(f"{day} {subject or '(no subject)'}".strip(), MAIL)
    return name if name.endswith(".eml") else f"{name}.eml"


class _Client(IMAPClient):
    """Connects to addresses that may be reached, and bounds what a command may take."""

    def __init__(self, options: ImapOptions) -> None:
        self._of_source = options
        port = options.port or (TLS_PORT if options.security == "tls" else PLAIN_PORT)
        super().__init__(options.host, port, ssl=False, timeout=WAIT_SECONDS)
        self.normalise_times = False
        self._imap.debug = 0  # in no log, whatever its level

    def _create_IMAP4(self) -> "_Connection":  # noqa: N802
        return _Connection(self.host, self.port, self._of_source.security)

    def allow(self, seconds: float | None = None) -> None:
        """The next command has so much time, and the usual bytes."""
        self._imap.allow(seconds)


class _Connection(IMAP4):
    def __init__(self, host: str, port: int, security: str) -> None:
        self._security, self._context = security, ssl.create_default_context()
        self.allow()
        super().__init__(host, port)
        if security == "starttls":
            if "STARTTLS" not in self.capabilities:
                raise SourceError(
                    gettext("The server does not offer STARTTLS. Choose tls."), is_permanent=True
                )
            self.starttls(self._context)

    def allow(self, seconds: float | None = None) -> None:
        self.ends_at = time.monotonic() + (seconds or COMMAND_SECONDS)
        self.bytes_left = MAX_ANSWER_BYTES

    def open(self, host: str = "", port: int = PLAIN_PORT, timeout: float | None = None) -> None:
        """Connect to an address that was checked, not to the name, which may lead elsewhere."""
        self.host, self.port = host, port
        addresses = reachable_addresses(host, port)
        if self._security == "none" and any(map(is_public, map(ip_address, addresses))):
            raise SourceError(
                gettext(
                    "The password would cross the internet unencrypted. Choose tls or starttls."
                ),
                is_permanent=True,
            )
        for address in addresses:
            try:
                self.sock = create_connection((address, port), timeout=WAIT_SECONDS)
                break
            except OSError:
                if address == addresses[-1]:
                    raise
        if self._security == "tls":
            self.sock = self._context.wrap_socket(self.sock, server_hostname=host)
        self.file = io.BufferedReader(_Reader(self))

    def starttls(self, ssl_context: ssl.SSLContext | None = None) -> Any:
        answer = super().starttls(ssl_context)
        # Nothing that came before, in the clear, is taken for what the server says.
        self.file = io.BufferedReader(_Reader(self))
        return answer

    def read(self, size: int) -> bytes:
        if size > MAX_ANSWER_BYTES:
            raise self.abort(f"it sends {size:,} bytes at once")
        return super().read(size)


class _Reader(io.RawIOBase):
    """The bytes that a server sends, as long as the command may take."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        connection = self._connection
        left = connection.ends_at - time.monotonic()
        if left <= 0 or connection.bytes_left <= 0:
            raise connection.abort("its answer takes too long, or has too many bytes")
        connection.sock.settimeout(min(left, WAIT_SECONDS))
        count = connection.sock.recv_into(buffer)
        connection.bytes_left -= count
        return count
