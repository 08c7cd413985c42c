"""Answers keep what was computed from tables, and lose it with a document of these."""

from django.db import migrations, models

FORGET = """
CREATE OR REPLACE FUNCTION rag_forget_documents() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT gone.id FROM gone);
BEGIN
    UPDATE rag_message
    SET state = 'removed', content = '', passages = '[]', citations = '[]', verdict = '{}',
        memory = NULL, error = '', documents = '{}', reasoning = '', reasoning_ms = NULLTABLES
    WHERE documents && ids;
    WITH emptied AS (
        UPDATE rag_trace
        SET answer = '', error = '', documents = '{}', removed_at = now()
        WHERE documents && ids
        RETURNING id
    )
    UPDATE rag_span SET input = '', output = '', error = ''
    FROM emptied WHERE rag_span.trace_id = emptied.id;
    RETURN NULL;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("rag", "0006_summary_user")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="tables",
            field=models.JSONField(
                blank=True, help_text="What was computed, or what may be meant.", null=True
            ),
        ),
        migrations.RunSQL(
            FORGET.replace("TABLES", ", tables = NULL"), FORGET.replace("TABLES", "")
        ),
    ]
