"""`manage.py migrate`: Django's, which makes the tables of a new database at once."""

from typing import Any

from django.core.management.commands import migrate
from django.core.management.sql import emit_post_migrate_signal
from django.db import connections

from ragsite.new_database import load_schema, migrations_in_schema, migrations_on_disk


class Command(migrate.Command):
    help = (
        "Apply the migrations that a database lacks; an empty one gets its tables at once."
        " Exit code: 0 done, 1 a migration failed, 2 the database cannot be used."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        special = ("app_label", "fake", "fake_initial", "plan", "check_unapplied", "prune")
        connection = connections[options["database"]]
        if any(options.get(name) for name in special) or not load_schema(connection):
            super().handle(*args, **options)
            return
        known = migrations_in_schema()
        if options["verbosity"]:
            self.stdout.write(f"Made the tables of {len(known)} migrations.")
        if migrations_on_disk() != known:
            super().handle(*args, **options)
            return
        verbosity, interactive = options["verbosity"], options["interactive"]
        emit_post_migrate_signal(verbosity, interactive, connection.alias, plan=[])
