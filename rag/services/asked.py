"""A question on its way to its answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

from django.conf import settings

from common.errors import InvalidInput
from common.metrics import ANSWER_SECONDS, FIRST_TOKEN_SECONDS
from inference.base import ChatMessage, ChatModel, Usage
from rag.answering.citations import Piece
from rag.context import RagContext
from rag.events import Done, Event, Finish, Token, Verdict
from search.results import Mode, Scope


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """How a chat model is to answer; None leaves each to its configuration. `instructions` go
    behind the rules of the prompt: they are the caller's, never a document's. `language` is that of
    the answer, by its name or code; "" is the question's."""

    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    instructions: str = ""
    language: str = ""


@dataclass(slots=True)
class Asked:
    """A question with all that its answer needs, and how far it is."""

    question: str
    context: RagContext
    scope: Scope
    history: Sequence[ChatMessage]
    chat: ChatModel | None
    memory: bool | None
    whole: bool | None
    options: GenerationOptions
    mode: Mode
    conversation: str
    search_options: Mapping[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=perf_counter)
    deadline: float = field(default_factory=lambda: monotonic() + settings.RAG_ANSWER_SECONDS)
    text: list[str] = field(default_factory=list)
    first_token_ms: float | None = None
    logged: int | None = None
    budget_tokens: int = field(default_factory=lambda: settings.RAG_CONTEXT_TOKENS)

    @property
    def uses_memory(self) -> bool:
        """Whether the user's memory is put before the model, and added to."""
        if self.memory is None:
            return settings.MEMORY_INJECTION and self.context.allows("memory")
        return self.memory

    @property
    def whole_tokens(self) -> int:
        """Up to how many tokens everything is put before the model; 0: never."""
        if self.chat is None or self.whole is False:
            return 0
        most: int = settings.RAG_WHOLE_TOKENS
        return most or (settings.RAG_CONTEXT_TOKENS if self.whole else 0)

    @property
    def elapsed_ms(self) -> float:
        """Since it was asked."""
        return round((perf_counter() - self.began) * 1000, 1)

    def told(self, piece: Piece) -> Event:
        """A piece of the answer as an event."""
        if not isinstance(piece, str):
            return piece
        if self.first_token_ms is None:
            self.first_token_ms = self.elapsed_ms
        self.text.append(piece)
        return Token(piece)

    def done(
        self,
        *,
        finish: Finish = "stop",
        verdict: Verdict | None = None,
        usage: Usage | None = None,
    ) -> Done:
        """The last event, where nothing went wrong."""
        ANSWER_SECONDS.labels(finish).observe(self.elapsed_ms / 1000)
        if self.first_token_ms is not None:
            FIRST_TOKEN_SECONDS.observe(self.first_token_ms / 1000)
        return Done(
            elapsed_ms=self.elapsed_ms,
            first_token_ms=self.first_token_ms,
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            finish_reason=finish,
            verdict=verdict or Verdict(),
        )


def checked_question(question: str, *, most: int, field: str) -> str:
    """The question without what a database cannot keep. Raises InvalidInput, which names `field`,
    for an empty one and for one of more than `most` characters."""
    plain = question.replace("\0", " ").strip()
    if not plain:
        raise InvalidInput("There is no question. Write one.", field=field)
    if len(plain) > most:
        raise InvalidInput(
            f"A question has at most {most:,} characters, this one has {len(plain):,}. Put long"
            " texts into a document.",
            field=field,
        )
    return plain


def checked_language(language: str) -> str:
    """The name or code of a language, fit to stand in a prompt. Raises InvalidInput."""
    plain = language.strip()
    if not re.fullmatch(r"[\w#+. ()-]{0,40}", plain):
        raise InvalidInput(
            "A language is a name or a code of up to 40 characters, such as German, de or Python.",
            field="language",
        )
    return plain
