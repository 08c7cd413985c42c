"""Chunks that the transaction which writes them moves into a segment itself, by
`lexical_index.indexed_in_transaction`, are not made pending."""

from django.db import migrations

TRIGGER = """
DROP TRIGGER chunk_index_new ON documents_chunk;
CREATE TRIGGER chunk_index_new AFTER INSERT ON documents_chunk
    REFERENCING NEW TABLE AS new_chunk FOR EACH STATEMENT
    {condition} EXECUTE FUNCTION documents_index_new_chunks();
"""
UNLESS_INDEXED_AT_ONCE = (
    "WHEN (current_setting('ragsite.index_at_once', true) IS DISTINCT FROM 'on')"
)


class Migration(migrations.Migration):
    dependencies = [("documents", "0022_pending_postings")]

    operations = [
        migrations.RunSQL(
            TRIGGER.format(condition=UNLESS_INDEXED_AT_ONCE), TRIGGER.format(condition="")
        )
    ]
