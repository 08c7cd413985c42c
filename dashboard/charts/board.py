"""The charts of the dashboard: which there are, and their words."""

from django.contrib.humanize.templatetags.humanize import intcomma
from django.urls import reverse

from dashboard.charts.chart import Chart, Series, Tone, chart
from dashboard.charts.scale import milliseconds, score, short
from dashboard.reading import Board

DOORS = {"web": "Pages", "chat": "Chat", "api": "API", "command": "Commands"}
TONES: tuple[Tone, ...] = ("one", "two", "three", "four")


def charts(board: Board, *, may_edit: bool) -> list[Chart]:
    """All of them, in their order on the page."""
    return [
        _documents(board, may_edit),
        _passages(board),
        _ingested(board),
        _waiting(board),
        _searches(board),
        _times(board),
        _refused(board),
        _doors(board),
        _quality(board),
    ]


def _number(value: float, one: str, many: str = "") -> str:
    return f"{intcomma(int(value))} {one if value == 1 else many or one + 's'}"


def _documents(board: Board, may_edit: bool) -> Chart:
    failed = board.now.failed
    return chart(
        "documents",
        "Documents",
        range=board.range,
        kind="lines",
        series=[Series("Documents", board.stock.documents)],
        headline=intcomma(board.now.documents),
        about=f"now, {intcomma(failed)} more failed" if failed else "now",
        empty="Upload some documents, and how their number grows is drawn here.",
        link=reverse("collections") if may_edit else "",
        link_text="Add documents",
    )


def _passages(board: Board) -> Chart:
    return chart(
        "passages",
        "Passages",
        range=board.range,
        kind="lines",
        series=[Series("Passages", board.stock.chunks)],
        headline=intcomma(board.now.chunks),
        about="to be found now",
        empty="How many passages there are to be found is drawn here.",
    )


def _ingested(board: Board) -> Chart:
    made = board.ingested
    rate = f", {short(made.rate)} passages a second" if made.rate else ""
    return chart(
        "ingested",
        "Files read",
        range=board.range,
        series=[Series("Ready", made.ready, "one"), Series("Failed", made.failed, "bad")],
        headline=intcomma(sum(made.ready)),
        about=f"in {board.range.kind.label}{rate}",
        empty="How many files are read, and how fast, is drawn here. None were in this time.",
        link=reverse("runs"),
        link_text="All runs",
    )


def _waiting(board: Board) -> Chart:
    now = board.now.waiting
    return chart(
        "waiting",
        "Waiting to be read",
        range=board.range,
        kind="lines",
        series=[Series("Waiting", board.stock.waiting)],
        headline=intcomma(now),
        about="documents now" if now != 1 else "document now",
        empty="Nothing has waited in this time. A queue that grows would be seen here.",
        link=reverse("runs") if now else "",
        link_text="See the runs",
    )


def _searches(board: Board) -> Chart:
    made = board.searched
    total, nothing = sum(made.count), sum(made.nothing)
    found = tuple(count - none for count, none in zip(made.count, made.nothing, strict=True))
    return chart(
        "searches",
        "Searches",
        range=board.range,
        series=[
            Series("Found something", found, "one"),
            Series("Found nothing", made.nothing, "bad"),
        ],
        headline=intcomma(total),
        about=f"in {board.range.kind.label}, {intcomma(nothing)} found nothing",
        empty="How often people and programs search is drawn here. Nobody did in this time.",
        link=reverse("search") if not total else "",
        link_text="Search something",
    )


def _times(board: Board) -> Chart:
    made = board.searched
    median, most = made.total_p50_ms, made.total_p95_ms
    return chart(
        "times",
        "Search time in ms",
        range=board.range,
        kind="lines",
        series=[
            Series("Half within", made.p50_ms, "one"),
            Series("95 % within", made.p95_ms, "two"),
        ],
        headline="–" if median is None else milliseconds(median),
        about="" if most is None else f"for half of them, {milliseconds(most)} for 95 %",
        empty="How long searches take is drawn here.",
        said=milliseconds,
        whole=False,
    )


def _refused(board: Board) -> Chart:
    made = board.searched
    answered = tuple(asked - none for asked, none in zip(made.asked, made.refused, strict=True))
    return chart(
        "refused",
        "Chat questions",
        range=board.range,
        series=[Series("Answered", answered, "one"), Series("Not answered", made.refused, "bad")],
        headline=intcomma(sum(made.asked)),
        about=f"in {board.range.kind.label}, {intcomma(sum(made.refused))} not in the sources",
        empty="Questions asked in the chat are counted here, and how many of them the documents"
        " did not answer.",
        link=reverse("chat") if not sum(made.asked) else "",
        link_text="Ask something",
    )


def _doors(board: Board) -> Chart:
    doors = [door for door in board.searched.doors if sum(door.count)]
    return chart(
        "doors",
        "Where searches come from",
        range=board.range,
        series=[
            Series(DOORS[door.source], door.count, tone)
            for door, tone in zip(doors, TONES, strict=False)
        ],
        headline=intcomma(len(doors)),
        about="door" if len(doors) == 1 else "doors used",
        empty="People search on this page and ask in the chat, programs use the API: how often"
        " each of them does is drawn here.",
        link=reverse("keys") if doors else "",
        link_text="API keys",
    )


def _quality(board: Board) -> Chart:
    lines = board.quality
    return chart(
        "quality",
        "Quality of the answers",
        range=board.range,
        kind="marks",
        series=[
            Series(line.name, line.ndcg, tone) for line, tone in zip(lines, TONES, strict=False)
        ],
        headline=score(lines[0].latest) if lines else "–",
        about=f"of 1, {lines[0].name}: {_number(lines[0].questions, 'judged question')}"
        if lines
        else "",
        empty="Say of some hits that they are good or bad: how high up the good ones come is then"
        " measured, and drawn here.",
        said=score,
        axis=score,
        whole=False,
        top=1.0,
        link=reverse("dashboard_quality"),
        link_text="Question by question" if lines else "How to begin",
    )
