"""How a collection is searched: its reranker and weights learnt from judgements."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("documents", "0005_metadata_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="rerank_instruction",
            field=models.TextField(
                blank=True,
                help_text="What the reranker is to look for. Empty: what it was trained on.",
            ),
        ),
        migrations.AddField(
            model_name="collection",
            name="reranker",
            field=models.CharField(
                blank=True,
                help_text="An entry of RERANKERS that reads the best hits again. Empty: the site's own.",
                max_length=63,
            ),
        ),
        migrations.AddField(
            model_name="collection",
            name="tuning",
            field=models.JSONField(
                blank=True,
                editable=False,
                help_text="Weights learnt from judgements, with what they gained. Empty: the defaults.",
                null=True,
            ),
        ),
    ]
