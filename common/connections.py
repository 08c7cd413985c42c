"""Database connections, of which there are fewer than threads."""

from django.db import connection, connections


def give_back() -> None:
    """Let others have this thread's connections, before a wait for something else: the next query
    takes one again.

    Within a transaction, such as a test's, they are kept: to give one back would undo it.
    """
    if not connection.in_atomic_block:
        for each in connections.all(initialized_only=True):
            each.close()
