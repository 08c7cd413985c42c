"""BM25 from posting lists in rows: their tables, and the triggers that keep them with the chunks.

Existing chunks are pending, which makes them found at once; the next migration indexes them.
"""

from typing import Any

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import common.fields
import documents.models.chunk

SEQUENCE = "CREATE SEQUENCE documents_chunk_index_id"

#: As the owner of the tables: whoever changes chunks may see a part of them only.
FUNCTION = "LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT"

TRIGGERS = f"""
CREATE FUNCTION documents_index_new_chunks() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    SELECT workspace_id, collection_id, index_id FROM new_chunk;
    RETURN NULL;
END $$;
CREATE TRIGGER chunk_index_new AFTER INSERT ON documents_chunk
    REFERENCING NEW TABLE AS new_chunk
    FOR EACH STATEMENT EXECUTE FUNCTION documents_index_new_chunks();

CREATE FUNCTION documents_index_changed_chunk() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_removedchunk
        (workspace_id, collection_id, index_id, language, is_current, length)
    VALUES (OLD.workspace_id, OLD.collection_id, OLD.index_id, OLD.language, OLD.is_current,
            least(length(OLD.search_vector), 65535));
    NEW.index_id := nextval('documents_chunk_index_id');
    INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
    VALUES (NEW.workspace_id, NEW.collection_id, NEW.index_id);
    RETURN NEW;
END $$;
CREATE TRIGGER chunk_index_changed
    BEFORE UPDATE OF text, context, language, is_current, collection_id, workspace_id
    ON documents_chunk FOR EACH ROW
    WHEN ((OLD.text, OLD.context, OLD.language, OLD.is_current, OLD.collection_id, OLD.workspace_id)
          IS DISTINCT FROM
          (NEW.text, NEW.context, NEW.language, NEW.is_current, NEW.collection_id, NEW.workspace_id))
    EXECUTE FUNCTION documents_index_changed_chunk();

CREATE FUNCTION documents_index_removed_chunks() RETURNS trigger {FUNCTION} AS $$
BEGIN
    INSERT INTO documents_removedchunk
        (workspace_id, collection_id, index_id, language, is_current, length)
    SELECT workspace_id, collection_id, index_id, language, is_current,
           least(length(search_vector), 65535)
    FROM old_chunk;
    RETURN NULL;
END $$;
CREATE TRIGGER chunk_index_removed AFTER DELETE ON documents_chunk
    REFERENCING OLD TABLE AS old_chunk
    FOR EACH STATEMENT EXECUTE FUNCTION documents_index_removed_chunks();

CREATE FUNCTION documents_drop_postings() RETURNS trigger {FUNCTION} AS $$
BEGIN
    DELETE FROM documents_posting AS posting USING old_segment
    WHERE posting.segment_id = old_segment.id;
    RETURN NULL;
END $$;
CREATE TRIGGER lexicalsegment_drop_postings AFTER DELETE ON documents_lexicalsegment
    REFERENCING OLD TABLE AS old_segment
    FOR EACH STATEMENT EXECUTE FUNCTION documents_drop_postings();

CREATE FUNCTION documents_drop_index() RETURNS trigger {FUNCTION} AS $$
BEGIN
    DELETE FROM documents_pendingchunk WHERE collection_id = OLD.id;
    DELETE FROM documents_removedchunk WHERE collection_id = OLD.id;
    DELETE FROM documents_lexeme WHERE collection_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER collection_drop_index AFTER DELETE ON documents_collection
    FOR EACH ROW EXECUTE FUNCTION documents_drop_index();

-- pglz finds nothing in them
ALTER TABLE documents_posting ALTER COLUMN data SET STORAGE EXTERNAL;

INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
SELECT workspace_id, collection_id, index_id FROM documents_chunk;
"""  # noqa: S608 (constants)

