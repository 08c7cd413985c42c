"""Querysets of tables, filtered by access; columns of many tables, read at once."""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast

from accounts.models import WorkspaceOwnedQuerySet
from accounts.services import principals

M = TypeVar("M", bound=models.Model)

_COLUMN_NAMES = models.Func(
    models.F("columns"),
    template="jsonb_path_query_array(%(expressions)s, '$[*].name')::text",
    output_field=models.TextField(),
)

#: The columns of a table as JSON: see `parse_columns`.
COLUMNS_TEXT = Cast("columns", models.TextField())


@lru_cache(maxsize=1_000)
def parse_columns(text: str) -> Sequence[Mapping[str, Any]]:
    """The columns of a table from their JSON. Many tables have the same, which is parsed once and
    not to be changed."""
    columns: Sequence[Mapping[str, Any]] = json.loads(text)
    return columns


class TableQuerySet(WorkspaceOwnedQuerySet[M]):
    """Tables, visible as their documents are."""

    def visible_to(self, user: Any) -> Self:
        """Tables of the user's workspaces except those of documents that the user may not see."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(
            Q(document__access__isnull=True) | Q(document__access__overlap=principals(user))
        )

    def named(self, text: str) -> Self:
        """Those whose name, document or a column has this in it."""
        return self.alias(column_names=_COLUMN_NAMES).filter(
            Q(name__icontains=text)
            | Q(document__title__icontains=text)
            | Q(document__source__icontains=text)
            | Q(column_names__icontains=text)
        )

    def current(self) -> Self:
        """Those of current versions."""
        return self.filter(is_current=True)
