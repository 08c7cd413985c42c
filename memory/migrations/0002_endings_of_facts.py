from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0001_contexts_and_facts"),
    ]

    operations = [
        migrations.AddField(
            model_name="context",
            name="outdated_at",
            field=models.DateTimeField(
                blank=True,
                help_text="When a fact that it states ended. It is not searched any more.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="extractionitem",
            name="last_keys",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                editable=False,
                help_text="Keys of the facts stated last, which the next message may withdraw.",
            ),
        ),
    ]
