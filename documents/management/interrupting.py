"""Ctrl-C while a command ingests."""

import signal
from collections.abc import Callable
from threading import Thread, current_thread, main_thread
from types import FrameType, TracebackType
from typing import Any, Self

from django.db import connection

from common.errors import RagsiteError
from documents import services
from documents.models import IngestionRun

#: What a shell says of a program that SIGINT ended.
EXIT_CODE = 128 + signal.SIGINT


class CancelOnInterrupt:
    """While it is entered, Ctrl-C cancels the run that is shown by what `watching` gave: what is
    under way is waited for, and loaded no more. A second Ctrl-C kills.

    The run is cancelled in a thread and a connection of its own, because the signal may come in the
    middle of a statement.
    """

    def __init__(self, say: Callable[[str], Any]) -> None:
        self.was_interrupted = False
        self._say = say
        self._run: IngestionRun | None = None
        self._thread: Thread | None = None
        self._before: Any = None

    def watching(self, show: Callable[[IngestionRun], Any]) -> Callable[[IngestionRun], None]:
        """`show`, which tells the run by the way."""

        def shown(run: IngestionRun) -> None:
            self._run = run
            show(run)

        return shown

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
