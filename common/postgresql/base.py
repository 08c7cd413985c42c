"""The database backend: Django's own, with a pool that knows at once when the server is away."""

from typing import ClassVar

from django.db.backends.base.base import NO_DB_ALIAS
from django.db.backends.postgresql import base

from common.postgresql.pool import Connection, Pool


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection is borrowed from the process's pool until Django closes it.

    `OPTIONS["pool"]` is the number of connections, 0 for one a thread. docs/decisions/0035 tells
    why it is not psycopg's pool.
    """

    _pools: ClassVar[dict[str, Pool]] = {}

    @property
    def pool(self) -> Pool | None:
        """The pool of this process and database."""
        size = self.settings_dict["OPTIONS"].get("pool")
        if not size or self.alias == NO_DB_ALIAS:
            return None
        if self.alias not in self._pools:
            # At worst two threads make one each, and both use the first.
            self._pools.setdefault(self.alias, Pool(self._connect, size=size))
        return self._pools[self.alias]

    def close_pool(self) -> None:
        """Close what nobody uses; the next one to ask begins anew."""
        if pool := self._pools.pop(self.alias, None):
            pool.close()

    def _connect(self) -> Connection:
        connection: Connection = self.Database.connect(
            **self.get_connection_params(), autocommit=True
        )
        self._configure_connection(connection)  # type: ignore[attr-defined]  # not in the stubs
        return connection
