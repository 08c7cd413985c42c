"""Runs a definition: independent branches at the same time, one order of what comes out."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from common.errors import RagsiteError
from inference.base import InferenceError
from inference.cancelling import Cancelled
from rag.pipelines.definition import Definition
from rag.pipelines.engine.calls import Clock, Ledger, NodeCall, NodeResult, RunError, Runner
from rag.pipelines.engine.crew import Crew, Task, Threads
from rag.pipelines.engine.flow import Flow
from rag.pipelines.engine.outlet import Outlet
from rag.pipelines.engine.progress import Ended, Finished, Happening, Started
from rag.pipelines.limits import (
    MAX_OUTPUT_CHARACTERS,
    MAX_PARALLEL,
    NODE_TIMEOUT,
    RUN_TIMEOUT,
)

logger = logging.getLogger(__name__)

#: Seconds between two looks at whether somebody cancelled.
SLICE = 0.1
#: Seconds that nodes are given to come to their end once the run is over.
GRACE = 0.8


def run(
    definition: Definition,
    *,
    question: str,
    runner: Runner,
    is_cancelled: Callable[[], bool] = lambda: False,
    timeout: float | None = None,
    parallel: int = MAX_PARALLEL,
    crew: Crew | None = None,
    clock: Clock = time.monotonic,
) -> Generator[Happening, None, None]:
    """What happens, as it does; the last is always Finished.

    `timeout` (seconds) goes before the definition's own where it is shorter, and `parallel` bounds
    how many nodes run at once. `is_cancelled` is asked ten times a second. Parents' outputs and the
    answer are in the order of the definition, whatever is done first. Closing the generator stops
    the nodes.
    """
    return _Run(
        definition=definition,
        question=question,
        runner=runner,
        is_cancelled=is_cancelled,
        timeout=min(timeout or RUN_TIMEOUT, definition.timeout or RUN_TIMEOUT),
        parallel=parallel,
        crew=crew or Threads(),
        clock=clock,
    ).happenings()


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
    """A node that runs, until when it may."""

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
    crew: Crew
    clock: Clock
    stop: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0
    turns: int = 0
    ready: list[str] = field(default_factory=list)
    going: dict[int, _Turn] = field(default_factory=dict)
    inbox: deque[_Emitted | _Returned] = field(default_factory=deque)

    def happenings(self) -> Generator[Happening, None, None]:
        self.started = self.clock()
        flow = Flow(self.definition, self.question)
        outlet = Outlet(flow)
        failure = RunError("", "", status=200, state="done")
        try:
            yield from self._to_the_end(flow, outlet)
        except RunError as error:
            failure = error
        finally:
            self.stop.set()
        yield from self._stopped()
        yield Finished(
            state=failure.state,
            output=outlet.text,
            started=self.started,
            at=self.clock(),
            code=failure.code,
            detail=failure.detail,
            status=failure.status,
            node=failure.node,
        )

    def _to_the_end(self, flow: Flow, outlet: Outlet) -> Iterator[Happening]:
        while True:
            self._check()
            self.ready += flow.begin()
            yield from outlet.let_out()
            yield from self._begin(flow, outlet)
            if not self.going:
                yield from outlet.rest()
                return
            if message := self._next():
                yield from self._heard(message, flow, outlet)

    def _begin(self, flow: Flow, outlet: Outlet) -> Iterator[Happening]:
        while self.ready and len(self.going) < self.parallel:
            id = self.ready.pop(0)
            self.turns += 1
            call = self._call(id, self.turns, flow)
            now = self.clock()
            turn = _Turn(self.turns, call, now, now + (call.node.timeout or NODE_TIMEOUT))
            self.going[turn.number] = turn
            outlet.begin(id)
            yield Started(call, now)
            self.crew.start(self._task(turn), name=f"pipeline-{self.definition.id}-{id}")

    def _call(self, id: str, number: int, flow: Flow) -> NodeCall:
        return NodeCall(
            node=self.definition.node(id),
            question=self.question,
            inputs=flow.inputs(id),
            iteration=len(flow.earlier(id)) + 1,
            routes=flow.routes(id),
            may_repeat=flow.may_repeat(id),
            is_sink=id in flow.sinks,
            earlier=flow.earlier(id),
            cancelled=self.stop,
            emit=lambda item: self.crew.post(_Emitted(number, item)),
            ledger=Ledger(self.clock),
        )

    def _task(self, turn: _Turn) -> Task:
        def work() -> None:
            result: NodeResult | BaseException
            try:
                result = self.runner(turn.call)
            except BaseException as error:  # whatever it is, the run must hear of it
                result = error
            self.crew.post(_Returned(turn.number, result))

        return work

    def _next(self) -> _Emitted | _Returned | None:
        """What a node posted, None if none did for a moment. Of several that did so together, the
        one that began first is heard first."""
        if not self.inbox:
            nearest = min(turn.deadline for turn in self.going.values())
            left = min(nearest, self.started + self.timeout) - self.clock()
            self._fetch(min(max(left, 0.0), SLICE))
        return self.inbox.popleft() if self.inbox else None

    def _fetch(self, seconds: float) -> None:
        posted = [
            each
            for each in self.crew.take(seconds)
            if isinstance(each, _Emitted | _Returned) and each.turn in self.going
        ]
        self.inbox.extend(sorted(posted, key=lambda each: each.turn))

    def _heard(
        self, message: _Emitted | _Returned, flow: Flow, outlet: Outlet
    ) -> Iterator[Happening]:
        turn = self.going[message.turn]
        if isinstance(message, _Emitted):
            yield from outlet.add(turn.call.node.id, message.item)
            return
        del self.going[turn.number]
        if isinstance(message.result, BaseException):
            failure = self._failure(turn, message.result)
            yield self._ended(turn, failure)
            raise failure
        result = _bounded(message.result)
        try:
            flow.end(turn.call.node.id, result)
        except RunError as error:
            yield self._ended(turn, error)
            raise
        yield Ended(turn.call, turn.started, self.clock(), "done", result)
        yield from outlet.let_out()

    def _ended(self, turn: _Turn, error: RunError) -> Ended:
        state: Literal["failed", "cancelled"] = (
            "cancelled" if error.state == "cancelled" else "failed"
        )
        return Ended(turn.call, turn.started, self.clock(), state, error=error.detail)

    def _failure(self, turn: _Turn, error: BaseException) -> RunError:
        """What the user is told of an error; of one that nobody foresaw, only that it was."""
        id = turn.call.node.id
        match error:
            case RunError():
                return error
            case Cancelled():
                return _was_cancelled()
            case RagsiteError():
                return RunError(error.code, str(error), status=error.status, node=id)
            case InferenceError():
                return RunError("model_failed", str(error), status=502, node=id)
        logger.error("node %s of pipeline %s failed", id, self.definition.id, exc_info=error)
        return RunError(
            "internal_error", f"The step “{id}” failed. The site's log says why.", node=id
        )

    def _check(self) -> None:
        """Raise RunError when the run, or a node, has had its time, or nobody waits any more."""
        if self.is_cancelled():
            raise _was_cancelled()
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

    def _stopped(self) -> Iterator[Happening]:
        """Let the nodes that still run come to their end, and go on without those that do not."""
        until = self.clock() + GRACE
        while self.going and (self.inbox or self.clock() < until):
            if not self.inbox:
                self._fetch(max(until - self.clock(), 0.0))
            message = self.inbox.popleft() if self.inbox else None
            if isinstance(message, _Returned) and message.turn in self.going:
                turn = self.going.pop(message.turn)
                yield self._late(turn, message.result)
        for turn in list(self.going.values()):
            yield Ended(
                turn.call,
                turn.started,
                self.clock(),
                "cancelled",
                error="It was told to stop and did not do so in time.",
            )

    def _late(self, turn: _Turn, result: NodeResult | BaseException) -> Ended:
        if isinstance(result, BaseException):
            return self._ended(turn, self._failure(turn, result))
        return Ended(turn.call, turn.started, self.clock(), "done", _bounded(result))


def _was_cancelled() -> RunError:
    return RunError("cancelled", "The run was cancelled.", status=409, state="cancelled")


def _bounded(result: NodeResult) -> NodeResult:
    if len(result.output) <= MAX_OUTPUT_CHARACTERS:
        return result
    return replace(result, output=f"{result.output[:MAX_OUTPUT_CHARACTERS]}\n[… cut]")
