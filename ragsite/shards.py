"""Shards made ready, watched, and workspaces moved between them (docs/decisions/0077).

Both by PostgreSQL's logical replication: a standing subscription of each shard copies accounts and
embedding spaces from the main database; one for a move copies a workspace's rows, and what changes
meanwhile, while it is read and written. Begin with `prepare_shard` and `move_workspace`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from graphlib import TopologicalSorter
from time import monotonic, sleep
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, DatabaseError, IntegrityError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql
from psycopg.conninfo import make_conninfo

from accounts.models import Workspace
from common.errors import Conflict, ExplainedError, InvalidInput
from common.rls import workspace_columns
from common.shards import (
    COPIED_MODELS,
    MAIN,
    PUBLICATION,
    all_shards,
    is_in_catalog,
    on_shard,
    wait_for_copies,
)
from common.text import pluralized
from documents.ingestion.vector_indexes import build_index
from documents.models import Chunk, EmbeddingSpace
from documents.services import default_space
from ragsite.bootstrap import migration_lock, pending_migrations

Say = Callable[[str], None]

#: Each shard gives ids of a range of its own, which JavaScript can still count (2**53).
IDS_OF_SHARD = 2**40
#: Seconds that requests and tasks have to finish what they write before a move, and that the last
#: changes have to arrive.
DRAIN_SECONDS = 10.0
ARRIVAL_SECONDS = 120.0
_POLL_SECONDS = 0.2
_LOCK_SECONDS = 2
_LOCK_TRIES = 30
#: Sequence of what is no id: the places of passages in the index of words.
_INDEX_IDS = "documents_chunk_index_id"


class ShardError(ExplainedError):
    """A shard cannot be used as it is; the message says the cure."""


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
    ((size, documents),) = _rows(
        here, "SELECT pg_database_size(current_database()), count(*) FROM documents_document"
    )
    copying = behind = None
    detail = "in use"
    if name != MAIN:
        slots = _rows(
            _main(),
            "SELECT active, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::int8"
            " FROM pg_replication_slots WHERE slot_name = %s AND wal_status <> 'lost'",
            [_subscription(name)],
        )
        copying, behind = slots[0] if slots else (False, None)
        if not copying:
            detail = "no changes of accounts arrive: run `manage.py shards prepare`"
    is_ok = copying is not False
    return ShardState(name or "main", is_ok, detail, workspaces, documents, size, copying, behind)


# --- making a shard ready ------------------------------------------------------------------------


def prepare_shard(name: str, *, say: Say) -> None:
    """Migrate a shard, give it a range of ids, and have accounts copied to it. Repeating it mends
    what is missing and changes nothing else. Raises ShardError."""
    main = _main()
    for alias, shown in ((main, "the main database"), (connections[name], name)):
        if _value(alias, "SHOW wal_level") != "logical":
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
    wanted = [_table(label) for label in COPIED_MODELS]
    _publish(main, wanted)
    _subscribe(name, wanted, say)
    for constraint, table in _rows(connections[name], _TO_KEYS):
        statement = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
        _with_lock(
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
    if _value(here, "SELECT EXISTS (SELECT FROM documents_document)"):
        raise ShardError(f"{name} holds documents of a site already. Name an empty database.")
    taken = {0}
    for other in set(settings.DATABASE_SHARDS) - {name}:
        try:
            connections[other].ensure_connection()
        except OperationalError as error:
            raise ShardError(
                f"Shard {other} does not answer, and its ids are not known: start it first."
            ) from error
        if _value(connections[other], "SELECT to_regclass('documents_document') IS NOT NULL"):
            taken.add(_range_of(connections[other]))
    first = (max(taken) + 1) * IDS_OF_SHARD
    sequences = _rows(
        here,
        "SELECT c.relname FROM pg_class AS c JOIN pg_sequence AS s ON s.seqrelid = c.oid"
        " WHERE c.relnamespace = current_schema()::regnamespace AND s.seqtypid = 'bigint'::regtype",
    )
    for (sequence,) in sequences:
        # the row of the document sequence comes last: it says that all are done
        if sequence not in (_INDEX_IDS, "documents_document_id_seq"):
            _run(here, sql.SQL("SELECT setval({}, {})"), sequence, first)
    _run(here, sql.SQL("SELECT setval({}, {})"), "documents_document_id_seq", first)
    say(f"{name}: ids from {first:,} on")


def _range_of(server: BaseDatabaseWrapper) -> int:
    last = _value(server, "SELECT last_value FROM documents_document_id_seq")
    return int(last) // IDS_OF_SHARD


def _publish(main: BaseDatabaseWrapper, tables: Sequence[str]) -> None:
    there = _rows(
        main, "SELECT tablename FROM pg_publication_tables WHERE pubname = %s", [PUBLICATION]
    )
    if {table for (table,) in there} == set(tables):
        return
    listed = sql.SQL(", ").join(map(sql.Identifier, tables))
    if _value(main, "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = %s)", [PUBLICATION]):
        statement = sql.SQL("ALTER PUBLICATION {} SET TABLE {}")
    else:
        statement = sql.SQL("CREATE PUBLICATION {} FOR TABLE {}")
    _execute(main, statement.format(sql.Identifier(PUBLICATION), listed))


def _subscribe(name: str, tables: Sequence[str], say: Say) -> None:
    """Copy the tables, and have all that is changed from that moment on replicated."""
    main, here = _main(), connections[name]
    subscription = _subscription(name)
    is_there = _value(
        here, "SELECT EXISTS (SELECT FROM pg_subscription WHERE subname = %s)", [subscription]
    )
    lasting = _rows(
        main,
        "SELECT FROM pg_replication_slots WHERE slot_name = %s AND wal_status <> 'lost'",
        [subscription],
    )
    copied = {table for (table,) in _rows(here, _SUBSCRIBED, [subscription])} if is_there else set()
    if is_there and lasting and copied == set(tables):
        _execute(here, sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(sql.Identifier(subscription)))
        return
    _drop_subscription(here, main, subscription)
    listed = sql.SQL(", ").join(map(sql.Identifier, tables))
    with _transaction(main):
        # Nobody changes them until the copy is whole; they are small.
        _execute(main, sql.SQL("LOCK TABLE {} IN SHARE MODE").format(listed))
        _execute(
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
        with _transaction(here):
            count = sum(_copy_table(main, here, table) for table in tables)
    _execute(here, sql.SQL("ALTER SUBSCRIPTION {} ENABLE").format(sql.Identifier(subscription)))
    say(f"{name}: {pluralized(count, 'row')} of accounts and embedding spaces copied")


def detach_shards() -> None:
    """End the copying of accounts, before other tables take the place of these."""
    for name in settings.DATABASE_SHARDS:
        _drop_subscription(connections[name], _main(), _subscription(name))
    _execute(_main(), sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)))


_SUBSCRIBED = """
    SELECT relation.srrelid::regclass::text FROM pg_subscription_rel AS relation
    JOIN pg_subscription AS own ON own.oid = relation.srsubid WHERE own.subname = %s
