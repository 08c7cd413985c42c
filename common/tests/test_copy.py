"""Bulk load by COPY."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction

from common.sql import copy_rows

COLUMNS = [("name", "varchar")]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_cut_in_the_middle_is_djangos_error() -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    other = connection.copy()

    def rows() -> Iterator[tuple[str]]:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        for number in range(100_000):
            yield (f"group-{number}",)

    try:
        with pytest.raises(OperationalError), transaction.atomic():
            copy_rows(Group._meta.db_table, COLUMNS, rows())
    finally:
        other.close()
        connection.close()
    assert not Group.objects.exists()
