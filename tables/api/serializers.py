"""Serializers of tables and their rows."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import ListParameters, WorkspaceParameters
from common.options.drf import OptionsSerializer
from common.serializers import ReadOnlyModelSerializer, ResultSerializer, StrictSerializer
from tables.downloads import PARTS
from tables.groups.curation import (
    GroupedColumn,
    GroupedTable,
    ReadGroup,
    SuggestedColumn,
    Suggestion,
)
from tables.models import COLUMN_TYPES, MAX_COLUMN_NAME, MAX_UNIT, Table
from tables.options import PageOptions, RowFilter, RowOptions
from tables.plan_tokens import MAX_TOKEN_CHARACTERS
from tables.services import PlacedRow, ResultRows, RowPage


@extend_schema_field({"oneOf": [{"type": "number"}, {"type": "string"}], "nullable": True})
class ValueField(serializers.JSONField):
    """A number, or a text or date of a cell."""


class ColumnSerializer(serializers.Serializer[Any]):
    """A column of a table."""

    name = serializers.CharField(help_text="As in the head of the table; unique in it.")
    type = serializers.ChoiceField(choices=COLUMN_TYPES)
    unit = serializers.CharField(help_text="Of numbers: `EUR`, `%`, `kg`. Empty: none is known.")


class TableSerializer(ReadOnlyModelSerializer[Table]):
    """A table of a document."""

    url = serializers.HyperlinkedIdentityField(
        view_name="api:table-detail", help_text="Its address in the API."
    )
    rows_url = serializers.HyperlinkedIdentityField(
        view_name="api:table-rows", help_text="Its rows."
    )
    group_url = serializers.HyperlinkedIdentityField(
        view_name="api:table-group", help_text="The tables that are asked together with it."
    )
    collection = serializers.SlugField(source="collection.slug", help_text="Slug.")
    document = serializers.IntegerField(source="document_id", help_text="Id of its document.")
    document_title = serializers.CharField(source="document.display_title")
    columns = ColumnSerializer(many=True)

    class Meta:
        model = Table
        fields = (
            *(
                "id",
                "url",
                "rows_url",
                "group_url",
                "collection",
                "document",
                "document_title",
                "ordinal",
            ),
            *("name", "heading_path", "columns", "row_count", "rows_left_out", "columns_left_out"),
            *("start", "is_current", "is_apart"),
        )


class TableFilter(ListParameters):
    """Query parameters of the list."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Only of this collection."
    )
    document = serializers.IntegerField(
        required=False, min_value=1, help_text="Only of this document, also of a former version."
    )
    q = serializers.CharField(
        required=False,
        max_length=200,
        help_text="Only those whose name, document or a column is called so.",
    )


class RowFilterParameters(OptionsSerializer, WorkspaceParameters):
    """Conditions that rows meet."""

    options = RowFilter


class RowParameters(OptionsSerializer, WorkspaceParameters):
    """Conditions, order and page of rows."""

    options = RowOptions


class ReadingParameters(WorkspaceParameters):
    """A computed answer."""

    reading = serializers.CharField(
        max_length=MAX_TOKEN_CHARACTERS,
        help_text="The `reading` of an answer, or one of its `readings`.",
    )


class ResultRowParameters(OptionsSerializer, ReadingParameters):
    """A computed answer, and the order and page of its rows."""

    options = PageOptions


class ResultFileParameters(ReadingParameters):
    """A computed answer, and what of it is downloaded."""

    part = serializers.ChoiceField(
        choices=PARTS,
        default="rows",
        help_text="The rows that it was computed from, at most 100,000, or its groups.",
    )


class ResultRowsSerializer(ResultSerializer):
    """Rows that an answer was computed from."""

    result = ResultRows


class RowSerializer(ResultSerializer):
    """A row of a table, with its place in the document."""

    result = PlacedRow

    values = serializers.ListField(
        child=serializers.JSONField(allow_null=True),
        help_text="The same as numbers, ISO dates, 1 and 0 of yes and no, and texts; null where a"
        " cell is none.",
    )


class RowsSerializer(ResultSerializer):
    """A page of rows."""

    result = RowPage


class ColumnCorrectionSerializer(StrictSerializer):
    """What a curator says of a column; what is left out stays as it is."""

    column = serializers.CharField(max_length=210, help_text="Its present name.")
    name = serializers.CharField(max_length=MAX_COLUMN_NAME, required=False)
    type = serializers.ChoiceField(choices=COLUMN_TYPES, required=False)
    unit = serializers.CharField(max_length=MAX_UNIT, required=False, allow_blank=True)


class GroupedColumnSerializer(ResultSerializer):
    """A column of a group of tables."""

    result = GroupedColumn


class GroupedTableSerializer(ResultSerializer):
    """A table of a group."""

    result = GroupedTable


class SuggestedColumnSerializer(ResultSerializer):
    """A column, and what it may be in a suggested group."""

    result = SuggestedColumn


class TableSuggestionSerializer(ResultSerializer):
    """A group that a table may belong to."""

    result = Suggestion

    columns = SuggestedColumnSerializer(many=True)


class GroupedTablesSerializer(ResultSerializer):
    """The tables that are asked together with a table, as far as you may see them."""

    result = ReadGroup

    columns = GroupedColumnSerializer(many=True)
    tables = GroupedTableSerializer(many=True)
    suggestion = TableSuggestionSerializer(
        allow_null=True, help_text="A group that it may belong to; null: none."
    )


class ColumnMeaningSerializer(StrictSerializer):
    """Which of the group's columns one of the table is."""

    column = serializers.CharField(max_length=210, help_text="Its name.")
    position = serializers.IntegerField(
        min_value=0,
        max_value=32_000,
        allow_null=True,
        help_text="Of the group's column. Null: the group does not have it.",
    )


class GroupCorrectionSerializer(StrictSerializer):
    """What a curator says of a table's group; what is left out stays as it is."""

    suggestion = serializers.ChoiceField(
        choices=("accept", "refuse"), required=False, help_text="Of the suggested group."
    )
    apart = serializers.BooleanField(required=False, help_text="Whether the table is asked alone.")
    with_alike = serializers.BooleanField(
        required=False,
        help_text="With `apart`: all tables of the collection with the same columns leave the"
        " group, and are asked together.",
    )
    columns = ColumnMeaningSerializer(
        many=True, required=False, help_text="For all tables with the same columns."
    )