"""


def _copy_table(main: BaseDatabaseWrapper, here: BaseDatabaseWrapper, table: str) -> int:
    """Make the rows of `table` those of the main database; returns how many there are. A row that
    is gone there stays where something refers to it."""
    columns = [name for (name,) in _rows(main, _COLUMNS, [table])]
    name, listed = sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
    stage = sql.Identifier(f"copied_{table}")
    _execute(
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
    gone = _rows(
        here,
        sql.SQL("SELECT id FROM {} WHERE id NOT IN (SELECT id FROM {})").format(name, stage),
    )
    for (pk,) in gone:
        _execute(here, sql.SQL("SAVEPOINT gone"))
        try:
            _execute(here, sql.SQL("DELETE FROM {} WHERE id = {}").format(name, sql.Literal(pk)))
            _execute(here, sql.SQL("SET CONSTRAINTS ALL IMMEDIATE"))
        except IntegrityError:
            _execute(here, sql.SQL("ROLLBACK TO SAVEPOINT gone"))
        _execute(here, sql.SQL("SET CONSTRAINTS ALL DEFERRED"))
    changed = sql.SQL(", ").join(
        sql.SQL("{0} = excluded.{0}").format(sql.Identifier(each)) for each in columns
    )
    _execute(
        here,
        sql.SQL(
            "INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}"
            " ON CONFLICT (id) DO UPDATE SET {}"
        ).format(name, listed, listed, stage, changed),
    )
    return int(_value(here, sql.SQL("SELECT count(*) FROM {}").format(stage)))


_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attnum
"""


