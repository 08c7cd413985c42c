"""Sessions in the database, with keys that the database can be asked for."""

from typing import Any

from django.contrib.sessions.backends import db

from common.fence import unfenced


class SessionStore(db.SessionStore):
    """Takes no key that Django would not have made.

    A cookie may hold anything, also NUL, which PostgreSQL refuses in a parameter: without this,
    such a cookie makes every page a server error.
    """

    def _validate_session_key(self, key: str) -> bool:
        is_long = super()._validate_session_key(key)  # type: ignore[misc]  # not in the stubs
        return bool(is_long) and key.isalnum()

    def _get_session_from_db(self) -> Any:
        # Before anybody knows who asks, which the fence would look up by this very session.
        with unfenced():
            return super()._get_session_from_db()  # type: ignore[misc]  # not in the stubs
