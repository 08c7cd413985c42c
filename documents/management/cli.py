"""Helpers of management commands: collections by slug, the progress bar, and Ctrl-C that cancels a
run."""

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread, current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any, Self

from django.db import DatabaseError, connection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from accounts.services import DEFAULT_WORKSPACE, get_or_create_workspace, get_workspace_by_slug
from common.console import Options, add_json_option
from common.errors import NotFound, RagsiteError
from common.text import pluralized
from documents import services
from documents.models import Collection, IngestionItem, IngestionRun


def add_collection_options(
    parser: ArgumentParser, help: str = "slug", *, required: bool = True
) -> None:
    """The options `--collection`, `--workspace` and `--json`."""
    parser.add_argument("--collection", required=required, help=help)
    parser.add_argument("--workspace", default=DEFAULT_WORKSPACE, help="slug")
    add_json_option(parser)


def get_collection_by_slug(*, workspace: str, slug: str) -> Collection:
    """The collection; raises NotFound, and creates no workspace, for a misspelt name."""
    return services.get_collection(workspace=get_workspace_by_slug(workspace), slug=slug)


def find_collection(options: Options) -> Collection | None:
    """The collection that the options name, if any. Raises NotFound."""
    slug = options["collection"]
    return get_collection_by_slug(workspace=options["workspace"], slug=slug) if slug else None


def existing_collection(options: Options) -> Collection | None:
    """The collection that the options name; None where it, or its workspace, does not exist."""
    with suppress(NotFound):
        return get_collection_by_slug(workspace=options["workspace"], slug=options["collection"])
    return None


def get_or_create_collection(options: Options) -> Collection:
    """The collection that the options name, made when missing with its workspace."""
    workspace = get_or_create_workspace(slug=options["workspace"])
    return services.get_or_create_collection(workspace=workspace, slug=options["collection"])


class ProgressBar(Progress):
    """A progress bar on standard error, where that is a terminal; prints nothing if `quiet`."""

    def __init__(self, what: str, *, quiet: bool = False) -> None:
        super().__init__(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet or not sys.stderr.isatty(),
        )
        self._task = self.add_task(what, total=None, detail="")

    def show(self, done: int, total: int, detail: str = "") -> None:
        self.update(self._task, total=total, completed=done, detail=detail)

    def show_run(self, run: IngestionRun) -> None:
        """Draw the progress of an ingestion run."""
        detail = f"{pluralized(run.embedded, 'chunk')} embedded, {run.failed} failed"
        self.show(run.settled, run.total, detail)


#: Between two lines about a run that goes on.
LINE_SECONDS = 5.0
_NAMES_SHOWN = 3


class ProgressLines:
    """Context manager: a line about the run that `show_run` gets, every LINE_SECONDS until the end.

    For output that is no terminal, and `--json`, which would be silent while a large file is read.
    """

    def __init__(self, say: Callable[[str], Any]) -> None:
        self._say = say
        self._ended = Event()
        self._thread: Thread | None = None
        self._started = monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def show_run(self, run: IngestionRun) -> None:
        """Begin to write about the run."""
        if self._thread is None:
            self._thread = Thread(target=self._write, args=[run.pk], daemon=True)
            self._thread.start()

    def _write(self, run_id: int) -> None:
        while not self._ended.wait(LINE_SECONDS):
            try:
                run = IngestionRun.objects.filter(pk=run_id).first()
                if run is not None:
                    self._say(f"{monotonic() - self._started:.0f} s: {progress_line(run)}")
            except DatabaseError as error:
                self._say(str(error).strip())
            finally:
                connection.close()


def progress_line(run: IngestionRun) -> str:
    """How far a run is, and the names of files that are worked on."""
    active = run.items.filter(
        state__in=[IngestionItem.State.PARSING, IngestionItem.State.EMBEDDING]
    )
    names = list(active.order_by("pk").values_list("name", flat=True)[: _NAMES_SHOWN + 1])
    more = ", …" if len(names) > _NAMES_SHOWN else ""
    at = f"; at {', '.join(names[:_NAMES_SHOWN])}{more}" if names else ""
    return (
        f"{run.settled:,} of {pluralized(run.total, 'document')} done,"
        f" {pluralized(run.embedded, 'chunk')} embedded, {run.failed:,} failed{at}"
    )


def run_display(say: Callable[[str], Any], *, json: bool) -> ProgressBar | ProgressLines:
    """The bar on a terminal, lines elsewhere and beside JSON."""
    return ProgressBar("files") if sys.stderr.isatty() and not json else ProgressLines(say)


class CancelOnInterrupt:
    """Context manager: Ctrl-C cancels the run that was passed to the callback of `wrap_progress`;
    running work is awaited and no longer loaded. A second Ctrl-C kills the process.

    The run is cancelled in a thread with its own connection, because the signal may arrive in the
    middle of a statement.
    """

    def __init__(self, say: Callable[[str], Any]) -> None:
        self.was_interrupted = False
        self._say = say
        self._run: IngestionRun | None = None
        self._thread: Thread | None = None
        self._before: Any = None

    def wrap_progress(self, show: Callable[[IngestionRun], Any]) -> Callable[[IngestionRun], None]:
        """`show`, which also remembers the run to cancel."""

        def report(run: IngestionRun) -> None:
            self._run = run
            show(run)

        return report

    def has_ended(self, run: IngestionRun | None) -> bool:
        """Whether Ctrl-C has cancelled the run."""
        return self.was_interrupted and run is not None and run.state == run.State.CANCELLED

    def __enter__(self) -> Self:
        def interrupt(number: int, frame: FrameType | None) -> None:
            if self._run is None:
                raise KeyboardInterrupt
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self.was_interrupted = True
            self._thread = Thread(target=self._cancel, args=[self._run.pk])
            self._thread.start()

        if current_thread() is main_thread():  # only there can signals be caught
            self._before = signal.signal(signal.SIGINT, interrupt)
        return self

    def __exit__(self, *error: object) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _cancel(self, run_id: int) -> None:
        try:
            self._say("Cancelling the run. Ctrl-C again ends at once.")
            services.cancel_run(run=IngestionRun.objects.get(pk=run_id))
        except RagsiteError as error:
            self._say(str(error))
        finally:
            connection.close()
