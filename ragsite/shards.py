"""Shards made ready and watched (docs/decisions/0077): a standing subscription of each copies
accounts and embedding spaces from the main database. Begin with `prepare_shard`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from accounts.models import Workspace
from common.shards import (
    COPIED_MODELS,
    MAIN,
    PUBLICATION,
    all_shards,
    on_shard,
)
from common.text import pluralized
from documents.ingestion.vector_indexes import build_index
from documents.models import EmbeddingSpace
from documents.services import default_space
from ragsite.bootstrap import migration_lock, pending_migrations
from ragsite.replication import (
    ShardError,
    drop_slot,
    drop_subscription,
    execute,
    main_database,
    replication_url,
    rows,
    run_with,
    transaction,
    value,
    with_lock,
)

Say = Callable[[str], None]

#: Each shard gives ids of a range of its own, which JavaScript can still count (2**53).
IDS_OF_SHARD = 2**40
#: How publications and subscriptions of moves begin.
MOVE_PREFIX = "ragsite_move_"
#: Sequence of what is no id: the places of passages in the index of words.
INDEX_IDS = "documents_chunk_index_id"


@dataclass(frozen=True, slots=True)
class ShardState:
    """`copying` says whether changes of accounts arrive, None for the main database, which has
    them; `behind` is how many bytes of write-ahead log are still to come."""

    name: str
    ok: bool
    detail: str
    workspaces: int = 0
    documents: int = 0
    bytes: int = 0
    copying: bool | None = None
    behind: int | None = None


def shard_states() -> list[ShardState]:
    """The state of each shard now; the main database first."""
    placed = dict.fromkeys(all_shards(), 0)
    for shard in Workspace.objects.values_list("shard", flat=True):
        placed[shard] = placed.get(shard, 0) + 1
    states = []
    for name, workspaces in placed.items():
        shown = name or "main"
        if name not in all_shards():
            detail = "not among DATABASE_SHARD_URLS"
            states.append(ShardState(shown, ok=False, detail=detail, workspaces=workspaces))
            continue
        with on_shard(name):
            try:
                states.append(_state(name, workspaces))
            except DatabaseError as error:
                detail = str(error).strip().splitlines()[0]
                states.append(ShardState(shown, ok=False, detail=detail, workspaces=workspaces))
    return states


def _state(name: str, workspaces: int) -> ShardState:
    here = connections[DEFAULT_DB_ALIAS]
    if pending := pending_migrations():
        detail = f"lacks {pluralized(pending, 'migration')}: run `manage.py shards prepare`"
        return ShardState(name or "main", ok=False, detail=detail, workspaces=workspaces)
    ((size, documents),) = rows(
        here, "SELECT pg_database_size(current_database()), count(*) FROM documents_document"
    )
    copying = behind = None
    detail = "in use"
    if name != MAIN:
        slots = rows(
            main_database(),
            "SELECT active, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::int8"
            " FROM pg_replication_slots WHERE slot_name = %s AND wal_status <> 'lost'",
            [_subscription(name)],
        )
        copying, behind = slots[0] if slots else (False, None)
        if not copying:
            detail = "no changes of accounts arrive: run `manage.py shards prepare`"
    moves = value(here, "SELECT count(*) FROM pg_publication WHERE pubname ^@ %s", [MOVE_PREFIX])
    if moves:
        detail += "; a workspace is being moved away, or its move was cut off: run it again"
    is_ok = copying is not False
    return ShardState(name or "main", is_ok, detail, workspaces, documents, size, copying, behind)


# --- making a shard ready ------------------------------------------------------------------------


def prepare_shard(name: str, *, say: Say) -> None:
    """Migrate a shard, give it a range of ids, and have accounts copied to it. Repeating it mends
    what is missing and changes nothing else. Raises ShardError."""
    main = main_database()
    for alias, shown in ((main, "the main database"), (connections[name], name)):
        if value(alias, "SHOW wal_level") != "logical":
            raise ShardError(
                f"{shown} has no logical replication. Set wal_level = logical in its"
                " postgresql.conf and restart it."
            )
    if waiting := pending_migrations():
        raise ShardError(
            f"The main database lacks {pluralized(waiting, 'migration')}: run `manage.py migrate`"
            " or `manage.py upgrade` first."
        )
    default_space()  # of the configured model, before it is copied
    with on_shard(name, is_alone=True), migration_lock():
        if count := pending_migrations():
            say(f"{name}: applying {pluralized(count, 'migration')}")
            call_command("migrate", interactive=False, verbosity=0)
        _separate_ids(name, say)
    wanted = [str(apps.get_model(label)._meta.db_table) for label in COPIED_MODELS]
    _publish(main, wanted)
    _subscribe(name, wanted, say)
    for constraint, table in rows(connections[name], _TO_KEYS):
        statement = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
        with_lock(
            connections[name], statement.format(sql.Identifier(table), sql.Identifier(constraint))
        )
    with on_shard(name):
        for space in EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE):
            build_index(space)


#: Foreign keys of the history, which may name a key that was deleted while the shard was down.
_TO_KEYS = """
    SELECT conname, conrelid::regclass::text FROM pg_constraint
    WHERE contype = 'f' AND confrelid = 'accounts_apikey'::regclass
