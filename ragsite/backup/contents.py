"""What a database holds: its tables with the number of their rows and a hash of what is in them."""

from dataclasses import dataclass

from psycopg import sql

from common.wording import counted
from ragsite.backup.server import Connection

#: What extensions brought belongs to them: pg_dump leaves it to `CREATE EXTENSION`.
OURS = sql.SQL("""
    n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                    AND objid = c.oid AND deptype = 'e')
""")
# Generated columns are made anew from the others, by the text search of that server.
_COLUMNS = sql.SQL("""
    SELECT n.nspname, c.relname, attname, typname, typsend::regproc::text
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = relnamespace
    JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
      AND attgenerated = ''
    JOIN pg_type ON pg_type.oid = atttypid
    WHERE relkind = 'r' AND {ours}
    ORDER BY n.nspname, c.relname, attname
""").format(ours=OURS)
#: Their binary form is the same everywhere, and less than half of the text's work.
_VECTORS = frozenset({"vector", "halfvec", "sparsevec"})
# Adding up does not ask in which order rows come, and tells two equal rows from none.
_HASH = sql.SQL("""
    SELECT count(*), coalesce(sum(('x' || left(hash, 16))::bit(64)::bigint), 0),
           coalesce(sum(('x' || right(hash, 16))::bit(64)::bigint), 0)
    FROM (SELECT md5(ROW({columns})::text) AS hash FROM {table}) AS hashed
""")


@dataclass(frozen=True, slots=True)
class Table:
    """How many rows there are, and a hash of all of them in any order: 32 hexadecimal digits."""

    rows: int
    hash: str


def tables(connection: Connection, *, but: str = "") -> dict[str, Table]:
    """Every table by its name, or by `schema.name` outside `public`; none of the schema `but`.
    Reads all of them whole."""
    found: dict[tuple[str, str], list[sql.Composable]] = {}
    for schema, table, column, kind, send in connection.execute(_COLUMNS).fetchall():
        if schema == but:
            continue
        value: sql.Composable = sql.Identifier(column)
        if kind in _VECTORS:
            value = sql.SQL("md5({send}({value}))").format(send=sql.SQL(send), value=value)
        found.setdefault((schema, table), []).append(value)
    return {
        table if schema == "public" else f"{schema}.{table}": _read(
            connection, sql.Identifier(schema, table), columns
        )
        for (schema, table), columns in found.items()
    }


def _read(connection: Connection, table: sql.Identifier, columns: list[sql.Composable]) -> Table:
    statement = _HASH.format(columns=sql.SQL(", ").join(columns), table=table)
    (read,) = connection.execute(statement).fetchall()
    rows, first, second = (int(number) for number in read)
    return Table(rows, f"{first % 2**64:016x}{second % 2**64:016x}")


def differences(there: dict[str, Table], here: dict[str, Table]) -> list[str]:
    """What is not the same, in words: a table of the backup (`there`) against the one `here`."""
    return [
        f"{name}: {_said(there.get(name))} in the backup, {_said(here.get(name))} here"
        for name in sorted(there.keys() | here.keys())
        if there.get(name) != here.get(name)
    ]


def _said(table: Table | None) -> str:
    return (
        "no such table"
        if table is None
        else f"{counted(table.rows, 'row')} with hash {table.hash[:8]}…"
    )
