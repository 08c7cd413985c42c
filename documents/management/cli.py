"""Helpers of management commands: the progress bar, workspaces and collections by slug, output
files, and Ctrl-C that cancels a run."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType, TracebackType
from typing import Any, BinaryIO, Self, TypeVar

from django.db import connection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from accounts.models import Workspace
from common.errors import NotFound, RagsiteError
from common.text import pluralized
from documents import services
from documents.models import Collection, IngestionRun
from documents.transfer.format import STANDARD_STREAM, open_for_writing


class ProgressBar:
    """A progress bar on standard error; prints nothing if `quiet`."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=quiet,
        )
        self._task = self._progress.add_task(what, total=None, detail="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def show(self, done: int, total: int, detail: str = "") -> None:
        self._progress.update(self._task, total=total, completed=done, detail=detail)

    def show_run(self, run: IngestionRun) -> None:
        """Draw the progress of an ingestion run."""
        detail = f"{pluralized(run.embedded, 'chunk')} embedded, {run.failed} failed"
        self.show(run.settled, run.total, detail)


def get_collection_by_slug(*, workspace: str, slug: str) -> Collection:
    """The collection; raises NotFound, and creates no workspace, for a misspelt name."""
    return services.get_collection(workspace=get_workspace_by_slug(workspace), slug=slug)


def get_workspace_by_slug(slug: str) -> Workspace:
    """The workspace; raises NotFound that lists the existing ones."""
    found = Workspace.objects.filter(slug=slug).first()
    if found is None:
        slugs = ", ".join(Workspace.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise NotFound(f"There is no workspace “{slug}”. There are: {slugs or 'none yet'}.")
    return found


T = TypeVar("T")

#: 128 + 13, the exit code of a command ended by SIGPIPE.
SIGPIPE_EXIT_CODE = 141


def write_output(output: str, write: Callable[[BinaryIO], T]) -> T:
    """The result of `write`; `-` is standard output, and `.gz` is compressed. Raises OSError.

    A file appears only when it is complete. If the reader of standard output stops, such as `head`,
    the command exits as if by SIGPIPE.
    """
    if output == STANDARD_STREAM:
        try:
            with open_for_writing(STANDARD_STREAM) as file:
                result = write(file)
                file.flush()
        except BrokenPipeError:
            # At exit Python flushes once more, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(SIGPIPE_EXIT_CODE)
        return result
    part = Path(f"{output}.part{'.gz' if output.endswith('.gz') else ''}")
    try:
        with open_for_writing(str(part)) as file:
            result = write(file)
        part.replace(output)
    finally:
        with suppress(FileNotFoundError):
            part.unlink()
    return result


#: The exit code of a program ended by SIGINT.
INTERRUPTED_EXIT_CODE = 128 + signal.SIGINT


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
        if current_thread() is main_thread():  # only there can signals be caught
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._thread.join()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._run is None:
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.was_interrupted = True
        self._thread = Thread(target=self._cancel, args=[self._run.pk])
        self._thread.start()

    def _cancel(self, run_id: int) -> None:
        try:
            self._say("Cancelling the run. Ctrl-C again ends at once.")
            services.cancel_run(run=IngestionRun.objects.get(pk=run_id))
        except RagsiteError as error:
            self._say(str(error))
        finally:
            connection.close()
