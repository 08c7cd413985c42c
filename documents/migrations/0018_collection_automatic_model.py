"""Who chooses the model of a collection: the languages of its documents, or somebody."""

from django.db import migrations, models

# The last finished move to its present space was asked for: by a click, by `manage.py reembed`, or
# in the admin. Whoever asked for one of everything chose for all collections of that time.
_CHOSEN_BY_HAND = """
    UPDATE documents_collection AS collection SET automatic_model = false
    FROM documents_reembedding AS move
    WHERE move.target_id = collection.space_id
      AND (move.collection_id = collection.id
           OR move.collection_id IS NULL AND move.started_at >= collection.created_at)
"""


class Migration(migrations.Migration):
    dependencies = [("documents", "0017_scanned_page")]

    operations = [
        migrations.AddField(
            model_name="collection",
            name="automatic_model",
            field=models.BooleanField(
                db_default=True,
                default=True,
                help_text="The languages of its documents choose the model. Off where somebody chose one, or stores vectors of it: that one stays.",
                verbose_name="model by language",
            ),
        ),
        migrations.RunSQL(_CHOSEN_BY_HAND, migrations.RunSQL.noop, elidable=True),
    ]
