"""Tokens of questions to tables are counted by themselves."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("model_servers", "0003_purpose")]

    operations = [
        migrations.AlterField(
            "modelusage",
            "purpose",
            models.CharField(
                choices=[
                    ("answer", "Answers"),
                    ("chat", "Chats without documents"),
                    ("pipeline", "Pipelines"),
                    ("summary", "Summaries"),
                    ("graph", "Graph"),
                    ("memory", "Memory"),
                    ("tables", "Questions to tables"),
                ],
                max_length=10,
            ),
        ),
    ]
