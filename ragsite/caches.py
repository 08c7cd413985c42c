"""Django's cache backend for Valkey, with one client a process."""

from typing import Any

from django.core.cache.backends import redis


class _Client(redis.RedisCacheClient):
    _shared: Any = None

    def get_client(self, key: Any = None, *, write: bool = False) -> Any:
        """The shared client; Django would make one for each command, which takes longer than the
        command.
        """
        self._shared = self._shared or super().get_client(write=True)
        return self._shared


class RedisCache(redis.RedisCache):
    """For one server; threads share its client and take connections from its pool."""

    def __init__(self, server: Any, params: dict[str, Any]) -> None:
        super().__init__(server, params)
        self._class = _Client
