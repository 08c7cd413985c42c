"""What a process of the site gives back of its memory when it has no work: begin with `start`."""

import ctypes
import gc
from collections.abc import Callable
from threading import Thread
from time import process_time, sleep
from typing import Any

from documents import languages
from inference.model_registry import ModelRegistry, embedders, rerankers, token_encoders

INTERVAL_SECONDS = 10.0
#: Models that are loaded again when they are asked for.
MODEL_SECONDS = 300.0
_WORKING_SHARE = 0.05


class IdleMemory:
    """Models and the language detector, where they were not used for a while, and what glibc keeps
    of freed memory for blocks to come: after a batch of documents 60 MB and more for each model.
    """

    def __init__(self) -> None:
        # Other C libraries have no such function, and keep less.
        self._trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._used, self._has_worked = process_time(), True

    def give_back(self) -> None:
        """To be called every INTERVAL_SECONDS. Trims once when the process has worked and works no
        more."""
        before, self._used = self._used, process_time()
        if self._used - before > _WORKING_SHARE * INTERVAL_SECONDS:
            self._has_worked = True
            return
        kinds: tuple[ModelRegistry[Any], ...] = (embedders, rerankers, token_encoders)
        released = [models.release_idle(MODEL_SECONDS) for models in kinds]
        released.append(languages.release_idle(MODEL_SECONDS))
        if any(released):
            gc.collect()  # tokenizers refer to themselves
        if (self._has_worked or any(released)) and self._trim is not None:
            self._trim(0)
            self._has_worked = False


def start() -> None:
    """Give memory back in a thread for as long as the process runs."""
    idle = IdleMemory()

    def work() -> None:
        while True:
            sleep(INTERVAL_SECONDS)
            idle.give_back()

    Thread(target=work, name="idle-memory", daemon=True).start()
