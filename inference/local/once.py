"""Loads a model on first use, once, however many threads ask for it."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from inference.base import BackendUnavailable

T = TypeVar("T")


class LoadOnce(Generic[T]):
    """Called, it gives what `load` made; a load that fails is tried again at the next call."""

    def __init__(self, load: Callable[[], T]) -> None:
        """`load` imports torch itself, which takes seconds: only who runs a model pays for it."""
        self._load = load
        self._loading = threading.Lock()
        self._loaded: T | None = None

    def __call__(self) -> T:
        """Raises BackendUnavailable."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._made()
            return self._loaded

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def _made(self) -> T:
        # Read when torch is loaded. Threads that spin while they wait take the cores from each
        # other: a query beside a busy worker took 820 ms on two cores, without spinning 32 ms.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        try:
            return self._load()
        except ImportError as error:
            raise BackendUnavailable(
                f"local models need torch and transformers ({error}): `pip install torch"
                " transformers`, or configure a remote backend."
            ) from error
