"""PostgreSQL column types, and a lookup, that Django lacks."""

from typing import Any

from django.db import models
from django.db.models.fields.related import ForeignObject
from django.db.models.fields.related_lookups import RelatedIn
from django.db.models.lookups import Exact, In

#: From so many values on, `__in` sends them as one array.
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
    """Compares names, so that one which the server does not have matches nothing."""

    def process_lhs(self, compiler: Any, connection: Any, lhs: Any = None) -> tuple[str, Any]:
        expression, params = super().process_lhs(compiler, connection, lhs)
        return f"{expression}::text", params


class _OneArray:
    """`= ANY(array)` for `IN (…)` of many numbers or texts: one parameter, where a parameter for
    each of a thousand takes Django and psycopg longer than PostgreSQL takes to find the rows."""

    def process_rhs(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        sql, params = super().process_rhs(compiler, connection)  # type: ignore[misc]
        if len(params) < MANY_VALUES or not self.rhs_is_direct_value():  # type: ignore[attr-defined]
            return sql, params
        one_type = {type(value) for value in params} in ({int}, {str})
        return ("ANY(%s)", [list(params)]) if one_type else (sql, params)

    def get_rhs_op(self, connection: Any, rhs: str) -> str:
        return f"= {rhs}" if rhs == "ANY(%s)" else f"IN {rhs}"


@models.Field.register_lookup
class ManyIn(_OneArray, In):
    """`__in` of a column's own values."""


@ForeignObject.register_lookup
class ManyRelatedIn(_OneArray, RelatedIn):
    """`__in` of a foreign key."""


class ToTSVector(models.Func):
    """`setweight(to_tsvector(language, text), weight)`: one weighted part of a search vector."""

    template = "setweight(to_tsvector(%(expressions)s), '%(weight)s')"
    arity = 2

    def __init__(self, language: str, text: str | models.Func, *, weight: str) -> None:
        source = models.F(text) if isinstance(text, str) else text
        super().__init__(models.F(language), source, weight=weight)


class LexemeField(models.TextField):  # type: ignore[type-arg]  # not generic at run time
    """A lexeme, compared byte by byte: prefixes are ranges of the index, in any locale."""

    def db_type(self, connection: Any) -> str:
        return 'text COLLATE "C"'

    def cast_db_type(self, connection: Any) -> str:
        return "text"
