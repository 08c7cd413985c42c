"""What is deleted is forgotten everywhere, whatever the fence of the request that deletes it shows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("search", "0003_evaluation_and_refusals")]

    operations = [
        migrations.RunSQL(
            "ALTER FUNCTION search_forget_documents() SECURITY DEFINER SET search_path FROM CURRENT",
            "ALTER FUNCTION search_forget_documents() SECURITY INVOKER RESET search_path",
        ),
        migrations.RunSQL(
            "ALTER FUNCTION search_forget_collections() SECURITY DEFINER SET search_path FROM CURRENT",
            "ALTER FUNCTION search_forget_collections() SECURITY INVOKER RESET search_path",
        ),
    ]
