"""A run keeps which passages its answer may cite, by number."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rag", "0001_conversations_pipelines_traces")]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="sources",
            field=models.JSONField(
                blank=True,
                default=list,
                editable=False,
                help_text="Of each passage that was found: its number, document and chunk. No text.",
            ),
        ),
    ]
