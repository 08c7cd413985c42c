"""How a collection's searches join words and meaning."""

from django.db import migrations, models


class Migration(migrations.Migration):
    #: The release before would add collections without it.
    needs_stopped_site = True
    dependencies = [
        ("documents", "0015_index_chunks"),
    ]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="fusion",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="How searches join words and meaning, such as {“method”: “rrf”, “rrf_k”: 60}. Empty: as the site does.",
            ),
        ),
    ]
