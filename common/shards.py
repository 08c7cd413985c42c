"""Shards: further PostgreSQL servers, each with the rows of some workspaces (docs/decisions/0077).

Accounts, workspaces and embedding spaces are in the main database; every other table is on each
server and holds what its workspaces own. Django's alias `default` leads to the server of the
workspace that the current work is about, so that queries, statements by hand and transactions need
not know of shards. Begin with `on_shard` and `ShardRouter`.
"""

import logging
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.signals import post_delete, post_save, pre_delete

logger = logging.getLogger("ragsite.shards")

#: Name of the main database as a shard.
MAIN = ""
#: Alias of the main database for work on another shard.
CATALOG_ALIAS = "catalog"

#: Apps whose tables are only read and written in the main database.
_CATALOG_APPS = frozenset(
    {"accounts", "admin", "auth", "contenttypes", "model_servers", "sessions"}
)
#: Models of these apps that are on each shard after all: they are written with what they tell of.
_SHARDED_MODELS = frozenset({"accounts.change", "accounts.idempotencyrecord"})
#: Models of the main database that statements on a shard join: PostgreSQL keeps a copy of their
#: tables on each shard, by logical replication. Ordered by what refers to what.
COPIED_MODELS = (
    "accounts.user",
    "accounts.workspace",
    "accounts.membership",
    "accounts.apikey",
    "documents.embeddingspace",
)
#: Publication of these tables, and how the subscriptions of shards to it begin.
PUBLICATION = "ragsite_catalog"
#: How long a change of a copied table waits for the shards, so that the next request sees it there.
COPY_PATIENCE_SECONDS = 2.0
_COPY_PAUSE_SECONDS = 0.004


@dataclass(slots=True)
class _Choice:
    """The shard of a piece of work; `is_open` says whether it may still become another one."""

    shard: str
    is_alone: bool
    is_open: bool


_current: ContextVar[_Choice | None] = ContextVar("shard", default=None)


def current_shard() -> str:
    """Name of the shard that the current work is on; `MAIN` for the main database."""
    choice = _current.get()
    return MAIN if choice is None else choice.shard


@contextmanager
def on_shard(shard: str, *, is_alone: bool = False, is_open: bool = False) -> Iterator[None]:
    """Within the block, `default` is the database of `shard`; with `is_open`, of the one that
    `choose_shard` names from then on. An open transaction must be of the same shard. With
    `is_alone` nothing goes to the main database, for migrations and backups."""
    with resume_choice(_Choice(shard, is_alone=is_alone, is_open=is_open)):
        yield


def current_choice() -> _Choice | None:
    """What `resume_choice` goes on with later, or in another thread."""
    return _current.get()


@contextmanager
def resume_choice(choice: _Choice | None) -> Iterator[None]:
    """Within the block, work on the shard of the work that `current_choice` was called in."""
    before = _current.get()
    _current.set(choice)
    try:
        yield
    finally:
        # Not by its token: a stream may end in another context than it began in.
        _current.set(before)


def choose_shard(shard: str) -> None:
    """Go on with the rest of the current work on `shard`, if its choice is open."""
    choice = _current.get()
    if choice is not None and choice.is_open:
        choice.shard = shard


def all_shards() -> tuple[str, ...]:
    """Names of all shards; the main database first."""
    return (MAIN, *settings.DATABASE_SHARDS)


def other_shards() -> tuple[str, ...]:
    """Names of all but the current one."""
    here = current_shard()
    return tuple(shard for shard in all_shards() if shard != here)


def each_shard() -> Generator[str]:
    """Go through all shards that answer, each within `on_shard`. The main database must answer."""
    for shard in all_shards():
        with on_shard(shard):
            try:
                connections[DEFAULT_DB_ALIAS].ensure_connection()
            except OperationalError as error:
                if shard == MAIN:
                    raise
                logger.warning("shard %s does not answer: %s", shard, str(error).splitlines()[0])
                continue
            yield shard


def shard_for_new_workspace() -> str:
    """The shard with the fewest bytes among those that answer and are prepared; the main database
    without any."""
    sizes: dict[str, int] = {}
    for shard in all_shards() if settings.DATABASE_SHARDS else ():
        # A connection of its own: the workspace is made within a transaction.
        try:
            with connections[shard or CATALOG_ALIAS].cursor() as cursor:
                cursor.execute(
                    "SELECT pg_database_size(current_database()) WHERE %s = '' OR EXISTS ("
                    " SELECT FROM pg_subscription WHERE subname ^@ %s AND subenabled)",
                    [shard, PUBLICATION],
                )
                if row := cursor.fetchone():
                    sizes[shard] = row[0]
        except OperationalError as error:
            logger.warning("shard %s does not answer: %s", shard, str(error).splitlines()[0])
    return min(sizes, key=lambda shard: sizes[shard], default=MAIN)


