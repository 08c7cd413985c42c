"""Operations of migrations that change large tables while the site works.

A migration that uses them has `atomic = False`: it may be killed after any statement, is then not
recorded, and runs again from its beginning. So each operation finds out what it has done already.
"""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.db.migrations.operations.base import Operation

#: Rows that one transaction of `fill_in_steps` changes.
STEP_ROWS = 5_000


class InOneTransaction(Operation):
    """The operations together or not at all, unless `is_done(cursor)` says that an earlier run has
    committed them, which was killed before it could be recorded.
    """

    atomic = True
    reduces_to_sql = True

    def __init__(
        self, operations: Sequence[Operation], *, is_done: Callable[[Any], bool] | None = None
    ) -> None:
        self.operations = operations
        self.is_done = is_done
        self.reversible = all(operation.reversible for operation in operations)  # type: ignore[misc]

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return type(self).__name__, [self.operations], {"is_done": self.is_done}

    def state_forwards(self, app_label: str, state: Any) -> None:
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        if self.is_done and not schema_editor.collect_sql:
            with schema_editor.connection.cursor() as cursor:
                if self.is_done(cursor):
                    return
        for operation in self.operations:
            after = from_state.clone()
            operation.state_forwards(app_label, after)
            if operation.reduces_to_sql or not schema_editor.collect_sql:
                operation.database_forwards(app_label, schema_editor, from_state, after)
            from_state = after
        _run_deferred(schema_editor)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        # `to_state` is the state before this operation: those before each part follow from it.
        states = [to_state]
        for operation in self.operations:
            after = states[-1].clone()
            operation.state_forwards(app_label, after)
            states.append(after)
        for number in reversed(range(len(self.operations))):
            self.operations[number].database_backwards(
                app_label, schema_editor, states[number + 1], states[number]
            )
        _run_deferred(schema_editor)

    def describe(self) -> str:
        return "; ".join(operation.describe() for operation in self.operations)


def _run_deferred(schema_editor: Any) -> None:
    """Django adds foreign keys and indexes of new tables when the migration ends, in transactions
    of their own."""
    for statement in schema_editor.deferred_sql:
        schema_editor.execute(statement, None)
    schema_editor.deferred_sql.clear()


def fill_in_steps(connection: Any, *, table: str, assignment: str, missing: str) -> int:
    """`UPDATE table SET assignment` of all rows for which `missing` holds, in transactions of
    STEP_ROWS rows by id; returns how many were changed. Each locks its rows alone, for as long as
    it takes. All three are SQL of the caller.
    """
    statement = (
        f"WITH step AS (SELECT id FROM {table} WHERE id > %s AND {missing}"  # noqa: S608
        f" ORDER BY id LIMIT {STEP_ROWS} FOR UPDATE), changed AS (UPDATE {table} SET {assignment}"
        f" FROM step WHERE {table}.id = step.id) SELECT max(id), count(*) FROM step"
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT min(id) - 1, max(id) FROM {table} WHERE {missing}")  # noqa: S608
        after, last = cursor.fetchone()
        changed = 0
        while after is not None and after < last:
            cursor.execute(statement, [after])
            after, count = cursor.fetchone()
            changed += count
    return changed


def require_value(connection: Any, *, table: str, column: str) -> None:
    """NOT NULL for a column that has a value in each row. Rows are looked at under a lock that lets
    others read and write."""
    constraint = f"{column}_has_value"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attnotnull FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s",
            [table, column],
        )
        if cursor.fetchone()[0]:
            return
        change = f"ALTER TABLE {table}"
        cursor.execute(f"{change} DROP CONSTRAINT IF EXISTS {constraint}")
        check = f"CHECK ({column} IS NOT NULL) NOT VALID"
        cursor.execute(f"{change} ADD CONSTRAINT {constraint} {check}")
        cursor.execute(f"{change} VALIDATE CONSTRAINT {constraint}")
        with transaction.atomic(using=connection.alias):
            cursor.execute(f"{change} ALTER COLUMN {column} SET NOT NULL")
            cursor.execute(f"{change} DROP CONSTRAINT {constraint}")


def create_index_concurrently(
    connection: Any,
    *,
    name: str,
    table: str,
    columns: str,
    where: str = "true",
    is_unique: bool = False,
) -> None:
    """`CREATE INDEX CONCURRENTLY`, once the rest of an interrupted one is removed. It may wait for
    transactions that others began before, and holds up nobody meanwhile.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        found = cursor.fetchone()
        if found and found[0]:
            return
        if found:
            cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
        cursor.execute("SET lock_timeout = 0")
        kind = "UNIQUE INDEX" if is_unique else "INDEX"
        cursor.execute(f"CREATE {kind} CONCURRENTLY {name} ON {table} ({columns}) WHERE {where}")
