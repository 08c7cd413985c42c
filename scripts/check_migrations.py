"""Fail where a new migration could lock a large table or break the processes of the release before.

    .venv/bin/python -m scripts.check_migrations

The rules are django-migration-linter's: a column without a database default, a dropped column or
table, an index that is not built concurrently. A migration whose findings are meant is
named below with the reason.
"""

import os
import sys
from pathlib import Path

#: The last migration of each app that was made before this check; of `rag` also one whose indexes
#: are of its own new table.
UNCHECKED = {
    "accounts": "0004_change",
    "dashboard": "0001_initial",
    "documents": "0016_collection_fusion",
    "graph": "0001_nodes_and_edges",
    "memory": "0001_contexts_and_facts",
    "rag": "0004_summary",
    "search": "0004_forget_as_the_owner",
}


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    import django

    django.setup()
    from django.apps import apps
    from django.db.migrations.loader import MigrationLoader
    from django_migration_linter import MigrationLinter

    made = MigrationLoader(None).disk_migrations
    root = Path(__file__).resolve().parent.parent
    ours = [app.label for app in apps.get_app_configs() if Path(app.path).parent == root]
    older = [name for app, name in made if app in UNCHECKED and name <= UNCHECKED[app]]
    linter = MigrationLinter(
        include_apps=ours,
        ignore_name=older,
        no_cache=True,
        quiet=["ok", "ignore"],
        warnings_as_errors_tests=["CREATE_INDEX", "CREATE_INDEX_EXCLUSIVE", "DROP_INDEX"],
    )
    linter.lint_all_migrations()
    linter.print_summary()
    return int(linter.has_errors)


if __name__ == "__main__":
    sys.exit(main())
