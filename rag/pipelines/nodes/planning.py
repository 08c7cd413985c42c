"""orchestrator and coordinator: sub-tasks, done side by side or one after the other."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from common.connections import give_back
from inference.cancelling import Cancelled, cancellation
from rag.pipelines import replies
from rag.pipelines.definition import Worker
from rag.pipelines.engine import NodeCall, NodeResult
from rag.pipelines.kit import Bench, Kit
from rag.pipelines.limits import MAX_PARALLEL
from rag.pipelines.nodes import prompts
from rag.pipelines.nodes.working import work

T = TypeVar("T")

_ORCHESTRATOR = """\
Plan how to work on the question: which sub-tasks, at most {most}, have to be done so that the \
question can be answered from their results. They are done at the same time, and none sees the \
result of another. Answer with one JSON list of texts and nothing else: ["...", "..."]\
"""
_COORDINATOR = """\
Plan how to work on the question with these workers:
{workers}

Assign them steps, at most {most}, in the order in which they are to be done; each worker sees \
what came of the steps before. Answer with one JSON list and nothing else: \
[{{"worker": "...", "task": "..."}}]\
"""
_AGAIN = "Your answer {problem}. Answer again, in exactly the form that was asked for."
_SUBTASK = "Do this sub-task, and nothing else of the question: {task}"


def orchestrator(call: NodeCall, kit: Kit) -> NodeResult:
    """Plan sub-tasks, have them done at the same time, and hand the results on in their order."""
    bench, most = kit.bench(call), call.node.options["max_tasks"]
    tasks = _plan(
        bench,
        _ORCHESTRATOR.format(most=most),
        lambda reply: replies.tasks(reply, most=most),
    )
    results = _side_by_side(bench, tasks)
    return NodeResult(_told(tasks, results), sources=bench.sources)


def coordinator(call: NodeCall, kit: Kit) -> NodeResult:
    """Assign steps to workers, and have them done one after the other."""
    bench, most = kit.bench(call), call.node.options["max_tasks"]
    workers: dict[str, Worker] = {each.name: each for each in call.node.options["workers"]}
    listed = "\n".join(f"- {name}: {each.prompt}" for name, each in workers.items())
    steps = _plan(
        bench,
        _COORDINATOR.format(workers=listed, most=most),
        lambda reply: replies.steps(reply, workers=list(workers), most=most),
    )
    results: list[str] = []
    for at, (name, task) in enumerate(steps):
        earlier = _told([each for _, each in steps[:at]], results)
        results.append(_done(bench, workers[name], task, earlier=earlier))
    told = [f"{task} ({name})" for name, task in steps]
    return NodeResult(_told(told, results), sources=bench.sources)


def _plan(bench: Bench, role: str, read: Callable[[str], T]) -> T:
    call, marked, budget = bench.call, prompts.Marked(), bench.kit.budget_tokens
    rules = marked.rules(call.node.prompt, role)
    asked = prompts.asked(call.question, prompts.handed(marked, call.inputs, budget=budget))
    messages = prompts.conversation(rules, bench.kit.history, asked, budget)
    return bench.read(messages, read, again=_AGAIN)


def _side_by_side(bench: Bench, tasks: list[str]) -> list[str]:
    """The results in the order of the tasks. If one fails, the others end."""
    stop = Event()
    worker = Worker(bench.call.node.id, tools=bench.call.node.tools)

    def done(task: str) -> str:
        try:
            with cancellation(stop):
                return _done(bench, worker, task, stop=stop)
        except BaseException:
            stop.set()
            raise
        finally:
            give_back()

    with ThreadPoolExecutor(MAX_PARALLEL, thread_name_prefix="sub-task") as pool:
        futures = [pool.submit(copy_context().run, done, task) for task in tasks]
        ended = list(as_completed(futures))
    failed = [error for each in ended if (error := each.exception()) is not None]
    # Of what failed the cause, not what was stopped because of it.
    for error in sorted(failed, key=lambda error: isinstance(error, Cancelled)):
        raise error
    return [future.result() for future in futures]


def _done(
    bench: Bench, worker: Worker, task: str, *, earlier: str = "", stop: Event | None = None
) -> str:
    """What comes of one sub-task."""
    call, marked = bench.call, prompts.Marked()
    budget = bench.kit.budget_tokens
    blocks = prompts.handed(marked, call.inputs, budget=budget)
    if earlier:
        blocks.append(marked.text("What came of the steps before:", prompts.cut(earlier, budget)))

    def check() -> None:
        bench.context.check()
        if stop is not None and stop.is_set():
            raise Cancelled

    with call.ledger.use("task", worker.name, task) as use:
        use.output = work(
            bench,
            marked,
            bench.offered(worker.tools),
            names=worker.tools,
            rules=worker.prompt,
            asked=prompts.asked(call.question, blocks, _SUBTASK.format(task=task)),
            parent=use,
            check=check,
        )
    return use.output


def _told(tasks: list[str], results: list[str]) -> str:
    return "\n\n".join(
        f"{number}. {task}\n{result}"
        for number, (task, result) in enumerate(zip(tasks, results, strict=True), 1)
    )
