"""Aggregates that Django lacks."""

from typing import Any

from django.db.models import Aggregate, FloatField


class Percentile(Aggregate):
    """`percentile_cont`, interpolated between the two nearest values."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: Any, *, share: float, **extra: Any) -> None:
        super().__init__(expression, share=float(share), **extra)
