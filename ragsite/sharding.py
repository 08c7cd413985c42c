"""Sharding of the tables by workspace with Citus: where tables go, what hinders it, the statements.

A table goes to the first place that names it; tests/test_sharding.py fails for a new one that is
named nowhere and has no workspace.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper

#: The column that rows are spread by.
SHARD_COLUMN = "workspace_id"

#: On every server, whole: few rows, read with every workspace, seldom written.
REFERENCE_TABLES = {
    "accounts_user": "people belong to several workspaces",
    "accounts_user_groups": "of people",
    "accounts_user_user_permissions": "of people",
    "accounts_workspacegroup": "their ids are those of auth_group, which are unique",
    "accounts_workspace": "the workspaces themselves, whose names are unique",
    "auth_group": "of people",
    "auth_group_permissions": "of people",
    "auth_permission": "of people",
    "django_content_type": "of the code",
    "documents_embeddingspace": "models are the site's, and their vectors are of all workspaces",
}

#: On the coordinator alone: never read together with what a search reads.
COORDINATOR_TABLES = {
    "accounts_change": "some changes are the site's own and have no workspace",
    "accounts_identity": "of people, as other servers know them",
    "accounts_loginsession": "of people, beside django_session",
    "accounts_secondfactor": "of people",
    "django_admin_log": "the admin's own",
    "django_migrations": "of the code",
    "django_session": "of people, by a random key",
    "documents_reembedding": "one row moves all collections, another one of them",
}

#: Foreign keys from a coordinator table to a sharded one, which no server can check. Django deletes
#: or empties such rows itself.
DROPPED_FOREIGN_KEYS = {
    ("accounts_change", "key_id"): "the history outlives the key that it names",
    ("documents_reembedding", "collection_id"): "goes with its collection, by Django",
}

#: Triggers of tables that are spread. Each only touches rows of the workspace of its own.
SAFE_TRIGGERS = {
    "chunk_index_changed": "gives a chunk whose words change another id in the index of words",
    "chunk_index_new": "has new chunks found until they are in a segment",
    "chunk_index_removed": "has the postings of chunks that are gone passed over",
    "collection_drop_index": "takes the index of words along with its collection",
    "lexicalsegment_drop_postings": "takes postings along with the segment that they are of",
    "rag_forget_changed_summaries": "deletes summaries of a document whose text is another one",
    "rag_forget_deleted_summaries": "deletes summaries of a document which is gone",
    "rag_forget_documents": "empties answers that quote a document which is gone",
    "searchlog_forget_collections": "takes collections that are gone out of the log",
    "searchlog_forget_documents": "takes documents that are gone out of the log",
}


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
class UniqueKey:
    """A primary or unique key. One that `is_constraint` can be recreated under its name; another is
    an index with a condition or an expression.
    """

    table: str
    name: str
    is_constraint: bool
    is_primary: bool
    columns: list[str]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`deletes` is PostgreSQL's letter: a nothing, c cascade, n set null, d set default."""

    table: str
    name: str
    target: str
    deletes: str
    deferrable: bool
    columns: list[str]
    target_columns: list[str]


_ID_TYPES = ("bigint", "uuid", None)
_DELETES = {"a": "", "c": " ON DELETE CASCADE", "n": " ON DELETE SET NULL ({columns})"}


