"""A conversation that goes to a chat model as it is, without documents."""

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter

from django.conf import settings

from common.connections import give_back
from common.errors import RagsiteError
from inference.base import ChatMessage, ChatModel, ToolCall
from inference.cancelling import Cancelled
from memory.services import archive_turn, inject
from rag.context import RagContext
from rag.events import Done, Event, Metadata, Remembered, Token
from rag.failures import failed
from rag.openai.turns import Tool
from rag.services.asked import GenerationOptions

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Direct:
    """What the model is asked. `tool_calls` are there when its answer is complete."""

    model: ChatModel
    messages: Sequence[ChatMessage]
    context: RagContext
    options: GenerationOptions
    tools: Sequence[Tool] = ()
    tool_choice: str | None = None
    memory: bool = False
    tool_calls: tuple[ToolCall, ...] = field(default=(), init=False)

    def events(self) -> Iterator[Event]:
        """The answer as it comes, of which the last is Done or Failed.

        Nothing is told before the model has begun, so that a model that does not work is an error
        rather than an answer.
        """
        try:
            yield from self._told()
        except Cancelled:
            raise
        except Exception as error:
            yield failed(error)
        finally:
            give_back()

    def _told(self) -> Generator[Event, None, None]:
        began = perf_counter()
        self.context.require("chat")
        messages, remembered = self._with_memory()
        give_back()
        first_ms: float | None = None
        said: list[str] = []
        beginning = Metadata("", self.model.model_name, "model", memory=remembered)
        with closing(self._asked(messages)) as pieces:
            while True:
                self.context.check()
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    message: ChatMessage = end.value
                    break
                if first_ms is None:
                    first_ms = _since(began)
                    yield beginning
                said.append(piece)
                yield Token(piece)
        if first_ms is None:
            yield beginning
        self.tool_calls = message.tool_calls
        self._keep("".join(said))
        yield Done(
            elapsed_ms=_since(began),
            first_token_ms=first_ms,
            input_tokens=message.usage.input_tokens if message.usage else 0,
            output_tokens=message.usage.output_tokens if message.usage else 0,
            finish_reason=message.finish_reason,
        )

    def _asked(self, messages: Sequence[ChatMessage]) -> Generator[str, None, ChatMessage]:
        return self.model.stream(
            messages,
            tools=self.tools,
            tool_choice=self.tool_choice,
            max_tokens=self.options.max_tokens,
            temperature=self.options.temperature,
            top_p=self.options.top_p,
            stop=self.options.stop,
            timeout=settings.RAG_ANSWER_SECONDS,
        )

    def _with_memory(self) -> tuple[Sequence[ChatMessage], Remembered | None]:
        """The messages with what is remembered in the last one of the user's, and what that is."""
        if not self.memory:
            return self.messages, None
        injected = inject(
            messages=[{"role": each.role, "content": each.content} for each in self.messages],
            scope=self.context.memory_scope,
            enabled=True,
        )
        messages = [
            replace(each, content=str(told["content"]))
            for each, told in zip(self.messages, injected.messages, strict=True)
        ]
        remembered = Remembered(
            facts=injected.facts,
            context=tuple((turn.said_on.isoformat(), turn.question) for turn in injected.context),
            tokens=injected.tokens,
        )
        return messages, remembered

    def _keep(self, said: str) -> None:
        """Remember the turn; one that ends in tool calls is not over."""
        last = self.messages[-1]
        if self.memory and last.role == "user" and not self.tool_calls:
            try:
                archive_turn(
                    scope=self.context.memory_scope,
                    user_message=last.content,
                    assistant_response=said,
                )
            except RagsiteError as error:
                # Full, mostly: the answer is none the worse for it.
                logger.warning("a turn is not remembered: %s", error)


def _since(began: float) -> float:
    return round((perf_counter() - began) * 1000, 1)
