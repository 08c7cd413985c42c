"""Whether a collection has vectors."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("documents", "0026_word_forms_in_linear_time")]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="vectors",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="Whether its passages are embedded and found by meaning, or by words"
                " only. Vectors that are there are kept.",
            ),
        )
    ]
