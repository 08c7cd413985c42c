"""What an engine tells while a pipeline runs. Times are the engine's clock, in seconds."""

from dataclasses import dataclass
from typing import Literal

from rag.pipelines.engine.calls import NodeCall, NodeResult, State


@dataclass(frozen=True, slots=True)
class Started:
    """A node's turn has come."""

    call: NodeCall
    at: float


@dataclass(frozen=True, slots=True)
class Ended:
    """A node is done, or was stopped. `result` is there when it is done, else `error`."""

    call: NodeCall
    started: float
    at: float
    state: Literal["done", "failed", "cancelled"]
    result: NodeResult | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer: a text, or what a node emitted between its texts."""

    node: str
    item: object


@dataclass(frozen=True, slots=True)
class Finished:
    """Always the last. `output` is the answer; if the run failed, what there was of it."""

    state: State
    output: str
    started: float
    at: float
    code: str = ""
    detail: str = ""
    status: int = 200
    node: str = ""


Happening = Started | Ended | Piece | Finished
