"""BM25 from posting lists in rows: their tables, the triggers that keep them with the chunks, and
the index of all chunks that are there.

The release before searches and writes meanwhile; the next migration removes what it alone needs.
No statement rewrites the table of chunks or locks it for longer than it takes to add a column
without values. Interrupted, it goes on where it was.
"""

from typing import Any

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import common.fields
import documents.models.chunk
from common.migration_operations import (
    InOneTransaction,
    create_index_concurrently,
    fill_in_steps,
    require_value,
)
from documents import lexical_index
from documents.migrations._word_forms import FUNCTIONS
from documents.spaces import SpaceSql

CHUNKS = "documents_chunk"


def give_index_ids(apps: Any, schema_editor: Any) -> None:
    """The column `index_id`. With a default of `nextval` from the start PostgreSQL would write the
    whole table and all its indexes anew, and nobody could read it until then.
    """
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute("CREATE SEQUENCE IF NOT EXISTS documents_chunk_index_id")
        cursor.execute(f"ALTER TABLE {CHUNKS} ADD COLUMN IF NOT EXISTS index_id bigint")
        following = "nextval('documents_chunk_index_id')"
        cursor.execute(f"ALTER TABLE {CHUNKS} ALTER COLUMN index_id SET DEFAULT {following}")
        cursor.execute(f"SELECT EXISTS (SELECT FROM {CHUNKS} WHERE index_id IS NULL)")  # noqa: S608
        if cursor.fetchone()[0]:
            # An updated row goes into each index once more, and one vector takes milliseconds:
            # building the vector indexes again is quicker. Until then all vectors are compared.
            for space in _spaces(apps):
                cursor.execute(space.drop_index(concurrently=True))
            # The former inverted index takes them in many at once: a quarter of the work.
            cursor.execute("ALTER INDEX chunk_search_vector_index SET (fastupdate = on)")
    fill_in_steps(
        connection, table=CHUNKS, assignment=f"index_id = {following}", missing="index_id IS NULL"
    )
    require_value(connection, table=CHUNKS, column="index_id")
    create_index_concurrently(
        connection, name="chunk_index_id_index", table=CHUNKS, columns="index_id"
    )


def take_index_ids(apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {CHUNKS} DROP COLUMN IF EXISTS index_id")
        cursor.execute("DROP SEQUENCE IF EXISTS documents_chunk_index_id")


def _spaces(apps: Any) -> list[SpaceSql]:
    """The embedding spaces that have an index."""
    return [
        SpaceSql(
            space_id=space.pk,
            dimensions=space.dimensions,
            metric=space.metric,
            index_type=space.index_type,
            precision=space.precision,
            options=space.index_options,
        )
        for space in apps.get_model("documents", "EmbeddingSpace").objects.order_by("pk")
        if space.index_type != "none"
    ]


def index_vectors(apps: Any, schema_editor: Any) -> None:
    """Build the vector indexes again that `give_index_ids` dropped."""
    with schema_editor.connection.cursor() as cursor:
        for space in _spaces(apps):
            cursor.execute(
                "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)",
                [space.index_name],
            )
            if cursor.fetchone() == (True,):
                continue
            cursor.execute(space.drop_index(concurrently=True))
            cursor.execute(f"SELECT count(*) FROM {CHUNKS} WHERE {space.predicate}")  # noqa: S608
            (rows,) = cursor.fetchone()
            cursor.execute(space.create_index(rows=rows, concurrently=True))


def index_words(apps: Any, schema_editor: Any) -> None:
    """In transactions of its own, twenty thousand chunks each. Chunks that are not in it yet are
    pending, which is as right and slower."""
    lexical_index.index_all_pending()


def tables_exist(cursor: Any) -> bool:
    cursor.execute("SELECT to_regclass('documents_lexeme') IS NOT NULL")
    return bool(cursor.fetchone()[0])


def triggers_exist(cursor: Any) -> bool:
    cursor.execute("SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'chunk_index_new')")
    return bool(cursor.fetchone()[0])


def list_pending(apps: Any, schema_editor: Any) -> None:
    """Before the triggers, so that whoever writes need not wait for all of it."""
    with schema_editor.connection.cursor() as cursor:
        if not triggers_exist(cursor):
            cursor.execute(PENDING)


PENDING = """
INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
SELECT workspace_id, collection_id, index_id FROM documents_chunk
ON CONFLICT DO NOTHING;
"""
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

-- What was written since `list_pending`.
INSERT INTO documents_pendingchunk (workspace_id, collection_id, index_id)
SELECT workspace_id, collection_id, index_id FROM documents_chunk
EXCEPT SELECT workspace_id, collection_id, index_id FROM documents_pendingchunk
ON CONFLICT DO NOTHING;
DELETE FROM documents_pendingchunk AS listed WHERE NOT EXISTS (
    SELECT FROM documents_chunk AS chunk
    WHERE chunk.index_id = listed.index_id AND chunk.collection_id = listed.collection_id);
"""  # noqa: S608 (constants)

# pglz finds nothing in them
STORAGE = "ALTER TABLE documents_posting ALTER COLUMN data SET STORAGE EXTERNAL"

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


def _workspace() -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        on_delete=django.db.models.deletion.DO_NOTHING,
        related_name="+",
        to="accounts.workspace",
    )


class Migration(migrations.Migration):
    atomic = False
    #: What `manage.py upgrade` estimates by.
    rows_per_second = {"documents_chunk": 500}
    dependencies = [("accounts", "0001_initial"), ("documents", "0013_chunk_edits")]

    operations = [
        migrations.RunPython(give_index_ids, take_index_ids),
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
            ],
        ),
        InOneTransaction(
            [
                migrations.CreateModel(
                    name="LexicalSegment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True,
                                primary_key=True,
                                serialize=False,
                                verbose_name="ID",
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
                migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
            ],
            is_done=tables_exist,
        ),
        migrations.RunPython(list_pending, migrations.RunPython.noop),
        InOneTransaction([migrations.RunSQL(TRIGGERS, NO_TRIGGERS)], is_done=triggers_exist),
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),  # which the index needs since 0024
        migrations.RunPython(index_words, migrations.RunPython.noop),
        migrations.RunPython(index_vectors, migrations.RunPython.noop),
    ]
