"""PostgreSQL column types that Django lacks."""

from typing import Any

from django.db import models


class RegConfigField(models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """A text search configuration, such as `english`: a `regconfig` column.

    The real type, because `to_tsvector(regconfig, text)` is immutable and may be stored as a
    generated column, while the same call on a text column may not.
    """

    def db_type(self, connection: Any) -> str:
        return "regconfig"

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        return "%s::regconfig"


class ToTSVector(models.Func):
    """`setweight(to_tsvector(language, text), weight)`: one weighted part of a search vector."""

    template = "setweight(to_tsvector(%(expressions)s), '%(weight)s')"
    arity = 2

    def __init__(self, language: str, text: str, *, weight: str) -> None:
        super().__init__(models.F(language), models.F(text), weight=weight)
