"""Tables out of a running database, by SQLAlchemy's reflection. Only reads."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Inspector, create_engine, inspect
from sqlalchemy.engine import URL
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import CompileError, NoSuchModuleError, SAWarning, SQLAlchemyError
from sqlalchemy.pool import NullPool

from documents.catalogue.dsn import database_label, without_password
from documents.catalogue.sampling import samples_of
from documents.catalogue.tables import CatalogueError, Column, ForeignKey, Table, TableName

CONNECT_SECONDS = 10

#: Schemas that the database keeps for itself.
_SYSTEM = frozenset(
    {"information_schema", "mysql", "performance_schema", "sys", "sysman", "system"}
)


def reflect(url: URL, *, schema: str = "", samples: int = 0) -> list[Table]:
    """All tables and views, of one schema or of all that are not the system's, by name.

    With `samples` a few values of each column are read as well. Raises CatalogueError.
    """
    with _connected(url) as connection, warnings.catch_warnings():
        # Of types that it does not know, such as those of extensions: they stay without one.
        warnings.simplefilter("ignore", SAWarning)
        inspector = inspect(connection)
        schemas = _schemas(inspector, url, schema)
        tables = [table for each in schemas for table in _tables(inspector, each, schemas)]
        if samples:
            tables = [samples_of(connection, table, count=samples) for table in tables]
    if not tables:
        where = f"schema {schema}" if schema else "the database"
        raise CatalogueError(
            f"There are no tables in {where} of {database_label(url)} that this user may see."
            " Check the name, and the user's rights."
        )
    return tables


@contextmanager
def _connected(url: URL) -> Iterator[Connection]:
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=_arguments(url))
    except (NoSuchModuleError, ImportError) as error:
        raise CatalogueError(
            f"There is no driver for {url.drivername} here. Install it beside ragsite, or give"
            " the schema as a script with --ddl."
        ) from error
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        raise CatalogueError(
            f"{database_label(url)} does not answer: {_reason(error, url)} Check host, port, user"
            " and password."
        ) from error
    with connection:
        try:
            yield _reading(connection, url)
        except SQLAlchemyError as error:
            raise CatalogueError(
                f"{database_label(url)} cannot be read: {_reason(error, url)} Check the user's"
                " rights."
            ) from error


def _reading(connection: Connection, url: URL) -> Connection:
    if url.get_backend_name() == "postgresql":
        return connection.execution_options(postgresql_readonly=True)
    return connection


def _reason(error: SQLAlchemyError, url: URL) -> str:
    """What the driver says, on one line."""
    reason = " ".join(str(getattr(error, "orig", None) or error).split())
    return without_password(reason if reason.endswith((".", "?", "!")) else f"{reason}.", url)


def _arguments(url: URL) -> dict[str, Any]:
    has_timeout = "connect_timeout" in url.query
    is_postgresql = url.get_backend_name() == "postgresql"
    return {"connect_timeout": CONNECT_SECONDS} if is_postgresql and not has_timeout else {}


def _schemas(inspector: Inspector, url: URL, wanted: str) -> list[str]:
    names = inspector.get_schema_names()
    if wanted:
        if wanted not in names:
            known = ", ".join(name for name in names if not _is_system(name))
            raise CatalogueError(
                f"There is no schema {wanted} in {database_label(url)}. There is: {known}."
            )
        return [wanted]
    return sorted(name for name in names if not _is_system(name))


def _is_system(schema: str) -> bool:
    return schema.lower() in _SYSTEM or schema.startswith("pg_")


_Key = tuple[str | None, str]


def _tables(inspector: Inspector, schema: str, schemas: list[str]) -> Iterator[Table]:
    wanted: dict[str, Any] = {"schema": schema, "kind": ObjectKind.ANY}
    columns = inspector.get_multi_columns(**wanted)
    primary = inspector.get_multi_pk_constraint(**wanted)
    foreign = inspector.get_multi_foreign_keys(**wanted)
    unique = _unique(inspector, wanted)
    comments = _comments(inspector, wanted)
    views = {*inspector.get_view_names(schema), *_materialized(inspector, schema)}
    for key in sorted(columns, key=lambda key: key[1]):
        name = TableName(schema, key[1])
        key_columns = tuple(primary[key]["constrained_columns"]) if key in primary else ()
        yield Table(
            name=name,
            columns=tuple(_column(inspector, column) for column in columns[key]),
            is_view=name.name in views,
            comment=comments.get(key, ""),
            primary_key=key_columns,
            foreign_keys=tuple(_foreign_key(entry, schema) for entry in foreign.get(key) or ()),
            unique=tuple(names for names in unique.get(key, ()) if names != key_columns),
        )


def _unique(inspector: Inspector, wanted: dict[str, Any]) -> dict[_Key, list[tuple[str, ...]]]:
    """What constraints and whole indexes keep unique. SQLite tells some only as its own indexes."""
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


def _column(inspector: Inspector, column: Mapping[str, Any]) -> Column:
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


def _foreign_key(entry: Mapping[str, Any], schema: str) -> ForeignKey:
    return ForeignKey(
        columns=tuple(entry["constrained_columns"]),
        references=TableName(entry.get("referred_schema") or schema, entry["referred_table"]),
        referenced_columns=tuple(entry.get("referred_columns") or ()),
    )


def _comments(inspector: Inspector, wanted: dict[str, Any]) -> dict[_Key, str]:
    try:
        found = inspector.get_multi_table_comment(**wanted)
    except NotImplementedError:
        return {}
    return {key: comment.get("text") or "" for key, comment in found.items()}


def _materialized(inspector: Inspector, schema: str) -> list[str]:
    try:
        return inspector.get_materialized_view_names(schema)
    except NotImplementedError:
        return []
