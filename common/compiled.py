"""Querysets whose SQL is made once: Django takes longer to make it than PostgreSQL to run it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

from common.fence import current
from common.postgresql.binary import fetch

M = TypeVar("M", bound=Model)
Rows = list[tuple[Any, ...]]


def rows(sql: str, parameters: Sequence[Any]) -> Rows:
    """All rows of a statement whose text comes again and again.

    Outside a fence the server keeps its plan; inside, it goes in one message with the fence.
    """
    if current() is None:
        return fetch(connection, sql, parameters, prepare=True)
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        found: Rows = cursor.fetchall()
    return found


class CompiledQuery(Generic[M]):
    """The query of `make()`, in which any value of the right type stands for each parameter.

    Parameters come in the order of the queryset's filters. None of them may be None or a list, for
    the SQL must be the same whatever they are; no field may need a conversion, as JSON does.
    """

    def __init__(self, make: Callable[[], QuerySet[M, Any]]) -> None:
        self._make = make

    @cached_property
    def sql(self) -> str:
        """With a `%s` for each parameter."""
        return str(self._make().query.sql_with_params()[0])

    @cached_property
    def _models(self) -> list[tuple[str, Any, list[str]]]:
        """Whose fields a row holds: the model and, by name, those of `select_related`."""
        queryset = self._make()
        model: Any = queryset.model
        related: Any = queryset.query.select_related or ()
        fields = [each for each in model._meta.concrete_fields if each.name in related]
        models = [("", model), *((each.name, each.related_model) for each in fields)]
        return [(name, m, [f.attname for f in m._meta.concrete_fields]) for name, m in models]

    def read(self, *parameters: Any) -> list[M]:
        """The instances, with those of `select_related`."""
        found: list[Any] = []
        for row in rows(self.sql, parameters):
            start = 0
            for name, model, fields in self._models:
                values, start = row[start : start + len(fields)], start + len(fields)
                instance = model.from_db(connection.alias, fields, values)
                if name:
                    setattr(found[-1], name, instance)
                else:
                    found.append(instance)
        return found