# --- moving a workspace --------------------------------------------------------------------------


def owned_tables() -> list[str]:
    """Tables with rows of workspaces that are on the workspace's shard, those that refer to others
    before these."""
    models = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model._meta.db_table in workspace_columns() and not is_in_catalog(model)
    ]
    order: TopologicalSorter[str] = TopologicalSorter()
    for model in models:
        order.add(model._meta.db_table)
        for field in model._meta.concrete_fields:
            if field.related_model in models and field.related_model is not model:
                order.add(field.related_model._meta.db_table, model._meta.db_table)
    return list(order.static_order())


def move_workspace(
    *, workspace: Workspace, to: str, say: Say, drain_seconds: float = DRAIN_SECONDS
) -> None:
    """Move all rows of `workspace` to the shard `to`. It is searched all the time; who writes waits
    at the end, while the last changes arrive.

    Interrupted, it is started again by repeating it. Raises InvalidInput, Conflict and ShardError,
    and the workspace then works where it was.
    """
    if to not in all_shards():
        names = ", ".join(name or "main" for name in all_shards())
        raise InvalidInput(f"There is no shard “{to}”. There are: {names}.")
    if apps.get_model("documents", "Reembedding").objects.filter(state="running").exists():
        raise Conflict("Collections are being moved to another embedding space: wait for that.")
    move = _Move(workspace, to, say)
    if workspace.shard == to:
        move.clean_up()
        return
    move.check()
    move.abandon()  # what an interrupted one left
    try:
        move.copy()
        move.switch(drain_seconds)
    except BaseException:
        with suppress(DatabaseError):
            move.abandon()
        raise
    move.clean_up()


