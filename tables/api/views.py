"""Tables over HTTP: listed, read row by row, and corrected. Begin with `TableViewSet`."""

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from rest_framework.decorators import action

from accounts.api import ResourceViewSet, operation
from documents.services import get_collection
from tables import services
from tables.api import serializers
from tables.downloads import FileFormat, result_response, table_response
from tables.groups import curation
from tables.models import Table
from tables.options import PageOptions, RowFilter, RowOptions
from tables.plan_tokens import read_plan_token
from tables.questions.plan import Plan

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class TableViewSet(ResourceViewSet):
    """Tables of documents: every member reads, editors correct columns."""

    for_limited_keys = True
    nouns = ("table", "tables")
    queryset = Table.objects.select_related("collection", "document", "workspace")
    serializer_class = serializers.TableSerializer
    editors_only = True
    action_parameters = {
        "list": serializers.TableFilter,
        "rows": serializers.RowParameters,
        "csv": serializers.RowFilterParameters,
        "xlsx": serializers.RowFilterParameters,
        "result_rows": serializers.ResultRowParameters,
        "result_csv": serializers.ResultFileParameters,
        "result_xlsx": serializers.ResultFileParameters,
    }

    def narrowed(self, rows: Any, **wanted: Any) -> QuerySet[Any]:
        if slug := wanted.pop("collection", ""):
            rows = rows.filter(collection=get_collection(workspace=self.workspace, slug=slug))
        if "document" not in wanted:
            rows = rows.filter(is_current=True)
        if text := wanted.pop("q", ""):
            rows = rows.named(text)
        return super().narrowed(rows, **wanted)

    @operation(takes=serializers.ColumnCorrectionSerializer, errors=(409,))
    def partial_update(self, table: Table, **values: Any) -> None:
        """Correct what a column is called, and what it holds.

        It stays so when the document is read again. Cells are not changed: those that are none of
        the new type have no value.
        """
        services.correct_column(table=table, **values)

    @action(detail=True, pagination_class=None)
    @operation(gives=serializers.RowsSerializer, operation_id="tables_rows")
    def rows(self, table: Table) -> services.RowPage:
        """List the rows of a table.

        They may be filtered by words and by one column, sorted, and are paged by `offset`. Sums are
        those of all rows that fit.
        """
        return services.read_page(table, RowOptions.pick(self.parameters))

    @property
    def is_detail_request(self) -> bool:
        """Its group is read and changed as a single object, too."""
        return super().is_detail_request or self.action in ("group", "correct_group")

    def read_object(self) -> Any:
        if self.action != "correct_group":
            return super().read_object()
        self.action = "group"
        try:
            return self.group(self.request, *self.args, **self.kwargs).data
        finally:
            self.action = "correct_group"

    @action(detail=True, pagination_class=None)
    @operation(gives=serializers.GroupedTablesSerializer, operation_id="tables_group")
    def group(self, table: Table) -> curation.ReadGroup:
        """List the tables that are asked together with a table.

        Their columns are matched by name, meaning, type and unit. What is not sure is a suggestion.
        """
        return curation.read_group(table, Table.objects.visible_to(self.request.user))

    @group.mapping.patch
    @operation(
        takes=serializers.GroupCorrectionSerializer,
        gives=serializers.GroupedTablesSerializer,
        operation_id="tables_group_correct",
        errors=(409,),
    )
    def correct_group(self, table: Table, **values: Any) -> curation.ReadGroup:
        """Correct which tables are asked together, and which of their columns are the same.

        It stays so when documents are read again.
        """
        tables = Table.objects.visible_to(self.request.user)
        curation.correct(table=table, tables=tables, **values)
        return curation.read_group(table, tables)

    @action(detail=True, pagination_class=None)
    @operation(gives={(200, "text/csv"): str}, operation_id="tables_csv")
    def csv(self, table: Table) -> HttpResponseBase:
        """Download the rows that fit as CSV."""
        return table_response(table, RowFilter.pick(self.parameters), form="csv")

    @action(detail=True, pagination_class=None)
    @operation(gives={(200, XLSX): bytes}, operation_id="tables_xlsx")
    def xlsx(self, table: Table) -> HttpResponseBase:
        """Download the rows that fit as an Excel file, of a table of up to 100,000 rows."""
        return table_response(table, RowFilter.pick(self.parameters), form="xlsx")

    # What was computed from tables

    @action(detail=False, pagination_class=None, url_path="result/rows", url_name="result-rows")
    @operation(gives=serializers.ResultRowsSerializer, operation_id="tables_result_rows")
    def result_rows(self) -> services.ResultRows:
        """List the rows that an answer was computed from.

        The answer is named by the `reading` that `POST /tables/ask/` and chats give with it.
        """
        options = PageOptions.pick(self.parameters)
        return services.read_result(self._plan, self._current, options)

    @action(detail=False, pagination_class=None, url_path="result/csv", url_name="result-csv")
    @operation(gives={(200, "text/csv"): str}, operation_id="tables_result_csv")
    def result_csv(self) -> HttpResponseBase:
        """Download the rows or groups of an answer as CSV."""
        return self._result_file("csv")

    @action(detail=False, pagination_class=None, url_path="result/xlsx", url_name="result-xlsx")
    @operation(gives={(200, XLSX): bytes}, operation_id="tables_result_xlsx")
    def result_xlsx(self) -> HttpResponseBase:
        """Download the rows or groups of an answer as an Excel file."""
        return self._result_file("xlsx")

    def _result_file(self, form: FileFormat) -> HttpResponseBase:
        return result_response(self._plan, self._current, part=self.parameters["part"], form=form)

    @property
    def _plan(self) -> Plan:
        return read_plan_token(self.parameters["reading"])

    @property
    def _current(self) -> QuerySet[Table]:
        current: QuerySet[Table] = self.get_queryset().filter(is_current=True)
        return current
