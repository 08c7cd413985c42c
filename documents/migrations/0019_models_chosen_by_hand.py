"""Collections whose model somebody chose before languages did."""

from typing import Any

from django.db import migrations

from common.migration_operations import fill_in_steps

# The last finished move to its present space was asked for: by a click, by `manage.py reembed`, or
# in the admin. Whoever asked for one of everything chose for all collections of that time.
_CHOSEN_BY_HAND = """
    automatic_model AND EXISTS (
        SELECT FROM documents_reembedding AS move
        WHERE move.target_id = documents_collection.space_id
          AND (move.collection_id = documents_collection.id
               OR move.collection_id IS NULL AND move.started_at >= documents_collection.created_at)
    )
"""


def note_choices(apps: Any, schema_editor: Any) -> None:
    fill_in_steps(
        schema_editor.connection,
        table="documents_collection",
        assignment="automatic_model = false",
        missing=_CHOSEN_BY_HAND,
    )


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("documents", "0018_collection_automatic_model")]

    operations = [migrations.RunPython(note_choices, migrations.RunPython.noop, elidable=True)]
