"""Tables, keys and triggers as the database has them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper

_TABLES = """
    SELECT c.relname,
           (SELECT a.attnotnull FROM pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attname = %s AND NOT a.attisdropped),
           (SELECT a.atttypid::regtype::text FROM pg_attribute AS a
            WHERE a.attrelid = c.oid AND a.attname = 'id' AND NOT a.attisdropped)
    FROM pg_class AS c
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
      AND c.relname = ANY(%s)
    ORDER BY 1
"""
_COLUMNS = """ARRAY(
    SELECT a.attname::text FROM unnest({keys}) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute AS a ON a.attrelid = {table} AND a.attnum = k.number ORDER BY place)"""
_KEYS = f"""
    SELECT t.relname, i.relname, n.conname IS NOT NULL, x.indisprimary,
           {_COLUMNS.format(keys="x.indkey::int2[]", table="t.oid")}
    FROM pg_index AS x
    JOIN pg_class AS i ON i.oid = x.indexrelid
    JOIN pg_class AS t ON t.oid = x.indrelid
    LEFT JOIN pg_constraint AS n ON n.conindid = i.oid AND n.contype IN ('p', 'u', 'x')
    WHERE (x.indisunique OR x.indisexclusion) AND t.relname = ANY(%s)
      AND t.relnamespace = current_schema()::regnamespace
    ORDER BY 1, 2
"""  # noqa: S608 (constants)
_FOREIGN = f"""
    SELECT t.relname, n.conname, o.relname, n.confdeltype::text, n.condeferrable,
           {_COLUMNS.format(keys="n.conkey", table="t.oid")},
           {_COLUMNS.format(keys="n.confkey", table="o.oid")}
    FROM pg_constraint AS n
    JOIN pg_class AS t ON t.oid = n.conrelid
    JOIN pg_class AS o ON o.oid = n.confrelid
    WHERE n.contype = 'f' AND t.relname = ANY(%s)
      AND t.relnamespace = current_schema()::regnamespace
    ORDER BY 1, 2
"""  # noqa: S608 (constants)
_TRIGGERS = """
    SELECT c.relname, t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE NOT t.tgisinternal AND c.relname = ANY(%s)
      AND c.relnamespace = current_schema()::regnamespace
    ORDER BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Table:
    """`owned`: it has a workspace in every row. `id_type` is None without a column `id`."""

    name: str
    owned: bool
    id_type: str | None


@dataclass(frozen=True, slots=True)
class Key:
    """A primary key, or another one that no two rows share. One that `is_constraint` can be made
    anew under its name; another is an index with a condition or an expression."""

    table: str
    name: str
    is_constraint: bool
    is_primary: bool
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`deletes` is PostgreSQL's letter: a nothing, c cascade, n set null, d set default."""

    table: str
    name: str
    target: str
    deletes: str
    deferrable: bool
    columns: tuple[str, ...]
    target_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables of the models, and what is said of them."""

    tables: tuple[Table, ...]
    keys: tuple[Key, ...]
    foreign_keys: tuple[ForeignKey, ...]
    triggers: tuple[tuple[str, str], ...]


def read_catalog(connection: BaseDatabaseWrapper, *, key: str, more: Iterable[str] = ()) -> Catalog:
    """Of the tables of all models, of Django's migrations, and of `more`."""
    models = apps.get_models(include_auto_created=True)
    names = [*{model._meta.db_table for model in models}, "django_migrations", *more]

    def rows(statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    return Catalog(
        tables=tuple(Table(name, bool(owned), of) for name, owned, of in rows(_TABLES, key, names)),
        keys=tuple(
            Key(table, name, constraint, primary, tuple(columns))
            for table, name, constraint, primary, columns in rows(_KEYS, names)
        ),
        foreign_keys=tuple(
            ForeignKey(table, name, target, deletes, deferrable, tuple(columns), tuple(others))
            for table, name, target, deletes, deferrable, columns, others in rows(_FOREIGN, names)
        ),
        triggers=tuple((table, name) for table, name in rows(_TRIGGERS, names)),
    )
