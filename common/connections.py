"""Database connections, of which there are fewer than threads."""

from django.db import connection


def give_back() -> None:
    """Let others have this thread's connection, before a wait for something else: the next query
    takes one again.

    Within a transaction, such as a test's, it is kept: to give it back would undo the transaction.
    """
    if not connection.in_atomic_block:
        connection.close()
