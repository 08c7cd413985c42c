"""Who chooses the model of a collection: the languages of its documents, or somebody."""

from django.db import migrations, models


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
    ]
