"""Postings of chunks that are in no segment yet, so that a search looks their words up.

The release before goes on reading such chunks themselves, and its index moves them into segments:
triggers keep the new table with them.
"""

from typing import Any

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import common.fields
from common.migration_operations import InOneTransaction
from documents import lexical_index

#: As the owner of the tables: whoever changes chunks may see a part of them only.
FUNCTION = "LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT"

POSTINGS = """
    INSERT INTO documents_pendingposting
        (workspace_id, collection_id, lexeme, index_id, language, is_current, entries)
    SELECT workspace_id, collection_id, word.lexeme COLLATE "C", min(index_id), language, is_current,
           array_agg(listed | (word.frequency << 16))
    -- OFFSET 0: or each vector would be read once a word
    FROM (SELECT workspace_id, collection_id, language, is_current, index_id, search_vector,
                 (index_id << 24) | least(length(search_vector), 65535) AS listed
          FROM {chunks} OFFSET 0) AS chunk,
         LATERAL (SELECT '' AS lexeme, 1::bigint AS frequency
                  UNION ALL
                  -- a word of the context counts twice: as a word, and as a heading (weight A)
                  SELECT lexeme,
                         least(cardinality(positions) + cardinality(array_positions(weights, 'A')),
                               255)
                  FROM unnest(search_vector)) AS word
    GROUP BY workspace_id, collection_id, language, is_current, word.lexeme COLLATE "C";
"""

CHANGES = f"""
CREATE OR REPLACE FUNCTION documents_index_new_chunks() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM new_chunk;
    {POSTINGS.format(chunks="new_chunk")}
    RETURN NULL;
END $$;

-- The words of a row are only known after it is written.
CREATE FUNCTION documents_index_changed_words() RETURNS trigger {FUNCTION} AS $$
BEGIN
    {POSTINGS.format(chunks="(SELECT NEW.*) AS changed")}
    RETURN NULL;
END $$;
CREATE TRIGGER chunk_index_changed_words AFTER UPDATE ON documents_chunk FOR EACH ROW
    WHEN (OLD.index_id <> NEW.index_id) EXECUTE FUNCTION documents_index_changed_words();

-- Of a statement's chunks some may be moved into a segment and some stay, where it had very many.
CREATE FUNCTION documents_drop_pending_postings() RETURNS trigger {FUNCTION}
SET enable_seqscan = off AS $$
BEGIN
    WITH moved AS (
        SELECT collection_id, max(index_id) AS last FROM old_pending GROUP BY collection_id
    ), left_over AS MATERIALIZED (
        SELECT index_id FROM documents_pendingchunk JOIN moved USING (collection_id)
    )
    DELETE FROM documents_pendingposting AS posting USING moved
    WHERE posting.collection_id = moved.collection_id AND posting.index_id <= moved.last
      AND NOT EXISTS (SELECT FROM unnest(posting.entries) AS entry
                      WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS TRUE);
    WITH moved AS (
        SELECT collection_id, max(index_id) AS last FROM old_pending GROUP BY collection_id
    ), left_over AS MATERIALIZED (
        SELECT index_id FROM documents_pendingchunk JOIN moved USING (collection_id)
    )
    UPDATE documents_pendingposting AS posting
    SET entries = ARRAY(SELECT entry FROM unnest(posting.entries) AS entry
                        WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS TRUE)
    FROM moved
    WHERE posting.collection_id = moved.collection_id AND posting.index_id <= moved.last
      AND EXISTS (SELECT FROM unnest(posting.entries) AS entry
                  WHERE (entry >> 24 IN (SELECT index_id FROM left_over)) IS NOT TRUE);
    RETURN NULL;
END $$;
CREATE TRIGGER pendingchunk_drop_postings AFTER DELETE ON documents_pendingchunk
    REFERENCING OLD TABLE AS old_pending
    FOR EACH STATEMENT EXECUTE FUNCTION documents_drop_pending_postings();

-- What is pending now. The trigger above has waited for those who were writing, and they wait now.
WITH never_indexed AS (
    DELETE FROM documents_pendingchunk AS pending
    WHERE NOT EXISTS (SELECT FROM documents_chunk AS chunk
                      WHERE chunk.index_id = pending.index_id)
    RETURNING collection_id, index_id
)
DELETE FROM documents_removedchunk AS removed USING never_indexed
WHERE removed.collection_id = never_indexed.collection_id
  AND removed.index_id = never_indexed.index_id;
{POSTINGS.format(chunks="documents_pendingchunk JOIN documents_chunk AS chunk USING (workspace_id, collection_id, index_id)")}
"""  # noqa: S608 (constants)

FORMER = f"""
DROP TRIGGER pendingchunk_drop_postings ON documents_pendingchunk;
DROP TRIGGER chunk_index_changed_words ON documents_chunk;
DROP FUNCTION documents_drop_pending_postings();
DROP FUNCTION documents_index_changed_words();
CREATE OR REPLACE FUNCTION documents_index_new_chunks() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM new_chunk;
    RETURN NULL;
END $$;
"""  # noqa: S608 (constants)


def index_words(apps: Any, schema_editor: Any) -> None:
    """Few are then pending while writers wait."""
    lexical_index.index_all_pending()


def table_exists(cursor: Any) -> bool:
    cursor.execute("SELECT to_regclass('documents_pendingposting') IS NOT NULL")
    return bool(cursor.fetchone()[0])


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0004_change"), ("documents", "0021_chunk_tokens")]

    operations = [
        migrations.RunPython(index_words, migrations.RunPython.noop),
        InOneTransaction(
            [
                migrations.CreateModel(
                    name="PendingPosting",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "collection_id",
                                "lexeme",
                                "index_id",
                                "workspace_id",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("collection_id", models.BigIntegerField()),
                        ("lexeme", common.fields.LexemeField()),
                        ("index_id", models.BigIntegerField()),
                        ("language", common.fields.RegConfigField(max_length=63)),
                        ("is_current", models.BooleanField()),
                        (
                            "entries",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), size=None
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="accounts.workspace",
                            ),
                        ),
                    ],
                ),
                migrations.RunSQL(CHANGES, FORMER),
            ],
            is_done=table_exists,
        ),
    ]
