"""Workspaces moved between shards while they are used (docs/decisions/0077): a subscription of the
new shard copies their rows and what changes meanwhile; at the end writers wait, and the workspace
goes on there. Begin with `move_workspace`."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from graphlib import TopologicalSorter
from time import monotonic, sleep

from django.apps import apps
from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

from accounts.models import Workspace
from common.errors import Conflict, InvalidInput
from common.rls import workspace_columns
from common.shards import (
    all_shards,
    is_in_catalog,
    on_shard,
    wait_for_copies,
)
from common.text import pluralized
from documents.ingestion.vector_indexes import build_index
from documents.models import Chunk, EmbeddingSpace, Reembedding
from ragsite.replication import (
    ARRIVAL_SECONDS,
    POLL_SECONDS,
    ShardError,
    drop_slot,
    drop_subscription,
    execute,
    replication_url,
    rows,
    run_with,
    server_of,
    transaction,
    value,
    with_lock,
)
from ragsite.shards import INDEX_IDS, MOVE_PREFIX, shard_states

Say = Callable[[str], None]

#: Seconds that requests and tasks have to finish what they write.
DRAIN_SECONDS = 10.0


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
    move = _Move(workspace, to, say)
    if workspace.shard == to:
        move.clean_up(set(all_shards()) - {to})
        return
    move.check()
    move.abandon()  # what an interrupted one left
    try:
        move.copy()
        move.switch(drain_seconds)
    except BaseException:
        with suppress(DatabaseError):
            workspace.refresh_from_db(fields=["shard", "is_moving"])
            if workspace.shard != to:  # else repeating it removes the rows that are left
                move.abandon()
        raise
    sleep(drain_seconds)  # of those who still read there
    move.clean_up({move.source})


class _Move:
    """The steps of one move, each of which may be repeated."""

    def __init__(self, workspace: Workspace, to: str, say: Say) -> None:
        self.workspace, self.to, self.source = workspace, to, workspace.shard
        self.say = say
        self.name = f"{MOVE_PREFIX}{workspace.pk}"
        self.tables = owned_tables()

    def check(self) -> None:
        """Raise ShardError unless both servers can replicate, and Conflict while collections of the
        shard are re-embedded."""
        for shard in (self.source, self.to):
            server, shown = server_of(shard), shard or "main"
            if value(server, "SHOW wal_level") != "logical":
                raise ShardError(f"Set wal_level = logical for {shown}, and restart it.")
        with on_shard(self.source):
            if Reembedding.objects.filter(state=Reembedding.State.RUNNING).exists():
                raise Conflict("Collections are being re-embedded on its shard: wait for that.")
        states = {state.name: state for state in shard_states()}
        state = states[self.to or "main"]
        if not state.ok:
            raise ShardError(f"{state.name} is not ready: {state.detail}.")

    def copy(self) -> None:
        """Have the rows copied, and what changes meanwhile replicated."""
        there, here = server_of(self.source), server_of(self.to)
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
        execute(
            there,
            sql.SQL(
                "CREATE PUBLICATION {} FOR TABLE {} WITH (publish = 'insert, update, delete')"
            ).format(sql.Identifier(self.name), listed),
        )
        execute(
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
            sleep(POLL_SECONDS)
            done = int(value(here, _COPIED, [self.name]))
            if done != ready:
                ready = done
                self.say(f"{ready} of {len(self.tables)} tables copied")
            self._check_replication(here)

    def switch(self, drain_seconds: float) -> None:
        """Let writers wait, let the last changes arrive, and go on in the new shard."""
        there, here = server_of(self.source), server_of(self.to)
        self.workspace.is_moving = True
        self.workspace.save(update_fields=["is_moving"])
        wait_for_copies()
        self.say(f"writers wait; {drain_seconds:g} seconds for those at work")
        sleep(drain_seconds)
        # From here on a writer that is still at work fails, rather than that its work is lost.
        execute(there, sql.SQL(_FENCE))
        for table in self.tables:
            with_lock(
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
        position = value(there, "SELECT pg_current_wal_insert_lsn()::text")
        deadline = monotonic() + ARRIVAL_SECONDS
        arrived = (
            "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots"
            " WHERE slot_name = %s"
        )
        while not value(there, arrived, [position, self.name]):
            self._check_replication(here)
            if monotonic() > deadline:
                raise ShardError("The last changes did not arrive in time. Try again.")
            sleep(POLL_SECONDS / 10)
        for table in self.tables:
            counts = [self._count(server, table) for server in (there, here)]
            if counts[0] != counts[1]:
                raise ShardError(
                    f"{table} has {counts[0]:,} rows of the workspace, and {counts[1]:,} arrived."
                    " Nothing was changed; try again."
                )
        last = max(
            int(value(server, "SELECT last_value FROM documents_chunk_index_id"))
            for server in (there, here)
        )
        run_with(here, sql.SQL("SELECT setval({}, {})"), INDEX_IDS, last)
        self.workspace.shard, self.workspace.is_moving = self.to, False
        self.workspace.save(update_fields=["shard", "is_moving"])
        wait_for_copies()
        self.say(f"“{self.workspace.slug}” works on {self.to or 'main'}")

    def clean_up(self, shards: Iterable[str]) -> None:
        """Remove what shards before still have of it, as far as they answer."""
        for shard in shards:
            there = server_of(shard)
            with self._passing_over(shard):
                drop_subscription(server_of(self.to), self.name)
                drop_slot(there, self.name)
                self._unpublish(there)
                removed = self._remove_rows(shard)
                self._unfence(there)
                if removed:
                    self.say(f"{pluralized(removed, 'row')} removed from {shard or 'main'}")

    def abandon(self) -> None:
        """Undo an unfinished move, to whichever shard: the workspace goes on where it was."""
        there, others = server_of(self.source), set(all_shards()) - {self.source}
        for shard in others:
            with self._passing_over(shard):
                drop_subscription(server_of(shard), self.name)
        drop_slot(there, self.name)
        self._unpublish(there)
        self._unfence(there)
        if self.workspace.is_moving:
            self.workspace.is_moving = False
            self.workspace.save(update_fields=["is_moving"])
        for shard in others:
            with self._passing_over(shard):
                self._remove_rows(shard)

    @contextmanager
    def _passing_over(self, shard: str) -> Iterator[None]:
        """Say that a shard does not answer, and go on."""
        try:
            yield
        except OperationalError as error:
            said = str(error).splitlines()[0]
            self.say(f"{shard or 'main'} may have rows of it still; run this again: {said}")

    def _count(self, server: BaseDatabaseWrapper, table: str) -> int:
        statement = sql.SQL("SELECT count(*) FROM {} WHERE workspace_id = {}").format(
            sql.Identifier(table), sql.Literal(self.workspace.pk)
        )
        return int(value(server, statement))

    def _check_replication(self, here: BaseDatabaseWrapper) -> None:
        failed = value(
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

    def _remove_rows(self, shard: str) -> int:
        """Delete the workspace's rows on a shard that it does not work on; returns how many."""
        home = Workspace.objects.values_list("shard", flat=True).get(pk=self.workspace.pk)
        if shard == home:
            raise ShardError(f"The workspace works on {home or 'main'}: nothing is removed.")
        server = server_of(shard)
        total, last = 0, -1
        while last:  # triggers note in other tables what is deleted
            last = 0
            with transaction(server):
                execute(server, sql.SQL("SET LOCAL ragsite.moved = {}").format(self.workspace.pk))
                for table in self.tables:
                    statement = sql.SQL("DELETE FROM {} WHERE workspace_id = {}")
                    last += execute(
                        server,
                        statement.format(sql.Identifier(table), sql.Literal(self.workspace.pk)),
                    )
            total += last
        return total

    def _unfence(self, server: BaseDatabaseWrapper) -> None:
        for (table,) in rows(
            server, "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = %s", [self.name]
        ):
            statement = sql.SQL("DROP TRIGGER IF EXISTS {} ON {}")
            with_lock(server, statement.format(sql.Identifier(self.name), sql.Identifier(table)))

    def _unpublish(self, server: BaseDatabaseWrapper) -> None:
        execute(server, sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(self.name)))
        is_other = "SELECT EXISTS (SELECT FROM pg_publication WHERE pubname ^@ %s)"
        if value(server, is_other, [MOVE_PREFIX]):
            return
        for table in self.tables:
            if (
                value(
                    server, "SELECT relreplident FROM pg_class WHERE oid = to_regclass(%s)", [table]
                )
                != "d"
            ):
                statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY DEFAULT")
                with_lock(server, statement.format(sql.Identifier(table)))
            index = sql.Identifier(_identity_index(table))
            execute(server, sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))


def _identity_index(table: str) -> str:
    return f"moved_{table}"


def _name_workspace_in_log(server: BaseDatabaseWrapper, table: str) -> None:
    """Have changes and deletions of the table's rows name their workspace in the write-ahead log,
    so that only its own are replicated. `REPLICA IDENTITY FULL` does not serve tables with
    generated columns, and writes whole vectors; it serves the history, whose workspace may be
    missing, and of which nothing is changed."""
    name = _identity_index(table)
    if value(server, _MAY_LACK_WORKSPACE, [table]):
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL")
        with_lock(server, statement.format(sql.Identifier(table)))
        return
    columns = [column for (column,) in rows(server, _PRIMARY_KEY, [table])]
    if value(server, _IS_VALID, [name]):
        return  # of another move, or of one that was interrupted
    index = sql.Identifier(name)
    execute(server, sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(index))
    key = sql.SQL(", ").join(map(sql.Identifier, dict.fromkeys([*columns, "workspace_id"])))
    execute(
        server,
        sql.SQL("CREATE UNIQUE INDEX CONCURRENTLY {} ON {} ({})").format(
            index, sql.Identifier(table), key
        ),
    )
    statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY USING INDEX {}")
    with_lock(server, statement.format(sql.Identifier(table), index))


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
