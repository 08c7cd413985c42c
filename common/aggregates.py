"""Aggregates that Django lacks."""

from typing import Any

from django.db.models import Aggregate, FloatField, IntegerField, QuerySet, Subquery


class Percentile(Aggregate):
    """`percentile_cont`, interpolated between the two nearest values."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(%(share)s) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()

    def __init__(self, expression: Any, *, share: float, **extra: Any) -> None:
        super().__init__(expression, share=float(share), **extra)


class Counted(Subquery):
    """How many rows `rows` has, which names the row outside by OuterRef.

    Where whole models are selected, in place of Count: Django then groups by `id` alone, which is
    not all of the key on a cluster (docs/decisions/0050).
    """

    template = "(SELECT count(*) FROM (%(subquery)s) AS counted)"
    output_field = IntegerField()

    def __init__(self, rows: QuerySet[Any, Any], **extra: Any) -> None:
        super().__init__(rows.order_by().values("pk"), **extra)
