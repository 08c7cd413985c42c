"""Answers keep what the model thought, and lose it with a document that it may quote."""

from django.db import migrations, models

FORGET = """
CREATE OR REPLACE FUNCTION rag_forget_documents() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    ids bigint[] := ARRAY(SELECT gone.id FROM gone);
BEGIN
    UPDATE rag_message
    SET state = 'removed', content = '', passages = '[]', citations = '[]', verdict = '{}',
        memory = NULL, error = '', documents = '{}'REASONING
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
    dependencies = [("rag", "0004_summary")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="reasoning",
            field=models.TextField(
                blank=True,
                db_default="",
                default="",
                help_text="What the model thought: no part of the answer.",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="reasoning_ms",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.RunSQL(
            FORGET.replace("REASONING", ", reasoning = '', reasoning_ms = NULL"),
            FORGET.replace("REASONING", ""),
        ),
    ]
