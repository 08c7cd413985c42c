"""Questions to tables over HTTP: `POST /api/v1/tables/ask/`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import WorkspaceView, operation
from common.serializers import ResultSerializer, SlugsField, StrictSerializer, TextField
from rag.api.chat import ReadingSerializer
from rag.context import context_of_view
from rag.services.table_answers import readings_data
from rag.tools.tables import ask_visible_tables, cite_rows
from search.query import MAX_QUERY_CHARACTERS
from tables.api.serializers import ValueField
from tables.execute import Group
from tables.plan_tokens import MAX_TOKEN_CHARACTERS, plan_token
from tables.services import row_url
from tables.wording import worded


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row that the answer was computed from, with its place."""

    table: Annotated[int, "Id of its table."]
    ordinal: Annotated[int, "Its place in the table, from 0."]
    document: Annotated[int, "Id of its document."]
    title: str
    collection: Annotated[str, "Slug."]
    cells: Annotated[list[str], "As written, one for each of `columns`."]
    start: Annotated[int, "Offset of its first character in the document's text."]
    end: int
    location: Annotated[str, "`Prices!A12`, `row 7`, `page 3`; empty where there is none."]
    url: Annotated[str, "The page that shows it."]


@dataclass(frozen=True, slots=True)
class TablesAnswer:
    """A computed answer; or at most two readings of a question that is not sure; or neither, where
    the question is none of a table's. What a chat model's SQL gave is in `result_rows`, too."""

    is_computed: bool
    text: Annotated[str, "The answer in words, as Markdown. Empty: nothing was computed."]
    value: Any
    unit: Annotated[str, "A currency, `%` or unit of measure; empty: none."]
    count: Annotated[int, "Rows that it was computed from."]
    explanation: Annotated[str, "Which rows these are."]
    columns: list[str]
    groups: Sequence[Group]
    rows: Annotated[Sequence[ShownRow], "The first of the rows."]
    reading: Annotated[
        str, "Names the answer for `GET /tables/result/rows/`, `…/csv/` and `…/xlsx/`."
    ]
    readings: Annotated[Sequence[Mapping[str, str]], "What may be meant, where it is not sure."]
    unknown: Annotated[list[str], "Words of the question that were not understood."]
    with_model: Annotated[bool, "Whether a chat model has written SQL that computed it."]
    sql: Annotated[str, "That SQL, over views of the tables. Empty: none."]
    result_columns: Annotated[list[str], "What the SQL selects."]
    result_rows: Annotated[Sequence[Sequence[Any]], "The first 100 rows that it gave."]


class TablesQuestionSerializer(StrictSerializer):
    """A question to tables."""

    question = TextField(
        max_length=MAX_QUERY_CHARACTERS,
        required=False,
        default="",
        help_text="In English, German or Spanish. Needed unless there is a `reading`.",
    )
    reading = serializers.CharField(
        required=False,
        default="",
        max_length=MAX_TOKEN_CHARACTERS,
        help_text="One of the `readings` of an earlier answer: exactly this is computed.",
    )
    collections = SlugsField(
        required=False, help_text="Slugs of collections. Default: all that you may see."
    )
    with_model = serializers.BooleanField(
        default=True,
        help_text="Let the workspace's chat model write SQL for a question that is not understood"
        " without one. It needs the scope `chat`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either of both is needed."""
        if not attrs["question"] and not attrs["reading"]:
            raise serializers.ValidationError({"question": "Ask a question, or send a reading."})
        return attrs


@extend_schema_field(
    {
        "oneOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}],
        "nullable": True,
    }
)
class CellField(serializers.JSONField):
    """A value of a result; dates are texts."""


class TableGroupSerializer(ResultSerializer):
    """A group of rows, or one of two things compared."""

    result = Group

    value = ValueField(allow_null=True, help_text="What was computed of its rows.")


class TablesAnswerSerializer(ResultSerializer):
    """What was computed from tables."""

    result = TablesAnswer

    value = ValueField(
        allow_null=True, help_text="A number, a text or a date; null where there are groups only."
    )
    groups = TableGroupSerializer(many=True)
    result_rows = serializers.ListField(child=serializers.ListField(child=CellField()))
    readings = ReadingSerializer(many=True, help_text="What may be meant, where it is not sure.")


class TablesAskView(WorkspaceView):
    """`/api/v1/tables/ask/`."""

    tag = "tables"
    for_limited_keys = True
    required_scope = "read"
    serializer_class = TablesAnswerSerializer

    @operation(takes=TablesQuestionSerializer, operation_id="tables_ask")
    def post(
        self,
        question: str,
        reading: str,
        collections: Sequence[str] = (),
        *,
        with_model: bool = True,
    ) -> TablesAnswer:
        """Ask the tables of documents.

        Counts, sums, averages, compares and ranks rows, without a language model. For a question
        that is not sure, the workspace's chat model, if there is one, writes SQL; else `readings`
        say what may be meant, each with a `reading` to send back, `unknown` which words were not
        understood.
        """
        context = context_of_view(self, collections=collections)
        answer = ask_visible_tables(
            question, context=context, reading=reading, with_model=with_model
        )
        written = answer.written
        result = answer.result
        cited = cite_rows(answer, context=context)
        rows = [
            ShownRow(
                table=each.row.table_id,
                ordinal=each.row.ordinal,
                document=each.row.document_id,
                title=each.row.document_title,
                collection=each.row.collection,
                cells=list(each.row.cells),
                start=each.row.start,
                end=each.row.end,
                location=each.row.location,
                url=row_url(each.row),
            )
            for each in cited
        ]
        return TablesAnswer(
            is_computed=result is not None,
            text=worded(answer, listed_rows=len(cited)).head if result else "",
            value=result.value if result else None,
            unit=result.unit if result else "",
            count=result.count if result else 0,
            explanation=result.explanation if result else "",
            columns=list(result.columns) if result else [],
            groups=result.groups if result else (),
            rows=rows,
            reading=plan_token(answer.plan) if answer.plan else "",
            readings=readings_data(answer.readings),
            unknown=list(answer.unknown),
            with_model=written is not None,
            sql=written.sql if written else "",
            result_columns=list(written.columns) if written else [],
            result_rows=written.rows if written else (),
        )