NO_TRIGGERS = """
DROP TRIGGER collection_drop_index ON documents_collection;
DROP TRIGGER lexicalsegment_drop_postings ON documents_lexicalsegment;
DROP TRIGGER chunk_index_removed ON documents_chunk;
DROP TRIGGER chunk_index_changed ON documents_chunk;
DROP TRIGGER chunk_index_new ON documents_chunk;
DROP FUNCTION documents_drop_index();
DROP FUNCTION documents_drop_postings();
DROP FUNCTION documents_index_removed_chunks();
DROP FUNCTION documents_index_changed_chunk();
DROP FUNCTION documents_index_new_chunks();
"""


def count_again(apps: Any, schema_editor: Any) -> None:
    """Going back, the former statistics are counted anew."""
    apps.get_model("documents", "Collection").objects.update(statistics_stale=True)


def _workspace() -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to="accounts.workspace",
    )


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial"), ("documents", "0013_chunk_edits")]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, count_again),
        migrations.RunSQL(SEQUENCE, "DROP SEQUENCE documents_chunk_index_id"),
        migrations.CreateModel(
            name="LexicalSegment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("language", common.fields.RegConfigField(max_length=63)),
                ("is_current", models.BooleanField()),
                (
                    "chunk_count",
                    models.PositiveIntegerField(
                        help_text="Chunks with words, those since removed among them."
                    ),
                ),
                (
                    "wordless_count",
                    models.PositiveIntegerField(help_text="Chunks without: vectors alone."),
                ),
                (
                    "total_length",
                    models.PositiveBigIntegerField(help_text="Sum of the chunks' lengths."),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "collection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lexical_segments",
                        to="documents.collection",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
            ],
            options={"verbose_name": "search index segment"},
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "lexeme",
                        "base",
                        "workspace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("segment_id", models.BigIntegerField()),
                ("lexeme", common.fields.LexemeField()),
                (
                    "base",
                    models.BigIntegerField(
                        help_text="Index id of the block's beginning, by 65,536."
                    ),
                ),
                ("data", models.BinaryField()),
                ("workspace", _workspace()),
            ],
        ),
        migrations.CreateModel(
            name="PendingChunk",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "collection_id",
                        "index_id",
                        "workspace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("collection_id", models.BigIntegerField()),
                ("index_id", models.BigIntegerField()),
                ("workspace", _workspace()),
            ],
        ),
        migrations.CreateModel(
            name="RemovedChunk",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "collection_id",
                        "index_id",
                        "workspace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("collection_id", models.BigIntegerField()),
                ("index_id", models.BigIntegerField()),
                ("language", common.fields.RegConfigField(max_length=63)),
                ("is_current", models.BooleanField()),
                ("length", models.PositiveIntegerField()),
                ("workspace", _workspace()),
            ],
        ),
        migrations.CreateModel(
            name="Lexeme",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "collection_id",
                        "language",
                        "lexeme",
                        "workspace_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("collection_id", models.BigIntegerField()),
                ("language", common.fields.RegConfigField(max_length=63)),
                ("lexeme", common.fields.LexemeField()),
                ("workspace", _workspace()),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["lexeme"],
                        name="lexeme_similar_index",
                        opclasses=["gin_trgm_ops"],
                    )
                ],
            },
        ),
        migrations.AddField(
            model_name="chunk",
            name="index_id",
            field=models.BigIntegerField(
                db_default=documents.models.chunk.NextIndexId(),
                editable=False,
                help_text="What the lexical index knows these words by: another one once they"
                " change.",
            ),
        ),
        migrations.AddIndex(
            model_name="chunk",
            index=models.Index(fields=["index_id"], name="chunk_index_id_index"),
        ),
        migrations.RunSQL(TRIGGERS, NO_TRIGGERS),
        migrations.RemoveIndex(model_name="chunk", name="chunk_search_vector_index"),
        migrations.DeleteModel(name="LexemeFrequency"),
        migrations.DeleteModel(name="LexicalStatistics"),
        migrations.RemoveField(model_name="collection", name="statistics_stale"),
    ]
