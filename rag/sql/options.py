"""What a connection to a catalogued database is made of, declared once for page, API and command.
Begin with `DatabaseOptions`."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal, Self, get_args
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from common.options import RARE, Options
from common.translation import gettext, gettext_noop

Encryption = Literal["verify-full", "require", "prefer"]
ENCRYPTIONS: tuple[Encryption, ...] = get_args(Encryption)

DEFAULT_PORT = 5432
MAX_PASSWORD_CHARACTERS = 1_000
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:.]{2,45}")


@dataclass(frozen=True, slots=True)
class DatabasePlace:
    """Where a database is. `socket_dir` is the folder of a Unix socket, else `host` is set."""

    host: str
    port: int | None
    database: str
    socket_dir: str = ""

    @classmethod
    def read(cls, address: str) -> Self:
        """From `postgresql://host:5432/shop`, or `postgresql:///shop?host=/folder` for a Unix
        socket. Raises ValueError for what is neither, or has a login."""
        parts = urlsplit(address.strip())
        query = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        socket_dir, port = query.pop("host", ""), query.pop("port", "")
        database = unquote(parts.path.removeprefix("/"))
        host = parts.hostname or ""
        if (
            parts.scheme not in ("postgresql", "postgres")
            or "@" in parts.netloc
            or query
            or parts.fragment
            or not database
            or "\0" in address
            or bool(host) == bool(socket_dir)
            or (socket_dir and not socket_dir.startswith("/"))
            or (host and not _HOST.fullmatch(host))
        ):
            raise ValueError(address)
        number = int(port) if port else parts.port
        if number is not None and not 0 < number < 2**16:
            raise ValueError(address)
        return cls(host, number, database, socket_dir)

    @property
    def label(self) -> str:
        """What a catalogue calls it that was made by its address."""
        port = f":{self.port}" if self.port and self.host else ""
        return f"postgresql://{self.host or 'localhost'}{port}/{self.database}"


def _address(text: str) -> str:
    try:
        DatabasePlace.read(text)
    except ValueError as error:
        told = gettext(
            "Enter an address such as postgresql://db.example.org:5432/shop, with the name of the"
            " database and without a login."
        )
        raise PydanticCustomError("address", "{reason}", {"reason": told}) from error
    return text.strip()


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("characters", "{reason}", {"reason": gettext("Enter a text.")})
    return text


def _password(password: SecretStr) -> SecretStr:
    text = password.get_secret_value()
    if "\0" in text or len(text) > MAX_PASSWORD_CHARACTERS:
        told = gettext("This is no password of PostgreSQL. Copy it again.")
        raise PydanticCustomError("password", "{reason}", {"reason": told})
    return password


class DatabaseOptions(Options):
    """A connection to a catalogued database, by a role that only reads."""

    address: Annotated[str, Field(max_length=500), AfterValidator(_address)] = Field(
        title=gettext_noop("Address"),
        description=gettext_noop("Such as postgresql://db.example.org:5432/shop, without a login."),
    )
    username: Annotated[str, AfterValidator(_without_nul)] = Field(
        min_length=1,
        max_length=200,
        title=gettext_noop("Role"),
        description=gettext_noop("A role of the database that may read and nothing else."),
    )
    password: Annotated[SecretStr, AfterValidator(_password)] | None = Field(
        default=None,
        title=gettext_noop("Password"),
        description=gettext_noop("It is stored encrypted and never shown."),
    )
    name: Annotated[str, AfterValidator(_without_nul)] = Field(
        default="",
        max_length=200,
        title=gettext_noop("Name"),
        description=gettext_noop("By which people know it. Empty: the database's."),
        json_schema_extra=RARE,
    )
    database: Annotated[str, AfterValidator(_without_nul)] = Field(
        default="",
        max_length=500,
        title=gettext_noop("Called in the catalogue"),
        description=gettext_noop(
            "What `manage.py catalogue` called the database by `--name`. Empty: its address."
        ),
        json_schema_extra=RARE,
    )
    encryption: Encryption = Field(
        default="require",
        title=gettext_noop("Encryption"),
        description=gettext_noop(
            "`verify-full` also checks the certificate of the server, `prefer` goes without TLS"
            " where the server has none."
        ),
        json_schema_extra=RARE,
    )
    seconds: int = Field(
        default=10,
        ge=1,
        le=60,
        title=gettext_noop("Seconds of a query"),
        description=gettext_noop("A query that takes longer is cancelled."),
        json_schema_extra=RARE,
    )
    max_rows: int = Field(
        default=200,
        ge=1,
        le=1000,
        title=gettext_noop("Rows of an answer"),
        description=gettext_noop("What is beyond is left out."),
        json_schema_extra=RARE,
    )

    @property
    def place(self) -> DatabasePlace:
        return DatabasePlace.read(self.address)
