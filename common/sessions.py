"""Sessions in the database, with keys that the database can be asked for."""

from django.contrib.sessions.backends import db


class SessionStore(db.SessionStore):
    """Takes no key that Django would not have made.

    A cookie may hold anything, also NUL, which PostgreSQL refuses in a parameter: without this,
    such a cookie makes every page a server error.
    """

    def _validate_session_key(self, key: str) -> bool:
        is_long = super()._validate_session_key(key)  # type: ignore[misc]  # not in the stubs
        return bool(is_long) and key.isalnum()
