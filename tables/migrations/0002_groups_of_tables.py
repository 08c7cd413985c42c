import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

# At the end of the transaction, so that a document that is read again keeps what was decided about
# its tables. A layout that another transaction holds is about to be used.
_FORGET = """
CREATE FUNCTION tables_forget_layout() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    layout record;
BEGIN
    IF EXISTS (
        SELECT FROM tables_table
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) OR NOT EXISTS (
        SELECT FROM tables_tablelayout
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) THEN
        RETURN NULL;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('table groups', OLD.collection_id));
    SELECT id, group_id INTO layout FROM tables_tablelayout
    WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    FOR UPDATE SKIP LOCKED;
    IF NOT FOUND OR EXISTS (
        SELECT FROM tables_table
        WHERE collection_id = OLD.collection_id AND fingerprint = OLD.fingerprint
    ) THEN
        RETURN NULL;
    END IF;
    DELETE FROM tables_tablelayout WHERE id = layout.id;
    IF NOT EXISTS (SELECT FROM tables_tablelayout WHERE group_id = layout.group_id) THEN
        UPDATE tables_tablelayout SET suggested_group_id = NULL, suggested_positions = NULL
        WHERE suggested_group_id = layout.group_id;
        DELETE FROM tables_groupcolumn WHERE group_id = layout.group_id;
        DELETE FROM tables_tablegroup WHERE id = layout.group_id;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER table_forget_layout
AFTER DELETE OR UPDATE OF fingerprint, collection_id ON tables_table
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tables_forget_layout();
"""
_FORGET_NOTHING = """
DROP TRIGGER table_forget_layout ON tables_table;
DROP FUNCTION tables_forget_layout();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0008_workspace_shard"),
        ("documents", "0027_collection_vectors"),
        ("tables", "0001_tables_and_blocks"),
    ]

    operations = [
        migrations.CreateModel(
            name="GroupColumn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveSmallIntegerField()),
                ("key", models.CharField(blank=True, max_length=200)),
                ("type", models.CharField(max_length=10)),
                ("unit", models.CharField(blank=True, max_length=20)),
            ],
        ),
        migrations.CreateModel(
            name="TableGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TableLayout",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                (
                    "positions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveSmallIntegerField(), size=None
                    ),
                ),
                (
                    "suggested_positions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveSmallIntegerField(null=True),
                        blank=True,
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "refused",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "is_corrected",
                    models.BooleanField(
                        default=False, help_text="A curator has said where it belongs."
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="table",
            name="fingerprint",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The same for tables with the same columns: see TableLayout.",
                max_length=64,
            ),
        ),
        migrations.AddField(
            model_name="table",
            name="is_apart",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Asked alone, because a curator has taken it out of its group.",
            ),
        ),
        migrations.AddIndex(
            model_name="table",
            index=models.Index(fields=["collection", "fingerprint"], name="table_layout_index"),
        ),
        migrations.AddField(
            model_name="groupcolumn",
            name="collection",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="documents.collection",
            ),
        ),
        migrations.AddField(
            model_name="groupcolumn",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.workspace",
            ),
        ),
        migrations.AddField(
            model_name="tablegroup",
            name="collection",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="documents.collection",
            ),
        ),
        migrations.AddField(
            model_name="tablegroup",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.workspace",
            ),
        ),
        migrations.AddField(
            model_name="groupcolumn",
            name="group",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="columns",
                to="tables.tablegroup",
            ),
        ),
        migrations.AddField(
            model_name="tablelayout",
            name="collection",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="documents.collection",
            ),
        ),
        migrations.AddField(
            model_name="tablelayout",
            name="group",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="layouts",
                to="tables.tablegroup",
            ),
        ),
        migrations.AddField(
            model_name="tablelayout",
            name="suggested_group",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="suggestions",
                to="tables.tablegroup",
            ),
        ),
        migrations.AddField(
            model_name="tablelayout",
            name="workspace",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="accounts.workspace",
            ),
        ),
        migrations.AddIndex(
            model_name="groupcolumn",
            index=models.Index(fields=["collection", "key"], name="groupcolumn_key_index"),
        ),
        migrations.AddConstraint(
            model_name="groupcolumn",
            constraint=models.UniqueConstraint(
                fields=("group", "position", "key"), name="groupcolumn_group_position_key_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="tablelayout",
            constraint=models.UniqueConstraint(
                fields=("collection", "fingerprint"), name="tablelayout_collection_layout_unique"
            ),
        ),
        migrations.RunSQL(_FORGET, _FORGET_NOTHING),
    ]
