"""The environment of nodes: `RunResources` for a run, `NodeContext` for one node's turn: model,
tools, passages."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from common.errors import RagsiteError
from common.sql import release_connection
from common.tools import Tool, ToolAnswer
from inference.cancellation import Cancelled, cancellation
from inference.interfaces import ChatMessage, ChatModel, EmptyAnswer, InferenceError
from inference.replies import UnreadableReply
from rag import tools
from rag.context import PassageCollector, RagContext
from rag.errors import ModelFailed
from rag.events import Passage
from rag.pipelines.definition import NODE_TIMEOUT
from rag.pipelines.engine.scheduler import CallRecord, NodeCall, RunError
from search.results import Hit


class Verbatim(str):
    """A text that is not scanned for citations; they are emitted separately."""

    __slots__ = ()


T = TypeVar("T")


class NodePassages(PassageCollector):
    """The run's passages as one node adds to them: numbered with all others; `own` are the numbers
    this node found."""

    def __init__(self, run_passages: PassageCollector) -> None:
        self._whole = run_passages
        self._own: set[int] = set()

    def collect(self, hits: Iterable[Hit]) -> list[Passage]:
        return self._remember(self._whole.collect(hits))

    def add(self, passages: Iterable[Passage]) -> list[Passage]:
        return self._remember(self._whole.add(passages))

    @property
    def passages(self) -> list[Passage]:
        return self._whole.passages

    @property
    def own(self) -> frozenset[int]:
        """Numbers of the passages this node found."""
        return frozenset(self._own)

    def _remember(self, passages: list[Passage]) -> list[Passage]:
        self._own.update(passage.number for passage in passages)
        return passages


@dataclass(frozen=True, slots=True)
class RunResources:
    """Shared by all nodes of a run. `chats` are the models by node id; None for a node without
    one. `grounded` are nodes after one with tools: they answer from what was found."""

    context: RagContext
    chats: Mapping[str, ChatModel | None]
    history: tuple[ChatMessage, ...] = ()
    grounded: frozenset[str] = frozenset()
    budget_tokens: int = 3_000
    system_prompt: str = ""
    language: str = ""

    @property
    def demands(self) -> str:
        """Instructions for nodes that write or judge the answer, besides their own prompts."""
        written = "Write the answer in {}, whatever the question is written in."
        language = written.format(self.language) if self.language else ""
        return "\n\n".join(filter(None, [self.system_prompt.strip(), language]))

    def node_context(self, call: NodeCall) -> "NodeContext":
        """The context of one node's turn."""
        found = NodePassages(self.context.found)
        context = replace(self.context, cancelled=call.cancelled, found=found)
        return NodeContext(self, call, context, found)


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The environment of one node: every call it makes is recorded and ends with the run."""

    resources: RunResources
    call: NodeCall
    context: RagContext
    found: NodePassages

    @property
    def chat(self) -> ChatModel | None:
        """The node's chat model, if it has one."""
        return self.resources.chats[self.call.node.id]

    @property
    def sources(self) -> frozenset[int]:
        """Numbers of the passages that the node received or found."""
        return self.call.sources | self.found.own

    def passages(self) -> list[Passage]:
        """The passages in `sources`, best first."""
        known = self.context.found.by_number
        mine = [known[number] for number in self.sources if number in known]
        return sorted(mine, key=lambda passage: (passage.rank or len(mine), passage.number))

    def offered(self, names: Sequence[str]) -> list[Tool]:
        """The named tools that the caller may use."""
        return tools.tools_for(self.context, names) if names else []

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        offered: Sequence[Tool] = (),
        tool_choice: str | None = None,
        emits: bool = False,
        parent: CallRecord | None = None,
    ) -> ChatMessage:
        """The model's next message; with `emits` its pieces, reasoning too, are emitted as they
        come. No database
        connection is held meanwhile. Raises ModelFailed and Cancelled."""
        chat, options = self.chat, self.call.node.model
        assert chat is not None  # checked before the run
        wishes: dict[str, Any] = {
            "tools": tools.schemas(offered),
            "tool_choice": tool_choice if offered else None,
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "top_p": options.top_p,
            "timeout": self.call.node.timeout or NODE_TIMEOUT,
        }
        self.context.check()
        release_connection()
        # A trace stores the last message of a request, the only new one.
        with self.call.ledger.use(
            "model", chat.model_name, messages[-1].content if messages else "", parent=parent
        ) as use:
            try:
                with cancellation(self.call.cancelled):
                    message = (
                        self._streamed(chat, messages, wishes)
                        if emits
                        else chat.complete(messages, **wishes)
                    )
            except Cancelled:
                raise
            except InferenceError as error:
                raise ModelFailed(error) from error
            calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
            use.output = (
                "\n".join([message.content, *calls]) if message.content else "\n".join(calls)
            )
            if message.usage is not None:
                use.input_tokens = message.usage.input_tokens
                use.output_tokens = message.usage.output_tokens
        return message

    def read(self, messages: list[ChatMessage], reading: Callable[[str], T], *, again: str) -> T:
        """Parse the model's reply with `reading`. If that fails, the model is asked once more, with
        the problem in place of {problem} in `again`. Raises RunError."""
        message = self.ask(messages)
        try:
            return reading(reply_text(message))
        except UnreadableReply as error:
            complaint = ChatMessage("user", again.format(problem=error.problem))
            message = self.ask([*messages, message, complaint])
        try:
            return reading(reply_text(message))
        except UnreadableReply as error:
            node = self.call.node
            raise RunError(
                "unreadable_reply",
                f"What the model answered at the step “{node.id}” {error.problem}. Take one that"
                " follows instructions better.",
                status=502,
                node=node.id,
            ) from error

    def use_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        allowed: Sequence[str],
        parent: CallRecord | None = None,
    ) -> ToolAnswer:
        """A tool's answer; an invalid call becomes an answer too. Raises Cancelled."""
        arguments_text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        with self.call.ledger.use("tool", name[:60], arguments_text, parent=parent) as use:
            try:
                if name in allowed:
                    answer = tools.call(name, arguments, context=self.context)
                else:
                    known = ", ".join(allowed)
                    message = f"Error: There is no tool “{name[:60]}”. There are: {known}."
                    answer = ToolAnswer(message, is_error=True)
            except RagsiteError as error:
                answer = ToolAnswer(f"Error: {error}", is_error=True)
            finally:
                release_connection()
            use.output = answer.text
            if answer.is_error:
                use.error = answer.text
        return answer

    def _streamed(
        self, chat: ChatModel, messages: Sequence[ChatMessage], wishes: Mapping[str, Any]
    ) -> ChatMessage:
        with closing(chat.stream(messages, **wishes)) as pieces:
            while True:
                try:
                    self.call.emit(next(pieces))
                except StopIteration as end:
                    message: ChatMessage = end.value
                    return message


def reply_text(message: ChatMessage) -> str:
    """The text of a reply. Raises ModelFailed if it is empty."""
    if not message.content.strip():
        raise ModelFailed(EmptyAnswer("the answer of the model is empty."))
    return message.content
