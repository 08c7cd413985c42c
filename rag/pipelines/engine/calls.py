"""What a node is given when it is its turn, and what it gives back."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rag.pipelines.definition import Node

Clock = Callable[[], float]
UseKind = Literal["model", "tool", "task"]
State = Literal["done", "failed", "cancelled", "timed_out"]


class RunError(Exception):
    """A run that cannot go on. `state` is how it ended, `node` at which step, if at one."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        status: int = 500,
        state: State = "failed",
        node: str = "",
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.status = status
        self.state: State = state
        self.node = node


@dataclass(frozen=True, slots=True)
class Input:
    """What a parent handed on. `sources` are the numbers of passages that it rests on;
    `is_feedback` says that it came back along a loop."""

    node: str
    output: str
    sources: frozenset[int] = frozenset()
    is_feedback: bool = False


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What came of a node. `output` goes to the nodes behind it.

    `route` is a router's choice, `passed` whether a gate opens or an evaluator is content, `score`
    what that gave; `feedback` goes back along a loop, by default the output.
    """

    output: str
    route: str | None = None
    passed: bool | None = None
    score: float | None = None
    feedback: str | None = None
    sources: frozenset[int] = frozenset()


@dataclass(slots=True)
class Use:
    """A call of a model or tool, or a sub-task with calls of its own, while it lasts and after."""

    kind: UseKind
    name: str
    input: str
    started: float
    parent: "Use | None" = None
    ended: float | None = None
    output: str = ""
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0


class Ledger:
    """What a node used on its way. It is whole as far as the node came, also where that failed."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._uses: list[Use] = []

    @contextmanager
    def use(
        self, kind: UseKind, name: str, input: str, *, parent: Use | None = None
    ) -> Iterator[Use]:
        """Note a call while it lasts; the block fills in what came of it."""
        use = Use(kind, name, input, self._clock(), parent)
        with self._lock:
            self._uses.append(use)
        try:
            yield use
        except BaseException as error:
            use.error = str(error) or type(error).__name__
            raise
        finally:
            use.ended = self._clock()

    @property
    def uses(self) -> tuple[Use, ...]:
        """In the order in which they began."""
        with self._lock:
            return tuple(self._uses)

    @property
    def input_tokens(self) -> int:
        """Of all calls so far."""
        return sum(use.input_tokens for use in self.uses)

    @property
    def output_tokens(self) -> int:
        """Of all calls so far."""
        return sum(use.output_tokens for use in self.uses)


@dataclass(frozen=True, slots=True)
class NodeCall:
    """A node's turn: the question of the run, and its active parents' outputs in the order of the
    definition.

    `iteration` counts the node's turns from 1, and `earlier` is what came of the former ones.
    `routes` are a router's choices. `may_repeat` says that a loop of the node has rounds left.
    Once `cancelled` is set nobody waits for the result. A node from which the answer streams hands
    its pieces to `emit` as they come..
    """

    node: Node
    question: str
    inputs: tuple[Input, ...]
    iteration: int
    routes: tuple[str, ...]
    may_repeat: bool
    is_sink: bool
    earlier: tuple[NodeResult, ...]
    cancelled: threading.Event
    emit: Callable[[object], None]
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def sources(self) -> frozenset[int]:
        """Passages that what is handed over rests on."""
        return frozenset[int]().union(*(each.sources for each in self.inputs))


class Runner(Protocol):
    """Does what a node is for. It is called in threads, several at once."""

    def __call__(self, call: NodeCall) -> NodeResult:
        """Raises what it fails with; RagsiteError and InferenceError are told to the user."""
