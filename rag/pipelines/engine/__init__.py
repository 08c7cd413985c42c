"""The engine that runs a pipeline: `run` yields `EngineEvent`s. Threads, without Django."""

from rag.pipelines.engine.executor import run
from rag.pipelines.engine.scheduler import (
    CallRecord,
    EngineEvent,
    Ledger,
    NodeCall,
    NodeEnded,
    NodeInput,
    NodeResult,
    NodeStarted,
    OutputPiece,
    RunError,
    RunFinished,
    Runner,
)

__all__ = [
    "CallRecord",
    "EngineEvent",
    "Ledger",
    "NodeCall",
    "NodeEnded",
    "NodeInput",
    "NodeResult",
    "NodeStarted",
    "OutputPiece",
    "RunError",
    "RunFinished",
    "Runner",
    "run",
]
