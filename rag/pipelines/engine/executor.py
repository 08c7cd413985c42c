"""Run a definition: independent branches in parallel threads, output in a deterministic order.
Begin with `run`.
"""

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from common.errors import RagsiteError
from inference.cancellation import Cancelled
from inference.interfaces import InferenceError
from rag.pipelines.definition import (
    MAX_OUTPUT_CHARACTERS,
    MAX_PARALLEL,
    NODE_TIMEOUT,
    RUN_TIMEOUT,
    Definition,
)
from rag.pipelines.engine.scheduler import (
    Clock,
    EngineEvent,
    Ledger,
    NodeCall,
    NodeEnded,
    NodeResult,
    NodeStarted,
    OutputBuffer,
    OutputPiece,
    RunError,
    RunFinished,
    Runner,
    Scheduler,
)

Task = Callable[[], None]


class Executor(Protocol):
    """Starts tasks, and passes their messages to the one who waits: threads, or a stub in tests."""

    def start(self, task: Task, *, name: str) -> None:
        """Start a task; never raises."""

    def post(self, message: object) -> None:
        """Called from within a task: send a message."""

    def take(self, seconds: float) -> list[Any]:
        """All posted messages; waits up to `seconds` for the first."""


class ThreadExecutor:
    """A daemon thread for each task, so that a hanging one keeps no process alive."""

    def __init__(self) -> None:
        self._posted: queue.SimpleQueue[object] = queue.SimpleQueue()

    def start(self, task: Task, *, name: str) -> None:
        # The task inherits this thread's log context and its cancellation.
        context = copy_context()
        threading.Thread(target=context.run, args=(task,), name=name, daemon=True).start()

    def post(self, message: object) -> None:
        self._posted.put(message)

    def take(self, seconds: float) -> list[Any]:
        try:
            taken = [self._posted.get(timeout=max(seconds, 0.0))]
        except queue.Empty:
            return []
        while True:
            try:
                taken.append(self._posted.get_nowait())
            except queue.Empty:
                return taken


logger = logging.getLogger(__name__)

#: Seconds between two looks at whether somebody cancelled.
POLL_SECONDS = 0.1
#: Seconds that nodes have to end once the run is over.
GRACE_SECONDS = 0.8


def run(
    definition: Definition,
    *,
    question: str,
    runner: Runner,
    is_cancelled: Callable[[], bool] = lambda: False,
    timeout: float | None = None,
    parallel: int = MAX_PARALLEL,
    executor: Executor | None = None,
    clock: Clock = time.monotonic,
) -> Generator[EngineEvent, None, None]:
    """Yield events as they happen; the last is always RunFinished. `timeout` (seconds) applies if
    it is shorter than the definition's own, and `parallel` limits how many nodes run at once.
    `is_cancelled` is called ten times a second. Inputs and the answer are in the order of the
    definition, whatever ends first. Closing the generator stops the nodes."""
    return _Run(
        definition=definition,
        question=question,
        runner=runner,
        is_cancelled=is_cancelled,
        timeout=min(timeout or RUN_TIMEOUT, definition.timeout or RUN_TIMEOUT),
        parallel=parallel,
        executor=executor or ThreadExecutor(),
        clock=clock,
    ).events()


#: The number of a node's turn, whether it is over, and what it returned, or else emitted.
_Message = tuple[int, bool, object]