class _Move:
    """The steps of one move, each of which may be repeated."""

    def __init__(self, workspace: Workspace, to: str, say: Say) -> None:
        self.workspace, self.to, self.source = workspace, to, workspace.shard
        self.say = say
        self.name = f"ragsite_move_{workspace.pk}"
        self.tables = owned_tables()

    def check(self) -> None:
        """Raise ShardError unless both servers can replicate."""
        for shard in (self.source, self.to):
            server, shown = _server(shard), shard or "main"
            if _value(server, "SHOW wal_level") != "logical":
                raise ShardError(f"Set wal_level = logical for {shown}, and restart it.")
        states = {state.name: state for state in shard_states()}
        state = states[self.to or "main"]
        if not state.ok:
            raise ShardError(f"{state.name} is not ready: {state.detail}.")

    def copy(self) -> None:
        """Have the rows copied, and what changes meanwhile replicated."""
        there, here = _server(self.source), _server(self.to)
        with on_shard(self.source):
            chunks = Chunk.objects.filter(workspace=self.workspace)
            spaces = list(chunks.values_list("space", flat=True).distinct())
        with on_shard(self.to):
            for space in EmbeddingSpace.objects.filter(pk__in=spaces):
                if build_index(space):
                    self.say(f"index of {space.name} built")
        for table in self.tables:
            _name_workspace_in_log(there, table)
        own = sql.SQL(" WHERE (workspace_id = {})").format(sql.Literal(self.workspace.pk))
        listed = sql.SQL(", ").join(sql.Identifier(table) + own for table in self.tables)
        _execute(
            there,
            sql.SQL(
                "CREATE PUBLICATION {} FOR TABLE {} WITH (publish = 'insert, update, delete')"
            ).format(sql.Identifier(self.name), listed),
        )
        _execute(
            here,
            sql.SQL(
                "CREATE SUBSCRIPTION {} CONNECTION {} PUBLICATION {}"
                " WITH (synchronous_commit = 'local')"
            ).format(
                sql.Identifier(self.name),
                sql.Literal(replication_url(self.source)),
                sql.Identifier(self.name),
            ),
        )
        ready = -1
        while ready < len(self.tables):
            sleep(_POLL_SECONDS)
            done = int(_value(here, _COPIED, [self.name]))
            if done != ready:
                ready = done
                self.say(f"{ready} of {len(self.tables)} tables copied")
            self._check_replication(here)

    def switch(self, drain_seconds: float) -> None:
        """Let writers wait, let the last changes arrive, and go on in the new shard."""
        there, here = _server(self.source), _server(self.to)
        self.workspace.is_moving = True
        self.workspace.save(update_fields=["is_moving"])
        wait_for_copies()
        self.say(f"writers wait; {drain_seconds:g} seconds for those at work")
        sleep(drain_seconds)
        # From here on a writer that is still at work fails, rather than that its work is lost.
        _execute(there, sql.SQL(_FENCE))
        for table in self.tables:
            _with_lock(
                there,
                sql.SQL(
                    "CREATE TRIGGER {} BEFORE INSERT OR UPDATE OR DELETE ON {} FOR EACH ROW"
                    " EXECUTE FUNCTION ragsite_moving({})"
                ).format(
                    sql.Identifier(self.name),
                    sql.Identifier(table),
                    sql.Literal(str(self.workspace.pk)),
                ),
            )
        position = _value(there, "SELECT pg_current_wal_insert_lsn()::text")
        deadline = monotonic() + ARRIVAL_SECONDS
        arrived = (
            "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
            " WHERE slot_name = %s"
        )
        while not _value(there, arrived, [position, self.name]):
            self._check_replication(here)
            if monotonic() > deadline:
                raise ShardError("The last changes did not arrive in time. Try again.")
            sleep(_POLL_SECONDS / 10)
        for table in self.tables:
            counts = [self._count(server, table) for server in (there, here)]
            if counts[0] != counts[1]:
                raise ShardError(
                    f"{table} has {counts[0]:,} rows of the workspace, and {counts[1]:,} arrived."
                    " Nothing was changed; try again."
                )
        last = max(
            int(_value(server, "SELECT last_value FROM documents_chunk_index_id"))
            for server in (there, here)
        )
        _run(here, sql.SQL("SELECT setval({}, {})"), _INDEX_IDS, last)
        self.workspace.shard, self.workspace.is_moving = self.to, False
        self.workspace.save(update_fields=["shard", "is_moving"])
        wait_for_copies()
        self.say(f"“{self.workspace.slug}” works on {self.to or 'main'}")

    def clean_up(self) -> None:
        """Remove what the shards before still have of it."""
        here = _server(self.to)
        for shard in set(all_shards()) - {self.to}:
            there = _server(shard)
            _drop_subscription(here, there, self.name)
            self._unpublish(there)
            removed = self._remove_rows(there)
            self._unfence(there)
            if removed:
                self.say(f"{pluralized(removed, 'row')} removed from {shard or 'main'}")

    def abandon(self) -> None:
        """Undo an unfinished move: the workspace goes on where it was."""
        there, here = _server(self.source), _server(self.to)
        _drop_subscription(here, there, self.name)
        self._unpublish(there)
        self._unfence(there)
        if self.workspace.is_moving:
            self.workspace.is_moving = False
            self.workspace.save(update_fields=["is_moving"])
        self._remove_rows(here)

    def _count(self, server: BaseDatabaseWrapper, table: str) -> int:
        statement = sql.SQL("SELECT count(*) FROM {} WHERE workspace_id = {}").format(
            sql.Identifier(table), sql.Literal(self.workspace.pk)
        )
        return int(_value(server, statement))

    def _check_replication(self, here: BaseDatabaseWrapper) -> None:
        failed = _value(
            here,
            "SELECT coalesce(sum(apply_error_count + sync_error_count), 0)"
            " FROM pg_stat_subscription_stats WHERE subname = %s",
            [self.name],
        )
        if failed:
            raise ShardError(
                f"Rows could not be copied to {self.to or 'main'}; its server's log says why. Cure"
                " that, and run the same again."
            )

    def _remove_rows(self, server: BaseDatabaseWrapper) -> int:
        """Delete the workspace's rows there; returns how many."""
        total, last = 0, -1
        while last:  # triggers note in other tables what is deleted
            last = 0
            with _transaction(server):
                _execute(server, sql.SQL("SET LOCAL ragsite.moved = {}").format(self.workspace.pk))
                for table in self.tables:
                    statement = sql.SQL("DELETE FROM {} WHERE workspace_id = {}")
                    last += _execute(
                        server,
                        statement.format(sql.Identifier(table), sql.Literal(self.workspace.pk)),
                    )
            total += last
        return total

    def _unfence(self, server: BaseDatabaseWrapper) -> None:
        for (table,) in _rows(
            server, "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = %s", [self.name]
        ):
            statement = sql.SQL("DROP TRIGGER IF EXISTS {} ON {}")
            _with_lock(server, statement.format(sql.Identifier(self.name), sql.Identifier(table)))

    def _unpublish(self, server: BaseDatabaseWrapper) -> None:
        _execute(server, sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(self.name)))
        is_other = "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname ^@ 'ragsite_move_')"
        if _value(server, is_other):
            return
        for table in self.tables:
            if (
                _value(
                    server, "SELECT relreplident FROM pg_class WHERE oid = to_regclass(%s)", [table]
                )
                != "d"
            ):
                statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY DEFAULT")
                _with_lock(server, statement.format(sql.Identifier(table)))
            index = sql.Identifier(_identity_index(table))
            _execute(server, sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))