"""


def _separate_ids(name: str, say: Say) -> None:
    """Have this shard draw ids from its own range. Raises ShardError where another one's range is
    unknown, because it does not answer."""
    here = connections[DEFAULT_DB_ALIAS]
    if _range_of(here):
        return
    if value(here, "SELECT EXISTS (SELECT FROM documents_document)"):
        raise ShardError(f"{name} holds documents of a site already. Name an empty database.")
    taken = {0}
    for other in set(settings.DATABASE_SHARDS) - {name}:
        try:
            connections[other].ensure_connection()
        except OperationalError as error:
            raise ShardError(
                f"Shard {other} does not answer, and its ids are not known: start it first."
            ) from error
        if value(connections[other], "SELECT to_regclass('documents_document') IS NOT NULL"):
            taken.add(_range_of(connections[other]))
    first = (max(taken) + 1) * IDS_OF_SHARD
    sequences = rows(
        here,
        "SELECT c.relname FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid"
        " WHERE c.relnamespace = current_schema()::regnamespace AND s.seqtypid = 'bigint'::regtype",
    )
    for (sequence,) in sequences:
        # the row of the document sequence comes last: it says that all are done
        if sequence not in (INDEX_IDS, "documents_document_id_seq"):
            run_with(here, sql.SQL("SELECT setval({}, {})"), sequence, first)
    run_with(here, sql.SQL("SELECT setval({}, {})"), "documents_document_id_seq", first)
    say(f"{name}: ids from {first:,} on")


def _range_of(server: BaseDatabaseWrapper) -> int:
    last = value(server, "SELECT last_value FROM documents_document_id_seq")
    return int(last) // IDS_OF_SHARD


def _publish(main: BaseDatabaseWrapper, tables: Sequence[str]) -> None:
    there = rows(
        main, "SELECT tablename FROM pg_publication_tables WHERE pubname = %s", [PUBLICATION]
    )
    if {table for (table,) in there} == set(tables):
        return
    listed = sql.SQL(", ").join(map(sql.Identifier, tables))
    if value(main, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = %s)", [PUBLICATION]):
        statement = sql.SQL("ALTER PUBLICATION {} SET TABLE {}")
    else:
        statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}")
    execute(main, statement.format(sql.Identifier(PUBLICATION), listed))


def _subscribe(name: str, tables: Sequence[str], say: Say) -> None:
    """Copy the tables, and have all that is changed from that moment on replicated."""
    main, here = main_database(), connections[name]
    subscription = _subscription(name)
    is_there = value(
        here, "SELECT EXISTS (SELECT FROM pg_subscription WHERE subname = %s)", [subscription]
    )
    lasting = rows(
        main,
        "SELECT FROM pg_replication_slots WHERE slot_name = %s AND wal_status <> 'lost'",
        [subscription],
    )
    copied = {table for (table,) in rows(here, _SUBSCRIBED, [subscription])} if is_there else set()
    if is_there and lasting and copied == set(tables):
        execute(here, sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(sql.Identifier(subscription)))
        return
    drop_subscription(here, subscription)
    drop_slot(main, subscription)
    listed = sql.SQL(", ").join(map(sql.Identifier, tables))
    with transaction(main):
        # Nobody changes them until the copy is whole; they are small.
        execute(main, sql.SQL("LOCK TABLE {} IN SHARE MODE").format(listed))
        execute(
            here,
            sql.SQL(
                "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {}"
                " WITH (copy_data = false, enabled = false, synchronous_commit = 'local')"
            ).format(
                sql.Identifier(subscription),
                sql.Literal(replication_url(MAIN)),
                sql.Identifier(PUBLICATION),
            ),
        )
        with transaction(here):
            count = sum(_copy_table(main, here, table) for table in tables)
    execute(here, sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(sql.Identifier(subscription)))
    say(f"{name}: {pluralized(count, 'row')} of accounts and embedding spaces copied")


def detach_shards() -> None:
    """End the copying of accounts, before other tables take the place of these."""
    for name in settings.DATABASE_SHARDS:
        drop_subscription(connections[name], _subscription(name))
        drop_slot(main_database(), _subscription(name))
    execute(
        main_database(),
        sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)),
    )


_SUBSCRIBED = """
    SELECT relation.srrelid::regclass::text FROM pg_subscription_rel AS relation
    JOIN pg_subscription AS own ON own.oid = relation.srsubid WHERE own.subname = %s
"""


def _copy_table(main: BaseDatabaseWrapper, here: BaseDatabaseWrapper, table: str) -> int:
    """Make the rows of `table` those of the main database; returns how many there are. A row that
    is gone there stays where something refers to it."""
    columns = [name for (name,) in rows(main, _COLUMNS, [table])]
    name, listed = sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    stage = sql.Identifier(f"copied_{table}")
    execute(
        here,
        sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0").format(
            stage, listed, name
        ),
    )
    with (
        main.cursor() as reading,
        here.cursor() as writing,
        reading.cursor.copy(sql.SQL("COPY {} ({}) TO STDOUT").format(name, listed)) as outgoing,
        writing.cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(stage, listed)) as incoming,
    ):
        for block in outgoing:
            incoming.write(block)
    gone = rows(
        here,
        sql.SQL("SELECT id FROM {} WHERE id NOT IN (SELECT id FROM {})").format(name, stage),
    )
    for (pk,) in gone:
        execute(here, sql.SQL("SAVEPOINT gone"))
        try:
            execute(here, sql.SQL("DELETE FROM {} WHERE id = {}").format(name, sql.Literal(pk)))
            execute(here, sql.SQL("SET CONSTRAINTS ALL IMMEDIATE"))
        except IntegrityError:
            execute(here, sql.SQL("ROLLBACK TO SAVEPOINT gone"))
        execute(here, sql.SQL("SET CONSTRAINTS ALL DEFERRED"))
    changed = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(each)) for each in columns
    )
    execute(
        here,
        sql.SQL(
            "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}"
            " ON CONFLICT (id) DO UPDATE SET {}"
        ).format(name, listed, listed, stage, changed),
    )
    return int(value(here, sql.SQL("SELECT count(*) FROM {}").format(stage)))


_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attnum
"""


def _subscription(shard: str) -> str:
    return f"{PUBLICATION}_{shard}"
