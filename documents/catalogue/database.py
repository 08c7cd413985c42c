"""Tables of a running database, by SQLAlchemy's reflection; only reads. Begin with `reflect`."""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sqlalchemy import Connection, Inspector, String, cast, create_engine, func, inspect, select
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import (
    ArgumentError,
    CompileError,
    NoSuchModuleError,
    SAWarning,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from documents.catalogue.tables import (
    CatalogueError,
    Column,
    ForeignKey,
    Table,
    TableName,
    split_identifier,
)

#: Usual names in addresses, and the driver that is installed.
_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "psql": "postgresql+psycopg",
}
_DSN_EXAMPLES = (
    "Write it as postgresql://user:password@host:5432/database or sqlite:///path/to/file.db."
)


def read_dsn(dsn: str) -> URL:
    """The address with a driver; a SQLite file is opened read-only.

    Raises CatalogueError, which never repeats the address because it may hold a password.
    """
    try:
        url = make_url(dsn.strip())
    except (ArgumentError, ValueError) as error:
        raise CatalogueError(
            f"The address of the database cannot be read. {_DSN_EXAMPLES}"
        ) from error
    url = url.set(drivername=_DRIVERS.get(url.drivername, url.drivername))
    if url.get_backend_name() != "sqlite":
        return url
    file = Path(_sqlite_file(url))
    if not file.is_file():  # SQLite would create an empty database for a misspelt name
        raise CatalogueError(f"There is no file {file} with a database. {_DSN_EXAMPLES}")
    quoted = file.resolve().as_uri().removeprefix("file://")
    return url.set(database=f"file:{quoted}", query={"mode": "ro", "uri": "true"})


def database_label(url: URL) -> str:
    """`postgresql://host:5432/shop`: no user, no password, no options."""
    if url.get_backend_name() == "sqlite":
        return f"sqlite:///{Path(unquote(_sqlite_file(url))).name}"
    port = f":{url.port}" if url.port else ""
    return f"{url.get_backend_name()}://{url.host or 'localhost'}{port}/{url.database or ''}"


def _sqlite_file(url: URL) -> str:
    return (url.database or "").removeprefix("file:").partition("?")[0]


MAX_SAMPLES = 20
#: Read to find values that differ.
_SAMPLED_ROWS = 200
_MAX_SAMPLE_CHARACTERS = 60

#: In the name of a column or its table, as words or run together.
_SECRET_NAMES = (
    "password", "passwd", "passphrase", "pwd", "secret", "token", "hash", "salt", "credential",
    "private key", "api key", "apikey", "access key", "auth", "otp", "pin", "cvv", "cvc", "ssn",
    "iban", "card number", "session", "signature", "cookie", "jwt", "signing", "encrypted",
)  # fmt: skip
_TEXT_TYPES = re.compile(r"CHAR|TEXT|CLOB|STRING|ENUM|\bNAME\b", re.I)
_NUMBER_TYPES = re.compile(r"INT|NUM|DEC|FLOAT|DOUBLE|REAL|MONEY|BOOL|DATE|TIME|YEAR|SERIAL", re.I)


def looks_secret(name: str) -> bool:
    """Whether a column or table of this name may hold secrets."""
    words = f" {split_identifier(name)} "
    together = words.replace(" ", "")
    return any(
        f" {secret} " in words
        or f" {secret}s " in words
        # Short ones are part of many a harmless word.
        or (len(secret) > 4 and secret.replace(" ", "") in together)
        for secret in _SECRET_NAMES
    )


def with_samples(connection: Connection, table: Table, *, count: int) -> Table:
    """The table with up to `count` different values for each column that may be sampled.

    Views are not read, as their cost is unknown; nor are tables without permission.
    """
    if table.is_view or looks_secret(table.name.name):
        return table
    sampled = [
        column
        for column in table.columns
        if (_TEXT_TYPES.search(column.type) or _NUMBER_TYPES.search(column.type))
        and not looks_secret(column.name)
    ]
    if not sampled:
        return table
    rows = _first_rows(connection, table, sampled)
    found: dict[str, tuple[str, ...]] = {}
    for index, column in enumerate(sampled):
        texts = (" ".join(str(row[index]).split()) for row in rows if row[index] is not None)
        shortened = (
            text if len(text) <= _MAX_SAMPLE_CHARACTERS else f"{text[:_MAX_SAMPLE_CHARACTERS]}…"
            for text in texts
            if text
        )
        found[column.name] = tuple(islice(dict.fromkeys(shortened), min(count, MAX_SAMPLES)))
    columns = (replace(column, samples=found.get(column.name, ())) for column in table.columns)
    return replace(table, columns=tuple(columns))


def _first_rows(
    connection: Connection, table: Table, columns: Sequence[Column]
) -> Sequence[Sequence[Any]]:
    """In the order of the key, so that a second run reads the same."""
    source = sql_table(
        table.name.name,
        *(sql_column(column.name) for column in table.columns),
        schema=table.name.schema or None,
    )
    values: list[Any] = [
        func.substr(cast(source.c[column.name], String), 1, _MAX_SAMPLE_CHARACTERS + 1)
        if _TEXT_TYPES.search(column.type)
        else source.c[column.name]
        for column in columns
    ]
    query = select(*values)
    order = [source.c[name] for name in table.primary_key if name in source.c]
    try:
        return connection.execute(query.order_by(*order).limit(_SAMPLED_ROWS)).all()
    except SQLAlchemyError:
        connection.rollback()
        return []


CONNECT_SECONDS = 10

