"""Fail where a migration since the first release could lock a large table or break the processes of
the release before.

    .venv/bin/python -m scripts.check_migrations

Two sets of rules. django-migration-linter's say what the release before could not work with: a
column without a database default, a dropped column or table, an index that is not built
concurrently. A migration that means it says `needs_stopped_site = True`: `manage.py upgrade`
applies it after the site was stopped. Ours read the SQL for statements on tables of earlier
migrations that write or read all rows under a lock: those must be made in steps, with
`common.migration_operations`, whatever the migration says.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

#: The last migration of each app in release 0.1. A site may be of any later state: what comes after
#: these is checked.
RELEASE_0_1 = {
    "accounts": "0004_change",
    "dashboard": "0001_initial",
    "documents": "0013_chunk_edits",
    "graph": "0001_nodes_and_edges",
    "memory": "0001_contexts_and_facts",
    "rag": "0003_forget_as_the_owner",
    "search": "0004_forget_as_the_owner",
}

_TABLE = r'(?:ALTER TABLE|ALTER TABLE ONLY) (?:IF EXISTS )?"?(?P<table>\w+)"? '
#: Statements that look at or write all rows of a table while nobody else may write, or read, it.
LOCKING = {
    "a column whose default differs from row to row writes the table anew": (
        _TABLE + r"ADD COLUMN .*DEFAULT \(?(?:nextval|now|random|gen_random_uuid|clock_timestamp)"
    ),
    "a generated column writes the table anew": _TABLE + r"ADD COLUMN .*GENERATED ALWAYS .*STORED",
    "another type writes the table anew": _TABLE + r"ALTER COLUMN \S+ (?:SET DATA )?TYPE",
    "NOT NULL reads all rows; use require_value": _TABLE + r"ALTER COLUMN \S+ SET NOT NULL",
    "a constraint reads all rows; add it NOT VALID, validate it in a later migration": (
        _TABLE + r"ADD CONSTRAINT (?!.*(?:NOT VALID|USING INDEX))"
    ),
    "an index without CONCURRENTLY keeps writers waiting": (
        r'CREATE (?:UNIQUE )?INDEX (?!CONCURRENTLY).* ON "?(?P<table>\w+)"?'
    ),
    "all rows in one statement; use fill_in_steps": r'UPDATE "?(?P<table>\w+)"? (?:AS \w+ )?SET',
}


def locking_statements(sql: str) -> Iterator[str]:
    """What of LOCKING the SQL of a migration does to tables that it does not make itself."""
    made = set(re.findall(r'CREATE TABLE "?(\w+)"?', sql))
    # The bodies of functions run when their triggers do, a statement at a time.
    plain = re.sub(r"\$\$.*?\$\$|^\s*--.*?$", "", sql, flags=re.DOTALL | re.MULTILINE)
    for statement in plain.split(";"):
        flat = " ".join(statement.split())
        for problem, pattern in LOCKING.items():
            found = re.search(pattern, flat, re.IGNORECASE)
            if found and found["table"] not in made:
                yield f"{found['table']}: {problem}"


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()
    from django.apps import apps
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader
    from django_migration_linter import MigrationLinter

    loader = MigrationLoader(connection, replace_migrations=False)
    root = Path(__file__).resolve().parent.parent
    ours = [app.label for app in apps.get_app_configs() if Path(app.path).parent == root]
    newer = {
        key: migration
        for key, migration in loader.disk_migrations.items()
        if key[0] in ours and key[1] > RELEASE_0_1.get(key[0], "")
    }
    meant = [name for (_, name), each in newer.items() if _needs_stopped_site(each)]
    older = [
        name for app, name in loader.disk_migrations if app in ours and (app, name) not in newer
    ]
    linter = MigrationLinter(
        include_apps=ours,
        ignore_name=[*older, *meant],
        no_cache=True,
        quiet=["ok", "ignore", "warning"],
        # Our own rule knows which tables are new.
        exclude_migration_tests=["CREATE_INDEX", "CREATE_INDEX_EXCLUSIVE"],
        warnings_as_errors_tests=["DROP_INDEX"],
    )
    with redirect_stdout(StringIO()) as said:  # which is also of what is not looked for
        linter.lint_all_migrations()
    if linter.has_errors:
        print(said.getvalue())
    problems = [
        f"{app}.{name}: {problem}"
        for app, name in sorted(newer)
        for problem in locking_statements(_sql(loader, app, name))
    ]
    for problem in problems:
        print(problem)
    print(
        f"{len(newer)} migrations since release 0.1 looked at, {len(meant)} of them for a stopped"
        f" site; {len(older)} are of 0.1, before which there is no site"
    )
    return int(linter.has_errors or bool(problems))


def _needs_stopped_site(migration: Any) -> bool:
    return bool(getattr(migration, "needs_stopped_site", False))


def _sql(loader: Any, app: str, name: str) -> str:
    plan = [(loader.graph.nodes[app, name], False)]
    return ";".join(loader.collect_sql(plan))


if __name__ == "__main__":
    sys.exit(main())
