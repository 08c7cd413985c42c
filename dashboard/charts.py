"""Server-rendered SVG charts of the dashboard, and what each shows. Begin with
`dashboard_charts`."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from django.contrib.humanize.templatetags.humanize import intcomma, naturaltime
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, gettext_noop, ngettext

from common.charts import (
    LEFT,
    WIDTH,
    PlotArea,
    Series,
    Tone,
    axis_labels,
    draw_bars,
    draw_line,
    format_short,
    make_plot_area,
    trimmed,
)
from common.translation import format_number
from dashboard.figures import DAY, Figures, Range
from search.models import Evaluation


def format_milliseconds(value: float) -> str:
    """A duration in a suitable unit: 8.5 ms, 120 ms, 1.4 s."""
    if value >= 999.5:
        return f"{trimmed(value / 1000, 1)} s"
    return f"{trimmed(value, 1 if value < 10 else 0)} ms"


def format_score(value: float) -> str:
    """A value from 0 to 1 with two decimals."""
    return format_number(value, 2)


ChartKind = Literal["bars", "lines", "marks"]


class Chart:
    """A picture, its headline number, and the table behind it. `headline` is that number and
    `about` says what it counts. `empty` is the text if there is nothing to draw."""

    def __init__(
        self,
        id: str,
        title: str,
        *,
        range: Range,
        series: Sequence[Series],
        headline: str,
        about: str,
        empty: str,
        kind: ChartKind = "bars",
        format_value: Callable[[float], str] = lambda value: intcomma(int(value)),
        format_axis: Callable[[float], str] = format_short,
        integers: bool = True,
        top: float = 0,
        link: str = "",
        link_text: str = "",
    ) -> None:
        """`marks` are lines through single measurements, `format_value` writes a value and
        `format_axis` one on the axis; `top` is the axis maximum, by default the next round
        value."""
        self.id = id
        self.title = title
        self.series = series
        self.headline = headline
        self.about = about
        self.empty = empty
        self.kind = kind
        self.link = link
        self.link_text = link_text
        count = len(range.starts)
        parts = list(zip(*(each.values for each in series), strict=True)) or [()] * count
        stacks = [[sum(value or 0 for value in part) for part in parts]]
        drawn = stacks if kind == "bars" else [each.values for each in series]
        self.plane = make_plot_area(count, drawn, integers=integers, top=top)
        if kind == "bars":
            draw_bars(self.plane, series)
        else:
            for each in series:
                draw_line(self.plane, each, bridged=kind == "marks")
        self.levels = axis_labels(self.plane, format_axis, integers=integers)
        self.times = _time_labels(self.plane, range)
        self.rows = [
            (
                part_name(start, range),
                ["–" if value is None else format_value(value) for value in part],
            )
            for start, part in zip(range.starts, parts, strict=True)
        ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for each in self.series for value in each.values)

    @property
    def has_area(self) -> bool:
        """Whether the area below the line is filled."""
        return self.kind == "lines" and len(self.series) == 1

    @property
    def has_key(self) -> bool:
        """Whether a legend is needed."""
        return len(self.series) > 1

    @property
    def description(self) -> str:
        """The text alternative of the picture."""
        return f"{self.title}: {self.headline} {self.about}."


def _time_labels(plane: PlotArea, range: Range) -> list[tuple[float, str]]:
    """Labels for some hours, days or dates; those that would cross the edge are left out."""
    every, form = {
        "24h": (timedelta(hours=6), "H:i"),
        "7d": (DAY, "D"),
        "30d": (7 * DAY, "j M"),
    }[range.name]
    labels = []
    for place, start in enumerate(range.starts):
        # Weeks are counted back from the last part, shorter steps from midnight.
        since = range.starts[-1] if every >= 7 * DAY else start.replace(hour=0, minute=0)
        if (since - start) % every == timedelta(0):
            labels.append((plane.x(place), date_format(start, form)))
    return [(at, text) for at, text in labels if LEFT <= at < WIDTH - 3 * _HALF_LABEL_WIDTH]


_HALF_LABEL_WIDTH = 9


def part_name(start: datetime, range: Range) -> str:
    """Label of a part: its day, or its day and hours."""
    if range.step >= DAY:
        return date_format(start, gettext("D j M"))
    end = start + range.step
    first = date_format(start, gettext("D j M, H"))
    return f"{first}–{date_format(end, 'H')} h"


#: Field, label and colour of each metric drawn.
METRICS: tuple[tuple[str, str, Tone], ...] = (
    ("ndcg", "nDCG@10", "one"),
    ("recall", "Recall@10", "two"),
    ("mrr", "MRR", "three"),
)


def metric_curves(history: Sequence[Evaluation]) -> dict[str, Any] | None:
    """The metrics over a collection's evaluations with figures, oldest first, evenly spaced, with a
    label at both ends; None for fewer than two."""
    if len(history) < 2:
        return None
    curves = [
        Series(label, [getattr(row, name) for row in history], tone)
        for name, label, tone in METRICS
    ]
    values = [each.values for each in curves]
    plane = make_plot_area(len(history), values, integers=False, top=1.0)
    ends = ", ".join(
        gettext("{name} from {first} to {last}").format(
            name=name, first=format_score(first or 0), last=format_score(last or 0)
        )
        for name, (first, *_, last) in ((each.name, each.values) for each in curves)
    )
    return {
        "curves": [draw_line(plane, each) for each in curves],
        "levels": axis_labels(plane, format_score, integers=False),
        "first": date_format(localtime(history[0].created_at), gettext("j M, H:i")),
        "last": str(naturaltime(history[-1].created_at)),
        "description": gettext("Over {number} evaluations: {ends}.").format(
            number=len(history), ends=ends
        ),
    }


SOURCE_NAMES = {
    "web": gettext_noop("Pages"),
    "chat": gettext_noop("Chat"),
    "api": gettext_noop("API"),
    "command": gettext_noop("Commands"),
}
SERIES_TONES: tuple[Tone, ...] = ("one", "two", "three", "four")


def dashboard_charts(board: Figures, *, may_edit: bool) -> list[Chart]:
    """All charts in the order of the page."""
    return [
        *_document_charts(board, may_edit),
        *_ingestion_charts(board),
        *_search_charts(board),
        *_source_charts(board),
        _quality(board),
    ]


def _document_charts(board: Figures, may_edit: bool) -> list[Chart]:
    failed = board["now"]["failed"]
    return [
        Chart(
            "documents",
            gettext("Documents"),
            range=board["range"],
            kind="lines",
            series=[Series(gettext("Documents"), board["stock"]["documents"])],
            headline=intcomma(board["now"]["documents"]),
            about=gettext("now, {failed} more failed").format(failed=intcomma(failed))
            if failed
            else gettext("now"),
            empty=gettext("Upload some documents. Their number over time appears here."),
            link=reverse("collections") if may_edit else "",
            link_text=gettext("Add documents"),
        ),
        Chart(
            "passages",
            gettext("Passages"),
            range=board["range"],
            kind="lines",
            series=[Series(gettext("Passages"), board["stock"]["chunks"])],
            headline=intcomma(board["now"]["chunks"]),
            about=gettext("searchable now"),
            empty=gettext("The number of searchable passages appears here."),
        ),
    ]


def _ingestion_charts(board: Figures) -> list[Chart]:
    made = board["ingested"]
    rate = (
        gettext(", {rate} passages a second").format(rate=format_short(made["rate"]))
        if made["rate"]
        else ""
    )
    now = board["now"]["waiting"]
    return [
        Chart(
            "ingested",
            gettext("Files ingested"),
            range=board["range"],
            series=[
                Series(gettext("Ready"), made["ready"], "one"),
                Series(gettext("Failed"), made["failed"], "bad"),
            ],
            headline=intcomma(sum(made["ready"])),
            about=gettext("in {label}{rate}").format(label=board["range"].label, rate=rate),
            empty=gettext("No files were ingested in this period."),
            link=reverse("runs"),
            link_text=gettext("All runs"),
        ),
        Chart(
            "waiting",
            gettext("Queue"),
            range=board["range"],
            kind="lines",
            series=[Series(gettext("Waiting"), board["stock"]["waiting"])],
            headline=intcomma(now),
            about=gettext("documents now") if now != 1 else gettext("document now"),
            empty=gettext("Nothing was queued in this period."),
            link=reverse("runs") if now else "",
            link_text=gettext("Show runs"),
        ),
    ]


def _search_charts(board: Figures) -> list[Chart]:
    made = board["searched"]
    total, nothing = sum(made["count"]), sum(made["nothing"])
    found = tuple(count - none for count, none in zip(made["count"], made["nothing"], strict=True))
    median, most = made["total_p50_ms"], made["total_p95_ms"]
    return [
        Chart(
            "searches",
            gettext("Searches"),
            range=board["range"],
            series=[
                Series(gettext("Found something"), found, "one"),
                Series(gettext("Found nothing"), made["nothing"], "bad"),
            ],
            headline=intcomma(total),
            about=gettext("in {label}, {nothing} found nothing").format(
                label=board["range"].label, nothing=intcomma(nothing)
            ),
            empty=gettext(
                "The number of searches by people and programs appears here. None in this period."
            ),
            link=reverse("search") if not total else "",
            link_text=gettext("Search something"),
        ),
        Chart(
            "times",
            gettext("Search time in ms"),
            range=board["range"],
            kind="lines",
            series=[
                Series(gettext("Half under"), made["p50_ms"], "one"),
                Series(gettext("95 % under"), made["p95_ms"], "two"),
            ],
            headline="–" if median is None else format_milliseconds(median),
            about=""
            if most is None
            else gettext("for half of them, {most} for 95 %").format(
                most=format_milliseconds(most)
            ),
            empty=gettext("Search times appear here."),
            format_value=format_milliseconds,
            integers=False,
        ),
    ]


def _source_charts(board: Figures) -> list[Chart]:
    made = board["searched"]
    answered = tuple(
        asked - none for asked, none in zip(made["asked"], made["refused"], strict=True)
    )
    doors = [door for door in made["doors"] if sum(door["count"])]
    return [
        Chart(
            "refused",
            gettext("Chat questions"),
            range=board["range"],
            series=[
                Series(gettext("Answered"), answered, "one"),
                Series(gettext("Not answered"), made["refused"], "bad"),
            ],
            headline=intcomma(sum(made["asked"])),
            about=gettext("in {label}, {refused} not in the sources").format(
                label=board["range"].label, refused=intcomma(sum(made["refused"]))
            ),
            empty=gettext(
                "The number of chat questions appears here, with those the documents did"
                " not answer."
            ),
            link=reverse("chat") if not sum(made["asked"]) else "",
            link_text=gettext("Ask something"),
        ),
        Chart(
            "doors",
            gettext("Search sources"),
            range=board["range"],
            series=[
                Series(gettext(SOURCE_NAMES[door["source"]]), door["count"], tone)
                for door, tone in zip(doors, SERIES_TONES, strict=False)
            ],
            headline=intcomma(len(doors)),
            about=gettext("source") if len(doors) == 1 else gettext("sources used"),
            empty=gettext(
                "The number of searches on the search page, in the chat and through the"
                " API appears here."
            ),
            link=reverse("keys") if doors else "",
            link_text=gettext("API keys"),
        ),
    ]


def _quality(board: Figures) -> Chart:
    lines = board["quality"]
    judged = lines[0]["questions"] if lines else 0
    return Chart(
        "quality",
        gettext("Retrieval quality"),
        range=board["range"],
        kind="marks",
        series=[
            Series(line["name"], line["ndcg"], tone)
            for line, tone in zip(lines, SERIES_TONES, strict=False)
        ],
        headline=format_score(lines[0]["latest"]) if lines else "–",
        about=ngettext(
            "of 1, {name}: {number} judged question",
            "of 1, {name}: {number} judged questions",
            judged,
        ).format(name=lines[0]["name"], number=intcomma(judged))
        if lines
        else "",
        empty=gettext(
            "Rate some hits as good or bad. The rank of the good ones is then measured"
            " and appears here."
        ),
        format_value=format_score,
        format_axis=format_score,
        integers=False,
        top=1.0,
        link=reverse("dashboard_quality"),
        link_text=gettext("Question by question") if lines else gettext("Getting started"),
    )
