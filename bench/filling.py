"""Tables filled with rows that nobody wrote: by INSERT … SELECT, from what the models say."""

from collections.abc import Mapping
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import connection, models
from pgvector.django import VectorField

from common.fields import RegConfigField

#: Words that rows are made of: the numbers after them repeat at different intervals, so that some
#: words are in many rows and others in few.
WORDS = " || ' ' || ".join(f"'word' || (n * {prime} %% {every})" for prime, every in (
    (7919, 50), (104729, 500), (1299709, 5_000), (15485863, 50_000), (32452843, 500_000),
))  # fmt: skip


def fill(model: type[models.Model], count: int, **given: str) -> None:
    """Put `count` rows into the model's table. `given` are SQL expressions of the row number `n` by
    column; the others follow from the fields. Foreign keys lead to rows that `fill` made, too."""
    columns = {
        field.column: given.get(field.column) or _expression(field, model)
        for field in model._meta.local_concrete_fields
        if not field.generated and not isinstance(field, models.CompositePrimaryKey)
    }
    columns = {name: value for name, value in columns.items() if value}
    quoted = ", ".join(f'"{name}"' for name in columns)
    statement = (
        f'INSERT INTO "{model._meta.db_table}" ({quoted})'
        f" SELECT {', '.join(columns.values())} FROM generate_series(1::bigint, %s) AS n"
    )
    with connection.cursor() as cursor:
        # No triggers and no checks of foreign keys: what is made here agrees anyhow.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(statement, [count])
        cursor.execute("SET session_replication_role = DEFAULT")


def _expression(field: Any, model: type[models.Model]) -> str:
    """SQL of a value for the field in row `n`; empty where the database has one."""
    if field.primary_key and isinstance(field, models.AutoField | models.BigAutoField):
        return ""
    if isinstance(field, models.ForeignKey):
        if field.null:
            return f"CASE WHEN n %% 3 = 0 THEN NULL ELSE {_reference(field)} END"
        return _reference(field)
    if isinstance(field, RegConfigField):
        return "'english'::regconfig"
    if field.choices:
        values = [value for value, _ in field.flatchoices if value != ""]
        listed = ", ".join(f"'{value}'" for value in values)
        kind = "int" if isinstance(field, models.IntegerField) else "text"
        return f"(ARRAY[{listed}]::{kind}[])[(1 + n %% {len(values)})::int]"
    for kinds, expression in _BY_KIND:
        if isinstance(field, kinds):
            return expression(field)
    raise TypeError(f"{model.__name__}.{field.name} is of a kind that is not known here.")


def _reference(field: Any) -> str:
    table = field.remote_field.model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*), min(id) FROM "{table}"')
        count, first = cursor.fetchone()
    return f"{first or 1} + n %% {max(count, 1)}"


def _text(field: Any) -> str:
    if field.max_length is None:
        return WORDS
    if field.max_length < 60:
        return f"left('n' || n, {field.max_length})"
    return f"left({WORDS} || ' ' || n, {field.max_length})"


def _number(field: Any) -> str:
    return "n %% 30000" if isinstance(field, models.SmallIntegerField) else "n"


_BY_KIND: tuple[tuple[Any, Any], ...] = (
    (VectorField, lambda field: ""),
    (ArrayField, lambda field: "'{}'"),
    (models.BooleanField, lambda field: "n %% 2 = 0"),
    (models.JSONField, lambda field: "'{}'"),
    (models.DateTimeField, lambda field: "now() - n * interval '7 seconds'"),
    (models.UUIDField, lambda field: "md5(n::text)::uuid"),
    (models.BinaryField, lambda field: "'\\x00'"),
    (models.SmallIntegerField | models.PositiveSmallIntegerField, _number),
    (models.IntegerField, _number),
    (models.FloatField, lambda field: "(n %% 1000) / 1000.0"),
    (models.CharField | models.TextField | models.FileField, _text),
)

Fillings = Mapping[str, tuple[int, dict[str, str]]]
