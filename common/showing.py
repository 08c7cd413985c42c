"""What commands show: tables for people, JSON for programs, and a stranger's text as text."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.management.base import OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.timezone import localtime
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from common.unseen import written_out

CELL_CHARACTERS = 300
MOST_COLUMNS = 100_000


@dataclass(frozen=True, slots=True)
class Shown:
    """What came of an action: `data` as JSON; or a table and lines below it. `code` is the exit
    code."""

    data: Any
    lines: tuple[str, ...] = ()
    table: Table | None = None
    code: int = 0


def show(shown: Shown, *, to: OutputWrapper, as_json: bool) -> None:
    """Print it, where `to` prints."""
    if as_json:
        to.write(json.dumps(shown.data, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2))
        return
    if shown.table is not None:
        print_table(shown.table)
    for line in shown.lines:
        to.write(line)


def print_table(table: Table, *, to_stderr: bool = False) -> None:
    """As wide as its longest words, also beyond the terminal: ids and names that are broken in the
    middle cannot be copied. Where no terminal reads it, each row is one line."""
    console = Console(stderr=to_stderr)
    unlimited = console.options.update(width=MOST_COLUMNS)
    needed = Measurement.get(console, unlimited, table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table, crop=False)


def table_of(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of whatever the cells are. Nothing in them is markup or moves the cursor. Where it is
    wider than the terminal, cells of several words wrap between words, and no others do."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    cells = [[cell(each) for each in row] for row in rows]
    for place, heading in enumerate(headings):
        texts = [row[place] for row in cells]
        words = [word for text in (heading, *texts) for word in text.split()]
        table.add_column(
            heading,
            overflow="fold",
            no_wrap=not any(" " in text for text in texts),
            min_width=max(map(cell_len, words), default=0),
        )
    for row in cells:
        table.add_row(*map(Text, row))
    return table


def cell(value: Any) -> str:
    """One line, shortened."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{localtime(value):%Y-%m-%d %H:%M}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:z.3f}"  # never “-0.000”
    line = " ".join(str(value).split())
    return visible(line if len(line) <= CELL_CHARACTERS else f"{line[:CELL_CHARACTERS]}…")


def visible(text: str) -> str:
    """What a terminal would obey, or nobody would see, is written out."""
    return written_out(text, lambda letter: letter.encode("unicode_escape").decode())
