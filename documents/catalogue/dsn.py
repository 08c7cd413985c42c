"""Addresses of databases: read, made safe to open, and shown without their password."""

from pathlib import Path
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from documents.catalogue.tables import CatalogueError

#: What people write, and the driver that is installed here.
_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "psql": "postgresql+psycopg",
}
_SHAPE = "Write it as postgresql://user:password@host:5432/database or sqlite:///path/to/file.db."


def read_dsn(dsn: str) -> URL:
    """The address with a driver; a SQLite file is opened for reading only.

    Raises CatalogueError, which never repeats the address: it may hold a password.
    """
    try:
        url = make_url(dsn.strip())
    except (ArgumentError, ValueError) as error:
        raise CatalogueError(f"The address of the database cannot be read. {_SHAPE}") from error
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    return _read_only_file(url) if url.get_backend_name() == "sqlite" else url


def database_label(url: URL) -> str:
    """`postgresql://host:5432/shop`: no user, no password, no options."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{Path(unquote(_file(url))).name}"
    port = f":{url.port}" if url.port else ""
    return f"{url.get_backend_name()}://{url.host or 'localhost'}{port}/{url.database or ''}"


def without_password(message: str, url: URL) -> str:
    """The message, should a driver repeat in it what it was given."""
    for secret in (url.password, url.query.get("password")):
        if isinstance(secret, str) and secret:
            message = message.replace(secret, "***")
    return message


def _file(url: URL) -> str:
    return (url.database or "").removeprefix("file:").partition("?")[0]


def _read_only_file(url: URL) -> URL:
    """SQLite would make an empty database of a misspelt name."""
    file = Path(_file(url))
    if not file.is_file():
        raise CatalogueError(f"There is no file {file} with a database. {_SHAPE}")
    quoted = file.resolve().as_uri().removeprefix("file://")
    return url.set(database=f"file:{quoted}", query={"mode": "ro", "uri": "true"})
