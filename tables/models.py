"""Tables that were found in documents, and their rows, kept by column."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy

from accounts.models import Workspace, WorkspaceOwnedQuerySet
from documents.models import Collection, Document
from tables.querysets import TableQuerySet

COLUMN_TYPES = ("number", "date", "boolean", "text")
#: Characters of a column's name and unit, as a curator may give them.
MAX_COLUMN_NAME, MAX_UNIT = 200, 20
#: Rows of one `ColumnBlock`.
BLOCK_ROWS = 1_000


class Table(models.Model):
    """A table in the text of a document; `ordinal` counts the document's tables from 0.

    `columns` are objects in the order of the columns: `name`; `type`, one of `number`, `date`,
    `boolean` and `text`; `unit`, such as `EUR` or `%`, or empty. One that a curator has corrected
    also has `read`: the same three as they were read.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")
    document = models.ForeignKey(Document, models.CASCADE, related_name="tables", db_index=False)
    ordinal = models.PositiveIntegerField()
    name = models.CharField(
        max_length=500,
        blank=True,
        help_text=gettext_lazy("The sheet, or the heading above the table."),
    )
    heading_path = ArrayField(models.TextField(), default=list, blank=True)
    columns = models.JSONField(default=list)
    row_count = models.PositiveIntegerField(default=0)
    rows_left_out = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Rows beyond the million of a document.")
    )
    columns_left_out = models.PositiveIntegerField(
        default=0, help_text=gettext_lazy("Columns beyond the first two hundred.")
    )
    start = models.PositiveBigIntegerField(
        default=0, help_text=gettext_lazy("Offset of its first character in the document's text.")
    )
    is_current = models.BooleanField(default=True, db_default=True)
    text_sha256 = models.CharField(
        max_length=64, help_text=gettext_lazy("Hash of the document's text that it was read from.")
    )

    fingerprint = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=gettext_lazy("The same for tables with the same columns: see TableLayout."),
    )
    is_apart = models.BooleanField(
        default=False,
        db_default=False,
        help_text=gettext_lazy("Asked alone, because a curator has taken it out of its group."),
    )

    objects = TableQuerySet["Table"].as_manager()

    class Meta:
        ordering = ["document_id", "ordinal"]
        indexes = [models.Index(fields=["collection", "fingerprint"], name="table_layout_index")]
        constraints = [
            models.UniqueConstraint(
                fields=["document", "ordinal"], name="table_document_ordinal_unique"
            ),
        ]

    def __str__(self) -> str:
        # Without its name: the admin's log keeps this for ever.
        return f"Table {self.ordinal + 1} of document {self.document_id}"


class ColumnBlock(models.Model):  # noqa: DJ008 (no page shows one)
    """Up to `BLOCK_ROWS` consecutive rows of one column, from row `ordinal` (from 0) on. Deleted
    with the table, by the database.

    `position` counts columns from 1; the block of position 0 has the rows' offsets in the text.
    `cells` are as written. `numbers` are NULL but in a column of numbers or booleans (1 and 0),
    `dates` but in one of dates; there they have as many elements as `cells`, NULL where a cell is
    none. An aggregate over a million rows reads the columns that it needs, compressed: half the
    time and a sixth of the disk of a row a row (docs/decisions/0095).
    """

    pk = models.CompositePrimaryKey("table_id", "position", "ordinal")
    workspace = models.ForeignKey(
        Workspace, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    collection = models.ForeignKey(
        Collection, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    table = models.ForeignKey(
        Table, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    position = models.PositiveSmallIntegerField()
    ordinal = models.PositiveIntegerField()
    cells = ArrayField(models.TextField(), null=True)
    numbers = ArrayField(models.FloatField(null=True), null=True)
    dates = ArrayField(models.DateField(null=True), null=True)
    starts = ArrayField(models.BigIntegerField(), null=True)

    objects = WorkspaceOwnedQuerySet["ColumnBlock"].as_manager()


class TableGroup(models.Model):
    """Tables of a collection that are asked as one. It has no names: those of its columns are
    shown as the tables say that the reader may see."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+")

    objects = WorkspaceOwnedQuerySet["TableGroup"].as_manager()

    def __str__(self) -> str:
        return f"Group {self.pk}"


class GroupColumn(models.Model):
    """A header that means the column at `position`, from 0, of a group: `key` is a hash of its
    name, or what it is about (tables/groups/headers.py). All of one position have the same `type`
    and unit."""

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(TableGroup, models.CASCADE, related_name="columns")
    position = models.PositiveSmallIntegerField()
    key = models.CharField(max_length=200, blank=True)
    type = models.CharField(max_length=10)
    unit = models.CharField(max_length=20, blank=True)

    objects = WorkspaceOwnedQuerySet["GroupColumn"].as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["group", "position", "key"], name="groupcolumn_group_position_key_unique"
            )
        ]
        indexes = [models.Index(fields=["collection", "key"], name="groupcolumn_key_index")]

    def __str__(self) -> str:
        return f"Column {self.position + 1} of group {self.group_id}"


class TableLayout(models.Model):
    """All tables of a collection with the same columns, by their `fingerprint`. Goes with the last
    of them, by a trigger at the end of the transaction.

    `positions` are those of its columns in its group, from 0, in the order of the columns. A match
    that is not sure is suggested: `suggested_positions` are null where the suggested group does not
    have the column. `refused` are ids of groups that a curator has refused.
    """

    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+", db_index=False)
    collection = models.ForeignKey(Collection, models.CASCADE, related_name="+", db_index=False)
    fingerprint = models.CharField(max_length=64)
    group = models.ForeignKey(TableGroup, models.CASCADE, related_name="layouts")
    positions = ArrayField(models.PositiveSmallIntegerField())
    suggested_group = models.ForeignKey(
        TableGroup, models.SET_NULL, related_name="suggestions", null=True, blank=True
    )
    suggested_positions = ArrayField(
        models.PositiveSmallIntegerField(null=True), null=True, blank=True
    )
    refused = ArrayField(models.BigIntegerField(), default=list, blank=True)
    is_corrected = models.BooleanField(
        default=False, help_text=gettext_lazy("A curator has said where it belongs.")
    )

    objects = WorkspaceOwnedQuerySet["TableLayout"].as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["collection", "fingerprint"], name="tablelayout_collection_layout_unique"
            )
        ]

    def __str__(self) -> str:
        return f"Layout {self.pk}"
