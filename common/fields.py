"""PostgreSQL column types, lookups and aggregates that Django lacks."""

from typing import Any

from django.db import models
from django.db.models import Aggregate, FloatField, IntegerField, QuerySet, Subquery
from django.db.models.fields.related import ForeignObject
from django.db.models.fields.related_lookups import RelatedIn
from django.db.models.lookups import Exact, In

#: Number of values from which `__in` sends them as one array.
MANY_VALUES = 20


class RegConfigField(models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """A text search configuration, such as `english`: a `regconfig` column.

    The real type, because `to_tsvector(regconfig, text)` is immutable and may be stored as a
    generated column, while the same call on a text column may not.
    """

    def db_type(self, connection: Any) -> str:
        return "regconfig"

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return "%s::regconfig"


@RegConfigField.register_lookup
class RegConfigExact(Exact):
    """Compares by name, so that a configuration unknown to the server matches nothing."""

    def process_lhs(self, compiler: Any, connection: Any, lhs: Any = None) -> tuple[str, Any]:
        expression, params = super().process_lhs(compiler, connection, lhs)
        return f"{expression}::text", params


class _ArrayParameter:
    """`= ANY(array)` in place of `IN (...)` for many numbers or texts: one parameter instead of
    thousands.
    """

    def process_rhs(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        sql, params = super().process_rhs(compiler, connection)  # type: ignore[misc]
        if len(params) < MANY_VALUES or not self.rhs_is_direct_value():  # type: ignore[attr-defined]
            return sql, params
        one_type = {type(value) for value in params} in ({int}, {str})
        return ("ANY(%s)", [list(params)]) if one_type else (sql, params)

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        return f"= {rhs}" if rhs == "ANY(%s)" else f"IN {rhs}"


@models.Field.register_lookup
class ManyIn(_ArrayParameter, In):
    """`__in` on a plain column."""


@ForeignObject.register_lookup
class ManyRelatedIn(_ArrayParameter, RelatedIn):
    """`__in` on a foreign key."""


class ToTSVector(models.Func):
    """`setweight(to_tsvector(language, text), weight)`: one weighted part of a search vector."""

    template = "setweight(to_tsvector(%(expressions)s), '%(weight)s')"
    arity = 2

    def __init__(self, language: str, text: str | models.Func, *, weight: str) -> None:
        source = models.F(text) if isinstance(text, str) else text
        super().__init__(models.F(language), source, weight=weight)


class LexemeField(models.TextField):  # type: ignore[type-arg]  # not generic at run time
    """A lexeme, compared byte by byte: a prefix is a range of the index in any locale."""

    def db_type(self, connection: Any) -> str:
        return 'text COLLATE "C"'

    def cast_db_type(self, connection: Any) -> str:
        return "text"


class Percentile(Aggregate):
    """`percentile_cont`, interpolated between the two nearest values."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: Any, *, share: float, **extra: Any) -> None:
        super().__init__(expression, share=float(share), **extra)


class RowCount(Subquery):
    """Number of rows of `rows`, which refers to the outer row by OuterRef.

    Used instead of Count where whole models are selected: Django then groups by `id` alone, which
    is not the whole key on a cluster (docs/decisions/0050).
    """

    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any, Any], **extra: Any) -> None:
        super().__init__(rows.order_by().values("pk"), **extra)