@dataclass(slots=True)
class _Run:
    definition: Definition
    question: str
    runner: Runner
    is_cancelled: Callable[[], bool]
    timeout: float
    parallel: int
    executor: Executor
    clock: Clock
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0
    turns: int = 0
    ready: list[str] = field(default_factory=list)
    going: dict[int, NodeStarted] = field(default_factory=dict)
    inbox: deque[_Message] = field(default_factory=deque)

    def events(self) -> Generator[EngineEvent, None, None]:
        self.started = self.clock()
        flow = Scheduler(self.definition, self.question)
        outlet = OutputBuffer(flow)
        failure = RunError("", "", status=200, state="done")
        try:
            while True:
                self._check()
                self.ready += flow.begin()
                yield from outlet.flush()
                while self.ready and len(self.going) < self.parallel:
                    yield self._begin(self.ready.pop(0), flow, outlet)
                if not self.going:
                    yield from outlet.rest()
                    break
                if not self.inbox:
                    nearest = min(map(_deadline, self.going.values()))
                    left = min(nearest, self.started + self.timeout) - self.clock()
                    self._fetch(min(max(left, 0.0), POLL_SECONDS))
                if self.inbox:
                    yield from self._handle(self.inbox.popleft(), flow, outlet)
        except RunError as error:
            failure = error
        finally:
            self.stop.set()
        # Wait for the running nodes to end, and give up on those that do not.
        until = self.clock() + GRACE_SECONDS
        while self.going and (self.inbox or self.clock() < until):
            if not self.inbox:
                self._fetch(max(until - self.clock(), 0.0))
            number, is_over, result = self.inbox.popleft() if self.inbox else (0, False, None)
            if is_over and number in self.going:
                turn = self.going.pop(number)
                yield self._ended(turn, self._outcome(turn.call.node.id, result))
        for turn in list(self.going.values()):
            overdue = "It was told to stop and did not do so in time."
            yield NodeEnded(turn.call, turn.at, self.clock(), "cancelled", error=overdue)
        if failure.attempt:
            yield OutputPiece(failure.node, failure.attempt)
        yield RunFinished(
            state=failure.state,
            output=outlet.text + failure.attempt,
            started=self.started,
            at=self.clock(),
            code=failure.code,
            detail=failure.detail,
            status=failure.status,
            node=failure.node,
            attempt=failure.attempt,
        )

    def _begin(self, id: str, flow: Scheduler, outlet: OutputBuffer) -> NodeStarted:
        self.turns += 1
        number = self.turns
        call = NodeCall(
            node=self.definition.node(id),
            question=self.question,
            inputs=flow.inputs(id),
            iteration=len(flow.earlier(id)) + 1,
            routes=flow.routes(id),
            may_repeat=flow.may_repeat(id),
            is_sink=id in flow.sinks,
            earlier=flow.earlier(id),
            cancelled=self.stop,
            emit=lambda item: self.executor.post((number, False, item)),
            ledger=Ledger(self.clock),
        )

        def work() -> None:
            result: object
            try:
                result = self.runner(call)
            except BaseException as error:  # every error must reach the run
                result = error
            self.executor.post((number, True, result))

        self.going[number] = NodeStarted(call, self.clock())
        outlet.begin(id)
        self.executor.start(work, name=f"pipeline-{self.definition.id}-{id}")
        return self.going[number]

    def _fetch(self, seconds: float) -> None:
        """Wait for messages; of several at once, the node that began first is handled first."""
        posted: list[_Message] = self.executor.take(seconds)
        self.inbox.extend(sorted(posted, key=lambda message: message[0]))

    def _handle(
        self, message: _Message, flow: Scheduler, outlet: OutputBuffer
    ) -> Iterator[EngineEvent]:
        number, is_over, item = message
        if number not in self.going:
            return
        id = self.going[number].call.node.id
        if not is_over:
            yield from outlet.add(id, item)
            return
        turn, outcome = self.going.pop(number), self._outcome(id, item)
        if isinstance(outcome, NodeResult):
            try:
                flow.end(id, outcome)
            except RunError as error:
                outcome = error
        yield self._ended(turn, outcome)
        if isinstance(outcome, RunError):
            raise outcome
        yield from outlet.flush()

    def _ended(self, turn: NodeStarted, outcome: NodeResult | RunError) -> NodeEnded:
        now = self.clock()
        if isinstance(outcome, NodeResult):
            return NodeEnded(turn.call, turn.at, now, "done", outcome)
        state: Literal["failed", "cancelled"] = (
            "cancelled" if outcome.state == "cancelled" else "failed"
        )
        return NodeEnded(turn.call, turn.at, now, state, error=outcome.detail)

    def _outcome(self, id: str, returned: object) -> NodeResult | RunError:
        """What a node returned, cut to what is passed on, or the error for the user; of an
        unexpected one, only that it happened."""
        match returned:
            case NodeResult(output=output) if len(output) > MAX_OUTPUT_CHARACTERS:
                return replace(returned, output=f"{output[:MAX_OUTPUT_CHARACTERS]}\n[… cut]")
            case NodeResult() | RunError():
                return returned
            case Cancelled():
                return _cancelled_error()
            case RagsiteError():
                return RunError(returned.code, str(returned), status=returned.status, node=id)
            case InferenceError():
                return RunError("model_failed", str(returned), status=502, node=id)
        assert isinstance(returned, BaseException)
        logger.error("node %s of pipeline %s failed", id, self.definition.id, exc_info=returned)
        return RunError(
            "internal_error", f"The step “{id}” failed. The site's log says why.", node=id
        )

    def _check(self) -> None:
        """Raise RunError if the run or a node has timed out, or the run was cancelled."""
        if self.is_cancelled():
            raise _cancelled_error()
        now = self.clock()
        if now >= self.started + self.timeout:
            raise RunError(
                "run_timeout",
                f"The run took longer than {self.timeout:g} seconds. Allow more by “timeout” of the"
                " pipeline, or give it less to do.",
                status=504,
                state="timed_out",
            )
        late = [turn for turn in self.going.values() if now >= _deadline(turn)]
        if late:
            id, seconds = late[0].call.node.id, _deadline(late[0]) - late[0].at
            raise RunError(
                "node_timeout",
                f"The step “{id}” took longer than {seconds:g} seconds. Allow more by its"
                " “timeout”, or give it less to do.",
                status=504,
                state="timed_out",
                node=id,
            )


def _deadline(turn: NodeStarted) -> float:
    return turn.at + (turn.call.node.timeout or NODE_TIMEOUT)


def _cancelled_error() -> RunError:
    return RunError("cancelled", "The run was cancelled.", status=409, state="cancelled")
