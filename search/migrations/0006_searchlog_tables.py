"""The log says which tables an answer was computed from."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("search", "0005_answer_confidence")]

    operations = [
        migrations.AddField(
            model_name="searchlog",
            name="tables",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                blank=True,
                help_text="Ids of those that the answer was computed from. Empty: quoted.",
                null=True,
                size=None,
            ),
        ),
    ]
