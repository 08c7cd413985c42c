"""Index the chunks that were there before the lexical index.

In transactions of its own, twenty thousand chunks each: interrupted, it goes on where it was. Until
it is through, and after going back and forth again, those chunks are pending, which is as right and
slower.
"""

from typing import Any

from django.db import migrations

from documents import lexical_index


def index_chunks(apps: Any, schema_editor: Any) -> None:
    lexical_index.index_all_pending()


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("documents", "0014_lexical_index")]

    operations = [migrations.RunPython(index_chunks, migrations.RunPython.noop)]
