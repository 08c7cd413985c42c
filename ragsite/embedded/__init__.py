"""PostgreSQL and Valkey from their wheels, on private unix sockets under one directory.

Importing this package is cheap and starts nothing; settings take the URLs from it.
"""

from ragsite.embedded.control import answering, start, status, stop
from ragsite.embedded.service import (
    ServiceError,
    ServiceStatus,
    broker_url,
    database_url,
    libpq_url,
    redis_url,
    socket_dir,
)

__all__ = [
    "ServiceError",
    "ServiceStatus",
    "answering",
    "broker_url",
    "database_url",
    "libpq_url",
    "redis_url",
    "socket_dir",
    "start",
    "status",
    "stop",
]