class ShardingLayout:
    """Tables of all models, of Django's migrations, and of `more`: which of them are sharded, and
    what has to be done.

    `tables` has by name whether every row has a workspace, and the type of the column `id`, if any.
    """

    def __init__(self, connection: BaseDatabaseWrapper, *, more: Iterable[str] = ()) -> None:
        models = apps.get_models(include_auto_created=True)
        names = [*{model._meta.db_table for model in models}, "django_migrations", *more]

        def rows(statement: str, *values: Any) -> list[tuple[Any, ...]]:
            with connection.cursor() as cursor:
                cursor.execute(statement, values)
                found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

        self.tables: dict[str, tuple[bool, str | None]] = {
            name: (bool(owned), id_type)
            for name, owned, id_type in rows(_TABLES, SHARD_COLUMN, names)
        }
        self.keys = [UniqueKey(*row) for row in rows(_KEYS, names)]
        self.foreign_keys = [ForeignKey(*row) for row in rows(_FOREIGN, names)]
        self.triggers: list[tuple[str, str]] = [
            (table, name) for table, name in rows(_TRIGGERS, names)
        ]
        self.spread = {
            name
            for name, (owned, _) in self.tables.items()
            if owned and name not in REFERENCE_TABLES and name not in COORDINATOR_TABLES
        }

    def problems(self) -> list[str]:
        """Obstacles, each with its table and a cure; empty where all tables can be sharded."""
        return [
            *self._homeless(),
            *self._keys_in_the_way(),
            *self._foreign_keys_in_the_way(),
            *(
                f"{table}: trigger {name} must touch rows of its own workspace alone. If it does,"
                " declare it in SAFE_TRIGGERS of ragsite/sharding.py."
                for table, name in self.triggers
                if table in self.spread and name not in SAFE_TRIGGERS
            ),
        ]

    def _homeless(self) -> Iterator[str]:
        for name, (owned, id_type) in self.tables.items():
            if not owned and name not in REFERENCE_TABLES and name not in COORDINATOR_TABLES:
                yield (
                    f"{name}: a row may have no {SHARD_COLUMN}. Give it one that is NOT NULL, or"
                    " say in ragsite/sharding.py where it lies."
                )
            if name in self.spread and id_type not in _ID_TYPES:
                yield (
                    f"{name}: its id is {id_type}, of which servers cannot draw numbers of their"
                    " own. Make it a BigAutoField."
                )

    def _keys_in_the_way(self) -> Iterator[str]:
        for key in self._keys_without_workspace():
            # Whether rows that share the key always belong to one workspace, so that adding the
            # workspace changes nothing: an id, or a reference to a row of one workspace.
            leading = {
                each.columns[0]
                for each in self._among_spread()
                if each.table == key.table and each.columns
            }
            is_of_one_workspace = key.columns == ["id"] or not leading.isdisjoint(key.columns)
            if not is_of_one_workspace:
                yield (
                    f"{key.table}: {key.name} ({', '.join(key.columns)}) would have to hold across"
                    f" workspaces. Put {SHARD_COLUMN} into it."
                )
            elif not key.is_constraint:
                yield (
                    f"{key.table}: {key.name} is an index with a condition or an expression, which"
                    f" is not made anew by itself. Put {SHARD_COLUMN} into it."
                )

    def _foreign_keys_in_the_way(self) -> Iterator[str]:
        for each in self.foreign_keys:
            here, there = each.table in self.spread, each.target in self.spread
            if here and each.target in COORDINATOR_TABLES:
                yield f"{each.table}: {each.name} leads to {each.target}, on the coordinator alone."
            if not here and there and not self._is_let_go(each):
                yield (
                    f"{each.table}: {each.name} leads to {each.target}, which is spread. Leave the"
                    " constraint out, or declare it in DROPPED_FOREIGN_KEYS of"
                    " ragsite/sharding.py."
                )
            if here and there and self._lacks(each) and each.deletes not in _DELETES:
                yield f"{each.table}: {each.name} sets a default when its target goes."

    def plan(self) -> tuple[list[str], list[str], list[str]]:
        """The statements that are still needed, in order: plain PostgreSQL, Citus, and PostgreSQL
        again. There must be no problems.
        """
        widened = [each for each in self._among_spread() if self._lacks(each)]
        gone = [each for each in self.foreign_keys if self._is_let_go(each)]
        shared = sorted(REFERENCE_TABLES.keys() & self.tables)
        order = TopologicalSorter({name: set[str]() for name in shared})  # referenced ones first
        for each in self.foreign_keys:
            if each.table in shared and each.target in shared and each.table != each.target:
                order.add(each.table, each.target)
        first, *others = sorted(self.spread)
        has_triggers = any(table in self.spread for table, _ in self.triggers)
        return (
            [
                *(
                    f'ALTER TABLE "{each.table}" DROP CONSTRAINT "{each.name}"'
                    for each in (*widened, *gone)
                ),
                *map(_add_column_to_key, self._keys_without_workspace()),
            ],
            [
                *(["SET citus.enable_unsafe_triggers TO on"] if has_triggers else []),
                *(f"SELECT create_reference_table('{name}')" for name in order.static_order()),
                f"SELECT create_distributed_table('{first}', '{SHARD_COLUMN}')",
                *(
                    f"SELECT create_distributed_table('{name}', '{SHARD_COLUMN}',"
                    f" colocate_with => '{first}')"
                    for name in others
                ),
            ],
            list(map(_add_column_to_foreign_key, widened)),
        )

    def _keys_without_workspace(self) -> Iterator[UniqueKey]:
        for key in self.keys:
            if key.table in self.spread and SHARD_COLUMN not in key.columns:
                yield key

    def _among_spread(self) -> Iterator[ForeignKey]:
        for each in self.foreign_keys:
            if each.table in self.spread and each.target in self.spread:
                yield each

    def _lacks(self, each: ForeignKey) -> bool:
        return SHARD_COLUMN not in each.columns

    def _is_let_go(self, each: ForeignKey) -> bool:
        return (each.table, *each.columns) in DROPPED_FOREIGN_KEYS and each.target in self.spread


def _add_column_to_key(key: UniqueKey) -> str:
    """Under the same name, for statements that refer to it; the old columns first, so that its
    index still serves lookups by them.
    """
    kind = "PRIMARY KEY" if key.is_primary else "UNIQUE"
    columns = _column_list([*key.columns, SHARD_COLUMN])
    return (
        f'ALTER TABLE "{key.table}" DROP CONSTRAINT "{key.name}",'
        f' ADD CONSTRAINT "{key.name}" {kind} ({columns})'
    )


def _add_column_to_foreign_key(each: ForeignKey) -> str:
    deletes = _DELETES[each.deletes].format(columns=_column_list(each.columns))
    deferred = " DEFERRABLE INITIALLY DEFERRED" if each.deferrable else ""
    return (
        f'ALTER TABLE "{each.table}" ADD CONSTRAINT "{each.name}"'
        f" FOREIGN KEY ({_column_list([*each.columns, SHARD_COLUMN])})"
        f' REFERENCES "{each.target}"'
        f" ({_column_list([*each.target_columns, SHARD_COLUMN])}){deletes}{deferred}"
    )


def _column_list(columns: list[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)
