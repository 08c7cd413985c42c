"""`ragsite_forms` takes time linear in the number of a text's words; its results are the same."""

from django.db import migrations

from documents.migrations._word_forms import FUNCTIONS


class Migration(migrations.Migration):
    dependencies = [("documents", "0025_staged_vectors")]

    operations = [migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop)]
