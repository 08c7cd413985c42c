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
from typing import Literal, Protocol

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

    def take(self, seconds: float) -> list[object]:
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


@dataclass(frozen=True, slots=True)
class _Emitted:
    turn: int
    item: object


@dataclass(frozen=True, slots=True)
class _Returned:
    turn: int
    result: NodeResult | BaseException


@dataclass(frozen=True, slots=True)
class _Turn:
    """A running node and its deadline."""

    number: int
    call: NodeCall
    started: float
    deadline: float


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
    going: dict[int, _Turn] = field(default_factory=dict)
    inbox: deque[_Emitted | _Returned] = field(default_factory=deque)

    def events(self) -> Generator[EngineEvent, None, None]:
        self.started = self.clock()
        flow = Scheduler(self.definition, self.question)
        outlet = OutputBuffer(flow)
        failure = RunError("", "", status=200, state="done")
        try:
            yield from self._run_to_end(flow, outlet)
        except RunError as error:
            failure = error
        finally:
            self.stop.set()
        # Wait for the running nodes to end, and give up on those that do not.
        until = self.clock() + GRACE_SECONDS
        while self.going and (self.inbox or self.clock() < until):
            if not self.inbox:
                self._fetch(max(until - self.clock(), 0.0))
            message = self.inbox.popleft() if self.inbox else None
            if isinstance(message, _Returned) and message.turn in self.going:
                turn = self.going.pop(message.turn)
                if isinstance(message.result, BaseException):
                    yield self._ended(turn, self._failure(turn, message.result))
                else:
                    result = _truncated(message.result)
                    yield NodeEnded(turn.call, turn.started, self.clock(), "done", result)
        for turn in list(self.going.values()):
            yield NodeEnded(
                turn.call,
                turn.started,
                self.clock(),
                "cancelled",
                error="It was told to stop and did not do so in time.",
            )
        yield RunFinished(
            state=failure.state,
            output=outlet.text,
            started=self.started,
            at=self.clock(),
            code=failure.code,
            detail=failure.detail,
            status=failure.status,
            node=failure.node,
        )

    def _run_to_end(self, flow: Scheduler, outlet: OutputBuffer) -> Iterator[EngineEvent]:
        while True:
            self._check()
            self.ready += flow.begin()
            yield from outlet.flush()
            while self.ready and len(self.going) < self.parallel:
                yield from self._begin(self.ready.pop(0), flow, outlet)
            if not self.going:
                yield from outlet.rest()
                return
            if not self.inbox:
                nearest = min(turn.deadline for turn in self.going.values())
                left = min(nearest, self.started + self.timeout) - self.clock()
                self._fetch(min(max(left, 0.0), POLL_SECONDS))
            if self.inbox:
                yield from self._handle(self.inbox.popleft(), flow, outlet)

    def _begin(self, id: str, flow: Scheduler, outlet: OutputBuffer) -> Iterator[EngineEvent]:
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
            emit=lambda item: self.executor.post(_Emitted(number, item)),
            ledger=Ledger(self.clock),
        )
        now = self.clock()
        self.going[number] = _Turn(number, call, now, now + (call.node.timeout or NODE_TIMEOUT))
        outlet.begin(id)
        yield NodeStarted(call, now)

        def work() -> None:
            result: NodeResult | BaseException
            try:
                result = self.runner(call)
            except BaseException as error:  # every error must reach the run
                result = error
            self.executor.post(_Returned(number, result))

        self.executor.start(work, name=f"pipeline-{self.definition.id}-{id}")

    def _fetch(self, seconds: float) -> None:
        """Wait for messages; of several at once, the node that began first is handled first."""
        posted = [
            each
            for each in self.executor.take(seconds)
            if isinstance(each, _Emitted | _Returned) and each.turn in self.going
        ]
        self.inbox.extend(sorted(posted, key=lambda each: each.turn))

    def _handle(
        self, message: _Emitted | _Returned, flow: Scheduler, outlet: OutputBuffer
    ) -> Iterator[EngineEvent]:
        turn = self.going[message.turn]
        if isinstance(message, _Emitted):
            yield from outlet.add(turn.call.node.id, message.item)
            return
        del self.going[turn.number]
        if isinstance(message.result, BaseException):
            failure = self._failure(turn, message.result)
            yield self._ended(turn, failure)
            raise failure
        result = _truncated(message.result)
        try:
            flow.end(turn.call.node.id, result)
        except RunError as error:
            yield self._ended(turn, error)
            raise
        yield NodeEnded(turn.call, turn.started, self.clock(), "done", result)
        yield from outlet.flush()

    def _ended(self, turn: _Turn, error: RunError) -> NodeEnded:
        state: Literal["failed", "cancelled"] = (
            "cancelled" if error.state == "cancelled" else "failed"
        )
        return NodeEnded(turn.call, turn.started, self.clock(), state, error=error.detail)

    def _failure(self, turn: _Turn, error: BaseException) -> RunError:
        """The error for the user; of an unexpected one, only that it happened."""
        id = turn.call.node.id
        match error:
            case RunError():
                return error
            case Cancelled():
                return _cancelled_error()
            case RagsiteError():
                return RunError(error.code, str(error), status=error.status, node=id)
            case InferenceError():
                return RunError("model_failed", str(error), status=502, node=id)
        logger.error("node %s of pipeline %s failed", id, self.definition.id, exc_info=error)
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
        late = [turn for turn in self.going.values() if now >= turn.deadline]
        if late:
            id = late[0].call.node.id
            seconds = late[0].deadline - late[0].started
            raise RunError(
                "node_timeout",
                f"The step “{id}” took longer than {seconds:g} seconds. Allow more by its"
                " “timeout”, or give it less to do.",
                status=504,
                state="timed_out",
                node=id,
            )


def _cancelled_error() -> RunError:
    return RunError("cancelled", "The run was cancelled.", status=409, state="cancelled")


def _truncated(result: NodeResult) -> NodeResult:
    if len(result.output) <= MAX_OUTPUT_CHARACTERS:
        return result
    return replace(result, output=f"{result.output[:MAX_OUTPUT_CHARACTERS]}\n[… cut]")
