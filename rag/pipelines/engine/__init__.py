"""Running a pipeline: threads, and nothing of Django."""

from rag.pipelines.engine.calls import (
    Input,
    Ledger,
    NodeCall,
    NodeResult,
    RunError,
    Runner,
    Use,
)
from rag.pipelines.engine.progress import Ended, Finished, Happening, Piece, Started
from rag.pipelines.engine.running import run

__all__ = [
    "Ended",
    "Finished",
    "Happening",
    "Input",
    "Ledger",
    "NodeCall",
    "NodeResult",
    "Piece",
    "RunError",
    "Runner",
    "Started",
    "Use",
    "run",
]
