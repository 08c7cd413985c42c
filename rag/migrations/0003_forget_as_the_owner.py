"""What is deleted is forgotten everywhere, whatever the fence of the request that deletes it shows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("rag", "0002_trace_sources")]

    operations = [
        migrations.RunSQL(
            "ALTER FUNCTION rag_forget_documents() SECURITY DEFINER SET search_path FROM CURRENT",
            "ALTER FUNCTION rag_forget_documents() SECURITY INVOKER RESET search_path",
        ),
    ]
