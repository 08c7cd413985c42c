"""Output of management commands: tables for people, JSON for programs, stored text escaped."""

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

from common.text import escape_nonprinting

CELL_CHARACTERS = 300
MAX_TABLE_WIDTH = 100_000


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Result of an action: `data` as JSON; or a table and lines below it. `code` is the
    exit code.
    """

    data: Any
    lines: tuple[str, ...] = ()
    table: Table | None = None
    code: int = 0


def print_output(output: CommandOutput, *, stream: OutputWrapper, as_json: bool) -> None:
    """Print the result as JSON, or as table and lines."""
    if as_json:
        stream.write(json.dumps(output.data, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2))
        return
    if output.table is not None:
        print_table(output.table)
    for line in output.lines:
        stream.write(line)


def print_table(table: Table, *, to_stderr: bool = False) -> None:
    """As wide as its longest words, also beyond the terminal: ids and names that are broken in the
    middle cannot be copied. Where no terminal reads it, each row is one line."""
    console = Console(stderr=to_stderr)
    unlimited = console.options.update(width=MAX_TABLE_WIDTH)
    needed = Measurement.get(console, unlimited, table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table, crop=False)


def make_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """A table of the cells, with markup and control characters escaped."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    cells = [[format_cell(each) for each in row] for row in rows]
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


def format_cell(value: Any) -> str:
    """One line, shortened to 300 characters."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{localtime(value):%Y-%m-%d %H:%M}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:z.3f}"  # never “-0.000”
    line = " ".join(str(value).split())
    return terminal_safe(line if len(line) <= CELL_CHARACTERS else f"{line[:CELL_CHARACTERS]}…")


def terminal_safe(text: str) -> str:
    """`text` with control and invisible characters escaped."""
    return escape_nonprinting(text, lambda letter: letter.encode("unicode_escape").decode())