def _identity_index(table: str) -> str:
    return f"moved_{table}"


def _name_workspace_in_log(server: BaseDatabaseWrapper, table: str) -> None:
    """Have changes and deletions of the table's rows name their workspace in the write-ahead log,
    so that only its own are replicated. `REPLICA IDENTITY FULL` does not serve tables with
    generated columns, and writes whole vectors; it serves the history, whose workspace may be
    missing, and of which nothing is changed."""
    name = _identity_index(table)
    if _value(server, _MAY_LACK_WORKSPACE, [table]):
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL")
        _with_lock(server, statement.format(sql.Identifier(table)))
        return
    columns = [column for (column,) in _rows(server, _PRIMARY_KEY, [table])]
    if _value(server, _IS_VALID, [name]):
        return  # of another move, or of one that was interrupted
    index = sql.Identifier(name)
    _execute(server, sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
    key = sql.SQL(", ").join(map(sql.Identifier, dict.fromkeys([*columns, "workspace_id"])))
    _execute(
        server,
        sql.SQL("CREATE UNIQUE INDEX CONCURRENTLY {} ON {} ({})").format(
            index, sql.Identifier(table), key
        ),
    )
    statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY USING INDEX {}")
    _with_lock(server, statement.format(sql.Identifier(table), index))


_PRIMARY_KEY = """
    SELECT attribute.attname FROM pg_index AS key
    JOIN pg_attribute AS attribute
      ON attribute.attrelid = key.indrelid AND attribute.attnum = ANY(key.indkey)
    WHERE key.indrelid = to_regclass(%s) AND key.indisprimary
    ORDER BY attribute.attnum
"""
_MAY_LACK_WORKSPACE = """
    SELECT NOT attnotnull FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attname = 'workspace_id'
"""
_IS_VALID = """
    SELECT indisvalid AND indisreplident FROM pg_index WHERE indexrelid = to_regclass(%s)
"""
_COPIED = """
    SELECT count(*) FROM pg_subscription_rel AS relation
    JOIN pg_subscription AS own ON own.oid = relation.srsubid
    WHERE own.subname = %s AND relation.srsubstate = 'r'
"""
#: Refuses changes of a workspace that is being moved, as a server that is shutting down does.
_FENCE = """
    CREATE OR REPLACE FUNCTION ragsite_moving() RETURNS trigger LANGUAGE plpgsql AS $fence$
    DECLARE
        moving bigint := TG_ARGV[0];
    BEGIN
        IF moving IN (OLD.workspace_id, NEW.workspace_id)
           AND current_setting('ragsite.moved', true) IS DISTINCT FROM TG_ARGV[0] THEN
            RAISE 'the workspace is being moved to another server' USING ERRCODE = '57P03';
        END IF;
        RETURN coalesce(NEW, OLD);
    END $fence$
"""


# --- statements ----------------------------------------------------------------------------------


def replication_url(shard: str) -> str:
    """How other servers reach `shard`: as this process does, unless DATABASE_REPLICATION_URLS says
    another way, past a PgBouncer for instance."""
    given: dict[str, str] = settings.DATABASE_REPLICATION_URLS
    if url := given.get(shard or "main"):
        return make_conninfo(url)
    parameters = _server(shard).get_connection_params()
    wanted = ("host", "port", "user", "password", "dbname", "sslmode", "sslrootcert")
    return make_conninfo(**{name: parameters[name] for name in wanted if parameters.get(name)})


def _subscription(shard: str) -> str:
    return f"{PUBLICATION}_{shard}"


def _table(label: str) -> str:
    return str(apps.get_model(label)._meta.db_table)


def _main() -> BaseDatabaseWrapper:
    return connections["catalog"]


def _server(shard: str) -> BaseDatabaseWrapper:
    return connections[shard] if shard else _main()


def _drop_subscription(
    here: BaseDatabaseWrapper, publisher: BaseDatabaseWrapper, name: str
) -> None:
    """Drop it with its slot on the publisher, as far as both are there."""
    if _value(here, "SELECT EXISTS (SELECT FROM pg_subscription WHERE subname = %s)", [name]):
        for change in ("DISABLE", "SET (slot_name = NONE)"):
            _execute(
                here, sql.SQL(f"ALTER SUBSCRIPTION {{}} {change}").format(sql.Identifier(name))
            )
        _execute(here, sql.SQL("DROP SUBSCRIPTION {}").format(sql.Identifier(name)))
    deadline = monotonic() + ARRIVAL_SECONDS
    while True:
        slots = _rows(
            publisher,
            "SELECT slot_name, active_pid FROM pg_replication_slots"
            " WHERE slot_name = %s AND database = current_database()",
            [name],
        )
        if not slots:
            return
        if slots[0][1] is None:
            _execute(publisher, sql.SQL("SELECT pg_drop_replication_slot({})").format(name))
            return
        if monotonic() > deadline:
            raise ShardError(f"The replication slot {name} is still in use. Try again.")
        sleep(_POLL_SECONDS)


def _with_lock(server: BaseDatabaseWrapper, statement: sql.Composable) -> None:
    """Run a change of a table, in tries that hold others up for two seconds at most."""
    for attempt in range(_LOCK_TRIES):
        try:
            with _transaction(server):
                _execute(server, sql.SQL(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
                _execute(server, statement)
        except OperationalError:
            if attempt == _LOCK_TRIES - 1:
                raise
            sleep(_POLL_SECONDS)
        else:
            return


@contextmanager
def _transaction(server: BaseDatabaseWrapper) -> Iterator[None]:
    server.ensure_connection()
    with server.wrap_database_errors, server.connection.transaction():
        yield


def _execute(server: BaseDatabaseWrapper, statement: sql.Composable) -> int:
    with server.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.rowcount)


def _run(server: BaseDatabaseWrapper, statement: sql.SQL, *values: Any) -> None:
    _execute(server, statement.format(*map(sql.Literal, values)))


def _rows(
    server: BaseDatabaseWrapper, statement: str | sql.Composable, values: Iterable[Any] = ()
) -> list[tuple[Any, ...]]:
    with server.cursor() as cursor:
        cursor.execute(statement, list(values) or None)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _value(
    server: BaseDatabaseWrapper, statement: str | sql.Composable, values: Iterable[Any] = ()
) -> Any:
    found = _rows(server, statement, values)
    return found[0][0] if found else None
