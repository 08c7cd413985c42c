"""Who runs nodes at the same time: threads, or in tests whoever decides what comes when."""

import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Protocol

Task = Callable[[], None]


class Crew(Protocol):
    """Starts tasks, and hands what they post to the one who waits for it."""

    def start(self, task: Task, *, name: str) -> None:
        """Begin a task; it never raises."""

    def post(self, message: object) -> None:
        """From within a task: tell whoever waits."""

    def take(self, seconds: float) -> list[object]:
        """All that was posted, at least one unless none came for so many seconds."""


class Threads:
    """A thread for each task. They are daemons: one that hangs keeps no process from ending."""

    def __init__(self) -> None:
        self._posted: queue.SimpleQueue[object] = queue.SimpleQueue()

    def start(self, task: Task, *, name: str) -> None:
        # What this thread is known by in logs, and what ends it, hold for the task as well.
        context = copy_context()
        threading.Thread(target=context.run, args=(task,), name=name, daemon=True).start()

    def post(self, message: object) -> None:
        self._posted.put(message)

    def take(self, seconds: float) -> list[object]:
        try:
            taken = [self._posted.get(timeout=max(seconds, 0.0))]
        except queue.Empty:
            return []
        while True:
            try:
                taken.append(self._posted.get_nowait())
            except queue.Empty:
                return taken
