"""Deletion in the admin, by the services and with a preview that counts instead of loading."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import DELETION
from django.db.models import QuerySet, Sum
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from common.admin import deletion_preview, log_by_number
from documents.models import Document


class ServiceDeletion(ModelAdmin):
    """Deletes row by row with `delete_by_service`, which also removes files and statistics.

    Django's own way loads every row below, a million chunks too, only to show their names.
    """

    def delete_by_service(self, row: Any) -> None:
        """Delete one row."""
        raise NotImplementedError

    def documents_below(self, rows: list[Any]) -> QuerySet[Document]:
        """The documents that go with `rows`."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_by_service(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_by_service(row)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """By number: a name in the log would outlive what was deleted."""
        return log_by_number(self, request, queryset, DELETION)

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        rows = list(objs)
        documents = self.documents_below(rows)
        counts = {
            str(self.opts.verbose_name_plural): len(rows),
            "documents": documents.count(),
            "chunks": documents.aggregate(number=Sum("chunk_count"))["number"] or 0,
        }
        names = [f"{self.opts.verbose_name}: {row}" for row in rows]
        return deletion_preview(self, request, names, counts)
