"""`manage.py distribute`: shard the tables by workspace, with Citus."""

from argparse import ArgumentParser
from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection, transaction

from ragsite.sharding import SHARD_COLUMN, ShardingLayout


class Command(BaseCommand):
    help = (
        "Spread the tables over the servers of a Citus cluster, by workspace. --check and --sql"
        " change nothing and need no Citus. What was done before is not done again. Exit code: 0"
        " done, or with --check that it could be; 1 a table is in the way, 2 there is no Citus."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        only = parser.add_mutually_exclusive_group()
        only.add_argument("--check", action="store_true", help="only say whether it could be done")
        only.add_argument("--sql", action="store_true", help="only print the statements")

    def handle(self, *args: Any, **options: Any) -> None:
        layout = ShardingLayout(connection)
        if problems := layout.problems():
            raise CommandError("\n".join(["Tables cannot be spread:", *problems]), returncode=1)
        if options["check"]:
            self.stdout.write(f"{len(layout.spread)} tables can be spread by {SHARD_COLUMN}.")
            return
        statements = [*chain.from_iterable(layout.plan())]
        if options["sql"]:
            self.stdout.write("".join(f"{statement};\n" for statement in statements))
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT FROM pg_extension WHERE extname = 'citus'")
            has_citus = bool(cursor.rowcount)
        if not has_citus:
            raise CommandError(
                "This database has no Citus. See docs/how-to/shard-by-workspace.md; --sql prints"
                " what would be done.",
                returncode=2,
            )
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
            for statement in statements:
                cursor.execute(statement)
        self.stdout.write(f"{len(layout.spread)} tables are spread by {SHARD_COLUMN}.")
