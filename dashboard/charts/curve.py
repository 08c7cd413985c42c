"""One measure of a collection over its evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils.formats import date_format
from django.utils.timezone import localtime

from dashboard.charts import drawing
from dashboard.charts.chart import Label
from dashboard.charts.drawing import Line, Plane
from dashboard.charts.scale import score
from search.models import Evaluation

#: What is drawn of an evaluation, with its colour.
DRAWN = (("ndcg", "nDCG@10", "one"), ("recall", "Recall@10", "two"), ("mrr", "MRR", "three"))


@dataclass(frozen=True, slots=True)
class Curve:
    """A line and what it is called."""

    name: str
    tone: str
    line: Line


@dataclass(frozen=True, slots=True)
class Curves:
    """The measures side by side, one place for each evaluation, with a label at both ends."""

    plane: Plane
    curves: tuple[Curve, ...]
    levels: tuple[Label, ...]
    first: str
    last: str
    description: str


def curves(history: Sequence[Evaluation]) -> Curves | None:
    """Of evaluations with figures, oldest first; None for fewer than two."""
    if len(history) < 2:
        return None
    values = {name: [getattr(row, name) for row in history] for name, _, _ in DRAWN}
    plane = drawing.plane(len(history), list(values.values()), whole=False, top=1.0)
    ends = ", ".join(
        f"{label} from {score(values[name][0])} to {score(values[name][-1])}"
        for name, label, _ in DRAWN
    )
    return Curves(
        plane=plane,
        curves=tuple(
            Curve(label, tone, drawing.line(plane, values[name])) for name, label, tone in DRAWN
        ),
        levels=tuple(
            Label(tick.at, score(tick.value)) for tick in drawing.levels(plane, whole=False)
        ),
        first=date_format(localtime(history[0].created_at), "j M, H:i"),
        last=str(naturaltime(history[-1].created_at)),
        description=f"Over {len(history)} evaluations: {ends}.",
    )
