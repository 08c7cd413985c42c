"""What a benchmark measured, for a terminal."""

from rich.box import SIMPLE
from rich.table import Table

from search.evaluation.benchmark import MOST_GROWTH, Benchmark, Growth, Speed, Spread


def speed_table(measured: Benchmark) -> Table:
    """A row a size and mode; what exceeds its bound is red."""
    table = Table("mode", title="searches, milliseconds p50/p95", box=SIMPLE, pad_edge=False)
    for name in ("chunks", "SQL alone", "service", "p50 ×", "with snippets", "a second"):
        table.add_column(name, justify="right", no_wrap=name != "with snippets")
    for speed in measured.speeds:
        table.add_row(
            speed.mode,
            f"{speed.chunks:,}",
            _shown(speed.bare),
            _shown(speed.service),
            _times(speed),
            _shown(speed.page),
            f"{speed.per_second:,.0f}",
            style=None if speed.is_held else "red",
        )
    return table


def growth_sentence(growth: Growth) -> str:
    """How search by words grew, and whether that is within its bound."""
    held = "" if growth.is_held else ", which is exceeded"
    return (
        f"Search by words, SQL alone: p95 at {growth.largest:,} chunks is {growth.times:.2f} times"
        f" that at {growth.smallest:,}; at most {MOST_GROWTH:g}{held}."
    )


def _shown(spread: Spread) -> str:
    return f"{spread.p50_ms:.3g}/{spread.p95_ms:.3g}"


def _times(speed: Speed) -> str:
    """How many times the SQL the service took, and may take."""
    bound = speed.bound_ms / speed.bare.p50_ms
    return f"{speed.times_bare:.2f} {'≤' if speed.is_held else '>'} {bound:.2f}"
