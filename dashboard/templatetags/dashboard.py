"""Template filters for metrics and their changes."""

from django import template

from dashboard.charts import format_score as as_score

register = template.Library()


@register.filter
def score(value: float | None) -> str:
    """A metric from 0 to 1 with two decimals."""
    return "–" if value is None else as_score(value)


@register.filter
def signed(change: float) -> str:
    """A change with its sign."""
    if abs(change) < 0.005:
        return "±0"
    return f"{'+' if change > 0 else '−'}{abs(change):.2f}"
