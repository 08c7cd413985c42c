"""Base of management commands, and their output: tables for people, JSON for programs, stored text
escaped. Begin with `ServiceCommand`."""

import json
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser, OutputWrapper
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError
from django.utils.timezone import localtime

from common.checks import SETTINGS
from common.errors import ExplainedError
from common.shards import MAIN, current_shard, each_shard, on_shard
from common.text import escape_nonprinting

if TYPE_CHECKING:
    from rich.table import Table

CELL_CHARACTERS = 300
MAX_TABLE_WIDTH = 100_000


#: Exit code where nothing was done.
FATAL = 2
#: Exit code where a part was not done.
PARTIAL = 1
#: Exit code of a program ended by SIGINT.
INTERRUPTED = 128 + signal.SIGINT


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """Result of a command: `data` for `--json`; or `warnings` on standard error, a table where it
    has rows, and lines below it. Without `data` these are printed with `--json` too. `code` is the
    exit code.
    """

    data: Any = None
    lines: Sequence[str] = ()
    headings: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    warnings: Sequence[str] = ()
    code: int = 0


Options = Mapping[str, Any]
Action = Callable[[Options], CommandOutput | None]
AddAction = Callable[..., ArgumentParser]


def add_json_option(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


class ServiceCommand(BaseCommand):
    """A command that calls services. `run`, or the action that is named on the command line,
    returns what to print; an error that explains itself becomes a CommandError with exit code 2.
    """

    # Checks of pages and URLs would take longer than most commands.
    requires_system_checks = [SETTINGS]
    #: Whether all it works with is in the main database, where there are shards.
    stays_in_main: ClassVar[bool] = False

    def add_actions(self, parser: ArgumentParser, *shared: ArgumentParser) -> AddAction:
        """The function that adds an action, such as `list` of `manage.py runs list`: its name, what
        `run` calls, its help, and whether it has the options of `shared` beside `--json`."""
        actions = parser.add_subparsers(dest="action", required=True)
        printed = ArgumentParser(add_help=False)
        add_json_option(printed)

        def add(name: str, act: Action, meaning: str, *, is_shared: bool = True) -> ArgumentParser:
            parents = [*shared, printed] if is_shared else [printed]
            made: ArgumentParser = actions.add_parser(name, parents=parents, help=meaning)
            made.set_defaults(act=act)
            return made

        return add

    def run(self, options: Options) -> CommandOutput | None:
        """The result; None where everything is printed already."""
        act: Action = options["act"]
        return act(options)

    def create_parser(self, *args: Any, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(*args, **kwargs)
        if settings.DATABASE_SHARDS:
            parser.add_argument(
                "--shard",
                choices=("main", *settings.DATABASE_SHARDS),
                help="the server to work on, where the command names no workspace",
            )
        return parser

    def is_about_site(self, options: Options) -> bool:
        """Whether the command works on each shard in turn, where none is named."""
        return False

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DATABASE_SHARDS:
            self._run_here(options)
            return
        named = options.get("shard")
        if named or self.stays_in_main:
            with on_shard(MAIN if named in (None, "main") else named):
                self._run_here(options)
        elif not self.is_about_site(options):
            with on_shard(MAIN, is_open=True):  # until it looks up its workspace
                self._run_here(options)
        else:
            codes = []
            for shard in each_shard():
                self.stderr.write(f"{shard or 'main'}:")
                codes.append(self._run_here(options, exits=False))
            if any(codes):
                sys.exit(max(codes))

    def _run_here(self, options: Options, *, exits: bool = True) -> int:
        """Run once and print; the exit code."""
        try:
            output = self.run(options)
        except BrokenPipeError:
            raise
        except (ExplainedError, OSError) as error:
            raise CommandError(str(error), returncode=FATAL) from error
        except OperationalError as error:
            if not (shard := current_shard()):
                raise
            said = str(error).splitlines()[0]
            raise CommandError(
                f"Shard {shard} does not answer: {said}", returncode=FATAL
            ) from error
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        if output is None:
            return 0
        if options.get("json") and output.data is not None:
            self.print_json(output.data)
        else:
            for line in output.warnings:
                self.stderr.write(line)
            if output.rows:
                print_table(make_table(output.headings, output.rows), stream=self.stdout)
            for line in output.lines:
                self.stdout.write(line)
        if output.code and exits:
            sys.exit(output.code)
        return output.code

    def print_json(self, data: Any) -> None:
        self.stdout.write(json.dumps(data, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2))

    def show_progress(self, what: str, done: int, total: int) -> None:
        """Overwrite one line of the terminal."""
        if sys.stderr.isatty():
            self.stderr.write(f"\r{what} {done:,}/{total:,}   ", ending="")


def print_table(table: "Table", *, stream: TextIO | OutputWrapper | None = None) -> None:
    """As wide as its longest words, also beyond the terminal: ids and names that are broken in the
    middle cannot be copied. Where no terminal reads it, each row is one line."""
    from rich.console import Console  # noqa: PLC0415 (`search` and `ask` need no table)
    from rich.measure import Measurement  # noqa: PLC0415

    console = Console(file=cast("TextIO | None", stream))
    unlimited = console.options.update(width=MAX_TABLE_WIDTH)
    needed = Measurement.get(console, unlimited, table)
    console.width = max(console.width, needed.minimum) if console.is_terminal else needed.maximum
    console.print(table, crop=False)


def make_table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> "Table":
    """A table of the cells, with markup and control characters escaped."""
    from rich import box  # noqa: PLC0415
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

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
