"""What nodes work with: the chat models, the tools, and whose rights bind them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from common.connections import give_back
from common.errors import RagsiteError
from common.tools import Tool, ToolAnswer
from inference.base import ChatMessage, ChatModel, EmptyAnswer, InferenceError, ToolCall
from inference.cancelling import Cancelled, cancellation
from rag import tools
from rag.context import Collector, RagContext
from rag.failures import ModelFailed
from rag.passage import Passage
from rag.pipelines.engine import NodeCall, RunError, Use
from rag.pipelines.limits import NODE_TIMEOUT
from rag.pipelines.replies import UnreadableReply
from search.results import Hit

T = TypeVar("T")


class Found(Collector):
    """The passages of a run as one node finds them: numbered with all others, and `own` tells which
    numbers it met with itself."""

    def __init__(self, whole: Collector) -> None:
        self._whole = whole
        self._own: set[int] = set()

    def collect(self, hits: Iterable[Hit]) -> list[Passage]:
        return self._noted(self._whole.collect(hits))

    def add(self, passages: Iterable[Passage]) -> list[Passage]:
        return self._noted(self._whole.add(passages))

    @property
    def passages(self) -> list[Passage]:
        return self._whole.passages

    @property
    def own(self) -> frozenset[int]:
        """Numbers of what the node itself found."""
        return frozenset(self._own)

    def _noted(self, passages: list[Passage]) -> list[Passage]:
        self._own.update(passage.number for passage in passages)
        return passages


@dataclass(frozen=True, slots=True)
class Kit:
    """Of one run. `chats` are the models by node; None is a node that does without one.

    `grounded` are nodes behind one that has tools: they answer from what was found.
    `system_prompt` and `language` are what who runs it demands of the answer.
    """

    context: RagContext
    chats: Mapping[str, ChatModel | None]
    history: tuple[ChatMessage, ...] = ()
    grounded: frozenset[str] = frozenset()
    budget_tokens: int = 3_000
    system_prompt: str = ""
    language: str = ""

    @property
    def demands(self) -> str:
        """What nodes that write or judge the answer are told beside their own prompt."""
        written = "Write the answer in {}, whatever the question is written in."
        language = written.format(self.language) if self.language else ""
        return "\n\n".join(filter(None, [self.system_prompt.strip(), language]))

    def bench(self, call: NodeCall) -> "Bench":
        """The tools of one node's turn."""
        found = Found(self.context.found)
        context = replace(self.context, cancelled=call.cancelled, found=found)
        return Bench(self, call, context, found)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where one node works: every call that it makes is noted, and ends when the run does."""

    kit: Kit
    call: NodeCall
    context: RagContext
    found: Found

    @property
    def chat(self) -> ChatModel | None:
        """The node's model, if it has one."""
        return self.kit.chats[self.call.node.id]

    @property
    def sources(self) -> frozenset[int]:
        """Passages that the node was handed or found itself."""
        return self.call.sources | self.found.own

    def passages(self) -> list[Passage]:
        """Those of `sources`, the best first."""
        known = self.context.found.by_number
        mine = [known[number] for number in self.sources if number in known]
        return sorted(mine, key=lambda passage: (passage.rank or len(mine), passage.number))

    def offered(self, names: Sequence[str]) -> list[Tool]:
        """Those of the named tools that the caller may use."""
        return tools.tools_for(self.context, names) if names else []

    def ask(
        self,
        messages: Sequence[ChatMessage],
        *,
        offered: Sequence[Tool] = (),
        tool_choice: str | None = None,
        emits: bool = False,
        parent: Use | None = None,
    ) -> ChatMessage:
        """The model's next message; with `emits` its pieces go out as they come.

        No database connection is held meanwhile. Raises ModelFailed and Cancelled.
        """
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
        give_back()
        with self.call.ledger.use("model", chat.model_name, _shown(messages), parent=parent) as use:
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
            use.output = _said(message)
            if message.usage is not None:
                use.input_tokens = message.usage.input_tokens
                use.output_tokens = message.usage.output_tokens
        return message

    def read(self, messages: list[ChatMessage], reading: Callable[[str], T], *, again: str) -> T:
        """What `reading` makes of the reply. Where it cannot read it, the model is asked once
        more, with the problem in place of {problem} in `again`. Raises RunError."""
        message = self.ask(messages)
        try:
            return reading(text_of(message))
        except UnreadableReply as problem:
            complaint = ChatMessage("user", again.format(problem=problem))
            message = self.ask([*messages, message, complaint])
        try:
            return reading(text_of(message))
        except UnreadableReply as problem:
            node = self.call.node
            raise RunError(
                "unreadable_reply",
                f"What the model answered at the step “{node.id}” {problem}. Take one that follows"
                " instructions better.",
                status=502,
                node=node.id,
            ) from problem

    def use_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str,
        *,
        allowed: Sequence[str],
        parent: Use | None = None,
    ) -> ToolAnswer:
        """What a tool answers; what is wrong with the call is an answer, too. Raises Cancelled."""
        told = arguments if isinstance(arguments, str) else json.dumps(arguments)
        with self.call.ledger.use("tool", name[:60], told, parent=parent) as use:
            try:
                answer = self._used(name, arguments, allowed)
            finally:
                give_back()
            use.output = answer.text
            if answer.is_error:
                use.error = answer.text
        return answer

    def _used(
        self, name: str, arguments: Mapping[str, Any] | str, allowed: Sequence[str]
    ) -> ToolAnswer:
        if name not in allowed:
            known = ", ".join(allowed)
            return ToolAnswer(f"Error: There is no tool “{name[:60]}”. There are: {known}.", True)
        try:
            return tools.call(name, arguments, context=self.context)
        except RagsiteError as error:
            return ToolAnswer(f"Error: {error}", is_error=True)

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


def text_of(message: ChatMessage) -> str:
    """What a model said, which must be something. Raises ModelFailed."""
    if not message.content.strip():
        raise ModelFailed(EmptyAnswer("the model said nothing where its answer was due."))
    return message.content


def _shown(messages: Sequence[ChatMessage]) -> str:
    """What a trace tells of a request: the last message, which is what is new of it."""
    return messages[-1].content if messages else ""


def _said(message: ChatMessage) -> str:
    calls = [_written(call) for call in message.tool_calls]
    return "\n".join([message.content, *calls]) if message.content else "\n".join(calls)


def _written(call: ToolCall) -> str:
    return f"{call.name}({call.arguments})"
