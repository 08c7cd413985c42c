"""PostgreSQL and Valkey from their wheels, on private unix sockets under one directory.

Importing this package is cheap and starts nothing; settings take the URLs from it.
"""

from ragsite.embedded.layout import broker_url, database_url, libpq_url, redis_url, socket_dir

__all__ = ["broker_url", "database_url", "libpq_url", "redis_url", "socket_dir"]
