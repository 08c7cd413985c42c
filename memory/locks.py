"""A lock on one user's facts: who changes them sees the history that the one before left."""

from django.db import connection

from memory.scopes import UserScope


def hold_facts(scope: UserScope) -> None:
    """Wait until nobody else changes this user's facts; held to the end of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))",
            [f"memory facts of {scope.user_id}", scope.workspace_id],
        )
