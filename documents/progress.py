"""Progress on a terminal."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from common.wording import counted
from documents.models import IngestionRun


class Bar:
    """A bar on standard error; nothing at all where `quiet`."""

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
        """Draw it as it is now."""
        self._progress.update(self._task, total=total, completed=done, detail=detail)

    def show_run(self, run: IngestionRun) -> None:
        """The same for an ingestion run."""
        detail = f"{counted(run.embedded, 'chunk')} embedded, {run.failed} failed"
        self.show(run.settled, run.total, detail)