#: Schemas that the database keeps for itself.
_SYSTEM_SCHEMAS = frozenset(
    {"information_schema", "mysql", "performance_schema", "sys", "sysman", "system"}
)


def reflect(url: URL, *, schema: str = "", samples: int = 0) -> list[Table]:
    """All tables and views of one schema, or of all but the system's, by name.

    With `samples` a few values of each column are read too. Raises CatalogueError.
    """
    with _connect(url) as connection, warnings.catch_warnings():
        # About unknown types, such as those of extensions: their columns have no type.
        warnings.simplefilter("ignore", SAWarning)
        inspector = inspect(connection)
        names = inspector.get_schema_names()
        own = sorted(
            name
            for name in names
            if name.lower() not in _SYSTEM_SCHEMAS and not name.startswith("pg_")
        )
        if schema and schema not in names:
            raise CatalogueError(
                f"There is no schema {schema} in {database_label(url)}. There is: {', '.join(own)}."
            )
        schemas = [schema] if schema else own
        tables = [table for each in schemas for table in _tables(inspector, each, schemas)]
        if samples:
            tables = [with_samples(connection, table, count=samples) for table in tables]
    if not tables:
        where = f"schema {schema}" if schema else "the database"
        raise CatalogueError(
            f"There are no tables in {where} of {database_label(url)} that this user may see."
            " Check the name, and the user's rights."
        )
    return tables


@contextmanager
def _connect(url: URL) -> Iterator[Connection]:
    is_postgresql = url.get_backend_name() == "postgresql"
    has_timeout = "connect_timeout" in url.query
    connect_arguments = (
        {"connect_timeout": CONNECT_SECONDS} if is_postgresql and not has_timeout else {}
    )
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=connect_arguments)
    except (NoSuchModuleError, ImportError) as error:
        raise CatalogueError(
            f"There is no driver for {url.drivername} here. Install it beside ragsite, or give"
            " the schema as a script with --ddl."
        ) from error
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        raise CatalogueError(
            f"{database_label(url)} does not answer: {_driver_message(error, url)} Check"
            " host, port, user and password."
        ) from error
    with connection:
        if is_postgresql:
            connection = connection.execution_options(postgresql_readonly=True)
        try:
            yield connection
        except SQLAlchemyError as error:
            raise CatalogueError(
                f"{database_label(url)} cannot be read: {_driver_message(error, url)} Check"
                " the user's rights."
            ) from error


def _driver_message(error: SQLAlchemyError, url: URL) -> str:
    """The driver's message on one line, with the password removed."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    message = reason if reason.endswith((".", "?", "!")) else f"{reason}."
    for secret in (url.password, url.query.get("password")):
        if isinstance(secret, str) and secret:
            message = message.replace(secret, "***")
    return message


_Key = tuple[str | None, str]


def _tables(inspector: Inspector, schema: str, schemas: list[str]) -> Iterator[Table]:
    wanted: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
    columns = inspector.get_multi_columns(**wanted)
    primary = inspector.get_multi_pk_constraint(**wanted)
    foreign = inspector.get_multi_foreign_keys(**wanted)
    unique = _unique(inspector, wanted)
    views = set(inspector.get_view_names(schema))
    comments: dict[_Key, str] = {}
    with suppress(NotImplementedError):
        for key, comment in inspector.get_multi_table_comment(**wanted).items():
            comments[key] = comment.get("text") or ""
    with suppress(NotImplementedError):
        views.update(inspector.get_materialized_view_names(schema))
    for key in sorted(columns, key=lambda key: key[1]):
        name = TableName(schema, key[1])
        key_columns = tuple(primary[key]["constrained_columns"]) if key in primary else ()
        yield Table(
            name=name,
            columns=tuple(_reflected_column(inspector, column) for column in columns[key]),
            is_view=name.name in views,
            comment=comments.get(key, ""),
            primary_key=key_columns,
            foreign_keys=tuple(
                ForeignKey(
                    columns=tuple(entry["constrained_columns"]),
                    references=TableName(
                        entry.get("referred_schema") or schema, entry["referred_table"]
                    ),
                    referenced_columns=tuple(entry.get("referred_columns") or ()),
                )
                for entry in foreign.get(key) or ()
            ),
            unique=tuple(names for names in unique.get(key, ()) if names != key_columns),
        )


def _unique(inspector: Inspector, wanted: dict[str, Any]) -> dict[_Key, list[tuple[str, ...]]]:
    """Column sets kept unique by constraints or non-partial indexes. SQLite reports some only as
    automatic indexes."""
    found: dict[_Key, dict[tuple[str, ...], None]] = {}
    for key, constraints in inspector.get_multi_unique_constraints(**wanted).items():
        for constraint in constraints:
            found.setdefault(key, {})[tuple(constraint["column_names"])] = None
    for key, indexes in inspector.get_multi_indexes(**wanted, include_auto_indexes=True).items():
        for index in indexes:
            is_partial = any(name.endswith("_where") for name in index.get("dialect_options", {}))
            names = tuple(name for name in index["column_names"] if name)
            if index["unique"] and not is_partial and len(names) == len(index["column_names"]):
                found.setdefault(key, {})[names] = None
    return {key: list(columns) for key, columns in found.items()}


def _reflected_column(inspector: Inspector, column: Mapping[str, Any]) -> Column:
    try:
        type_ = column["type"].compile(inspector.dialect)
    except (CompileError, AttributeError):
        type_ = ""
    return Column(
        name=column["name"],
        type="" if type_ == "NULL" else type_,
        is_nullable=bool(column.get("nullable", True)),
        comment=column.get("comment") or "",
    )
