"""The tables of a new database at once, from `schema.sql`, in place of each migration in turn.

Begin with `load_schema`. `python -m scripts.schema` writes the file, and tests/test_schema.py shows
that it gives what the migrations give.
"""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from django.apps import apps
from django.db import transaction

SCHEMA = Path(__file__).with_name("schema.sql")
#: Any number: of two processes that find the database empty one loads.
_LOAD_LOCK = 7_245_553
_RECORD = re.compile(r"^INSERT INTO django_migrations .*VALUES \(\d+, '(\w+)', '(\w+)'", re.M)
#: Whether the schema has nothing in it but what extensions brought.
_IS_EMPTY = """
    SELECT NOT EXISTS (
        SELECT FROM pg_class AS c WHERE c.relnamespace = current_schema()::regnamespace
        AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass
                        AND objid = c.oid AND deptype = 'e'))
"""


def migrations_on_disk() -> set[tuple[str, str]]:
    """App and name of every migration, without importing them."""
    return {
        (app.label, module.name)
        for app in apps.get_app_configs()
        for module in iter_modules([str(Path(app.path) / "migrations")])
        if module.name[0] not in "_~"
    }


def migrations_in_schema() -> set[tuple[str, str]]:
    """App and name of the migrations that `schema.sql` stands for."""
    return set(_RECORD.findall(SCHEMA.read_text()))


def load_schema(connection: Any) -> bool:
    """Make the tables of an empty database, with the rows of its migrations; whether it did.

    Migrations newer than the file are left to `migrate`. One transaction: all or nothing.
    """
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOAD_LOCK])
        cursor.execute(_IS_EMPTY)
        if cursor.fetchone() != (True,) or not migrations_in_schema() <= migrations_on_disk():
            return False
        cursor.execute(SCHEMA.read_text())
        # Of all rows that migrations write, the name of the first space alone follows settings.
        migration = import_module("documents.migrations.0020_bundled_model")
        with connection.schema_editor(atomic=False) as editor:
            migration.adopt_bundled_model(apps, editor)
    return True
