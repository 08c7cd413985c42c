"""worker: a chat model that calls tools until it answers. Orchestrators and coordinators use it for
their sub-tasks."""

from collections.abc import Callable, Sequence

from common.tools import Tool
from inference.base import ChatMessage
from inference.cancelling import Cancelled
from rag.answering import rewriting
from rag.pipelines.engine import NodeCall, NodeResult, Use
from rag.pipelines.kit import Bench, Kit, text_of
from rag.pipelines.nodes import prompts

#: Calls of tools that are done of one message; a model that wants more is told so.
MOST_CALLS = 16

_WORKER = """\
You have tools. Call them to find out what your step needs, as often as that takes, and then \
answer with what you found out, with the numbers of the passages that say so in square brackets. \
If a tool answers with an error, correct its arguments.\
"""
_EXHAUSTED = "You may call no more tools. Answer now, from what you have found out."


def worker(call: NodeCall, kit: Kit) -> NodeResult:
    """Work on the question."""
    bench = kit.bench(call)
    offered = bench.offered(call.node.tools)
    if bench.chat is None:
        output = _without_model(bench, offered)
        return NodeResult(output, sources=bench.sources)
    marked = prompts.Marked()
    blocks = prompts.handed(marked, call.inputs, budget=kit.budget_tokens)
    output = work(
        bench,
        marked,
        offered,
        names=call.node.tools,
        rules="\n\n".join(filter(None, [call.node.prompt, kit.demands if call.is_sink else ""])),
        asked=prompts.asked(call.question, blocks),
        history=kit.history,
    )
    return NodeResult(output, sources=bench.sources)


def work(
    bench: Bench,
    marked: prompts.Marked,
    offered: Sequence[Tool],
    *,
    names: Sequence[str],
    rules: str,
    asked: str,
    history: Sequence[ChatMessage] = (),
    parent: Use | None = None,
    check: Callable[[], None] = lambda: None,
) -> str:
    """What the model answers in the end.

    `offered` are the tools among `names` that the caller may use; of the others the model is told
    so when it calls them. When the node's turns are used up, one last turn without tools answers.
    """
    role = marked.rules(_WORKER if offered else "", rules)
    messages = prompts.conversation(role, history, asked, bench.kit.budget_tokens)
    for _ in range(bench.call.node.max_iter):
        check()
        message = bench.ask(messages, offered=offered, parent=parent)
        if not message.tool_calls:
            return text_of(message)
        messages.append(message)
        for at, wish in enumerate(message.tool_calls):
            check()
            if at < MOST_CALLS:
                text = bench.use_tool(wish.name, wish.arguments, allowed=names, parent=parent).text
            else:
                text = f"Error: at most {MOST_CALLS} calls at a time. Call it again."
            told = marked.text(f"Result of the tool {wish.name[:60]}:", text)
            messages.append(ChatMessage("tool", told, tool_call_id=wish.id))
    messages.append(ChatMessage("user", _EXHAUSTED))
    check()
    return text_of(bench.ask(messages, offered=offered, tool_choice="none", parent=parent))


def searches(tools: Sequence[Tool]) -> list[Tool]:
    """Those that need a query and nothing else, and change nothing."""
    return [
        tool
        for tool in tools
        if not tool.writes and list(tool.parameters.get("required", ())) == ["query"]
    ]


def whole_question(bench: Bench) -> str:
    """The question with what it leans on of what was said before, by rules."""
    question, history = bench.call.question, bench.kit.history
    return rewriting.rewritten(question, history) if history else question


def _without_model(bench: Bench, offered: Sequence[Tool]) -> str:
    """What the search tools find for the question."""
    query = whole_question(bench)
    told: list[str] = []
    for tool in searches(offered):
        if bench.call.cancelled.is_set():
            raise Cancelled
        answer = bench.use_tool(tool.name, {"query": query}, allowed=[tool.name])
        told.append(answer.text)
    return "\n\n".join(told)
