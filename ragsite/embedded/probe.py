"""Asks a service over its socket whether it really answers: quickly, and without a driver."""

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path

from ragsite.embedded.layout import DATABASE_USER

_TIMEOUT_SECONDS = 5.0
_PROTOCOL_3_0 = 196608
NO_SUCH_DATABASE = "3D000"
TOO_MANY_CONNECTIONS = "53300"
#: The server starts, recovers from a crash, or shuts down.
CANNOT_CONNECT_NOW = "57P03"


@dataclass(frozen=True, slots=True)
class Answer:
    """`state` is "ready", "down", or the server's own code for why it refuses."""

    state: str
    version: str | None = None

    @property
    def serving(self) -> bool:
        return self.state in ("ready", TOO_MANY_CONNECTIONS)


DOWN = Answer("down")


def postgres(path: Path, database: str) -> Answer:
    """Log in to `database` and run `SELECT 1`; a refusal gives its SQLSTATE as state.

    Protocol: PostgreSQL's manual, "Message Formats", version 3.0.
    """
    words = ("user", DATABASE_USER, "database", database, "")
    startup = _PROTOCOL_3_0.to_bytes(4, "big") + b"".join(w.encode() + b"\0" for w in words)
    try:
        with _connect(path) as connection, connection.makefile("rwb") as stream:
            stream.write((len(startup) + 4).to_bytes(4, "big") + startup)
            stream.flush()
            version = None
            for kind, body in _messages(stream):
                if kind == b"S" and body.startswith(b"server_version\0"):
                    version = body.split(b"\0")[1].decode()
                elif kind == b"Z":
                    stream.write(_message(b"Q", b"SELECT 1\0"))
                    stream.flush()
                elif kind == b"D":
                    stream.write(_message(b"X", b""))
                    return Answer("ready", version)
                elif kind == b"E":
                    return Answer(_sqlstate(body))
    except (OSError, IndexError):
        pass
    return DOWN


def valkey(path: Path) -> Answer:
    """Ask for the server's own description; a refusal gives its first word as state."""
    try:
        with _connect(path) as connection, connection.makefile("rwb") as stream:
            stream.write(b"INFO server\r\n")
            stream.flush()
            reply = stream.readline()
            if reply.startswith(b"-"):
                return Answer(reply[1:].split()[0].decode())
            lines = stream.read(int(reply[1:])).decode().splitlines()
    except (OSError, ValueError, IndexError):
        return DOWN
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    return Answer("ready", facts.get("valkey_version") or facts.get("redis_version"))


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_TIMEOUT_SECONDS)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _messages(stream: BufferedIOBase) -> Iterator[tuple[bytes, bytes]]:
    while len(header := stream.read(5)) == 5:
        yield header[:1], stream.read(int.from_bytes(header[1:], "big") - 4)


def _sqlstate(body: bytes) -> str:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    return fields.get(b"C", "error")