def _catalog_alias() -> str:
    choice = _current.get()
    is_elsewhere = choice is not None and choice.shard != MAIN and not choice.is_alone
    return CATALOG_ALIAS if is_elsewhere else DEFAULT_DB_ALIAS


def catalog_connection() -> BaseDatabaseWrapper:
    """The connection to the main database, from wherever the current work is."""
    return connections[_catalog_alias()]


def _is_of_accounts(model: type[Model]) -> bool:
    label = model._meta.label_lower
    return model._meta.app_label in _CATALOG_APPS and label not in _SHARDED_MODELS


def is_in_catalog(model: type[Model]) -> bool:
    """Whether rows of `model` are written in the main database; those of accounts are also read
    there."""
    return model._meta.label_lower in COPIED_MODELS or _is_of_accounts(model)


R = TypeVar("R", bound=Model)


def find_on_shards(rows: QuerySet[R]) -> R | None:
    """The first row, of whichever shard has one; the rest of the work goes on there."""
    with closing(each_shard()) as shards:
        found = next(((shard, row) for shard in shards if (row := rows.all().first())), None)
    if found is None:
        return None
    choose_shard(found[0])
    return found[1]


class ShardRouter:
    """Models of the main database go there from every shard, all others to the current shard."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        if not current_shard():
            return None if settings.DATABASE_REPLICAS else DEFAULT_DB_ALIAS
        # Embedding spaces are read with what uses them, and no right depends on them.
        return self.db_for_write(model) if _is_of_accounts(model) else DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return _catalog_alias() if is_in_catalog(model) else DEFAULT_DB_ALIAS

    def allow_relation(self, first: Any, second: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return None if db == DEFAULT_DB_ALIAS else False  # within `on_shard`, that is the shard


# What was changed in the main database waits until each shard that listens has it.
_CAUGHT_UP = """
    SELECT coalesce(bool_and(confirmed_flush_lsn >= %s::pg_lsn), true) FROM pg_replication_slots
    WHERE slot_name ^@ %s AND active AND database = current_database()
"""


def wait_for_copies() -> bool:
    """Wait until all shards that answer have what is committed in the main database; returns
    whether they have it within `COPY_PATIENCE_SECONDS`."""
    deadline = monotonic() + COPY_PATIENCE_SECONDS
    with catalog_connection().cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn()::text")
        (position,) = cursor.fetchone()
        while True:
            cursor.execute(_CAUGHT_UP, [position, PUBLICATION])
            (is_done,) = cursor.fetchone()
            if is_done or monotonic() > deadline:
                return bool(is_done)
            sleep(_COPY_PAUSE_SECONDS)


def _wait_after_change(sender: type[Model], using: str, **kwargs: Any) -> None:
    if sender._meta.label_lower in COPIED_MODELS and (
        using == CATALOG_ALIAS or not current_shard()
    ):
        transaction.on_commit(wait_for_copies, using=using)


def _delete_on_shards(sender: type[Model], instance: Any, using: str, **kwargs: Any) -> None:
    """Rows on shards that refer to a user or an embedding space go with it, or forget it: the
    replication of a deletion looks at no foreign key. Of a workspace all rows are on one shard."""
    label = sender._meta.label_lower
    if using in settings.DATABASE_SHARDS:
        return  # the deletion below
    if label in ("accounts.user", "accounts.apikey", "documents.embeddingspace"):
        shards: tuple[str, ...] = settings.DATABASE_SHARDS
    elif label == "accounts.workspace":
        shards = (instance.shard,) if instance.shard else ()
    else:
        return
    for shard in shards:
        try:
            sender._base_manager.using(shard).filter(pk=instance.pk).delete()
        except OperationalError:
            if label != "accounts.apikey":
                raise
            # Rights can be taken away while a shard is down. The history goes on naming the key.


def connect_signals() -> None:
    """Called once the apps are ready, where there are shards."""
    for signal, receiver in (
        (post_save, _wait_after_change),
        (post_delete, _wait_after_change),
        (pre_delete, _delete_on_shards),
    ):
        signal.connect(receiver, dispatch_uid=f"shards.{receiver.__name__}.{id(signal)}")
