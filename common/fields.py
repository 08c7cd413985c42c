"""PostgreSQL column types that Django lacks."""

from typing import Any

from django.db import models
from django.db.models.lookups import Exact


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


class ToTSVector(models.Func):
    """`setweight(to_tsvector(language, text), weight)`: one weighted part of a search vector."""

    template = "setweight(to_tsvector(%(expressions)s), '%(weight)s')"
    arity = 2

    def __init__(self, language: str, text: str | models.Func, *, weight: str) -> None:
        source = models.F(text) if isinstance(text, str) else text
        super().__init__(models.F(language), source, weight=weight)
