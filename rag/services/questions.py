"""A question, and the state of answering it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter
from typing import Any

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.metrics import ANSWER_SECONDS, FIRST_TOKEN_SECONDS
from inference.interfaces import ChatMessage, ChatModel, Usage
from inference.reasoning import Reasoning
from rag.answering.citations import AnswerPiece
from rag.answering.model_context import RULES_TOKENS, prompt_tokens
from rag.context import RagContext
from rag.events import Done, Event, FinishReason, ReasoningToken, Token, Verdict
from search.results import Mode, Scope

MAX_QUESTION_CHARACTERS = 8_000
#: Model name of answers without a chat model.
EXTRACTIVE = "extractive"
#: That of answers computed from tables.
COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how to answer it. `history` are the earlier turns, oldest first, to which it
    may refer.

    `model` is a name known to `inference.chat_models.chat_model`; without one, and if none is
    connected, sentences are quoted. `instructions` are appended to the rules of the prompt: they
    are the caller's, never a document's. `pipeline` is an id, "" for an answer from passages: a
    pipeline's nodes set the options below `pipeline` themselves. `reading` names what is computed
    from tables, by the token of a reading that an earlier answer offered.

    `memory` puts the user's memory before a chat model and stores the question; None means the
    setting MEMORY_INJECTION. `whole` puts all that may be answered from before the model; None
    means where it is little. `logged` notes the question in the search log. `search_options` are
    further options of `search.services.search`, such as `fusion`, `model_options` of
    `ChatModel.stream`, such as `temperature`.
    """

    message: str
    history: Sequence[ChatMessage] = ()
    model: str = ""
    instructions: str = ""
    language: str = ""
    pipeline: str = ""
    reading: str = ""
    memory: bool | None = None
    whole: bool | None = None
    logged: bool = True
    mode: Mode = "hybrid"
    search_options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class AnswerRequest:
    """A question with everything its answer needs, and the state of answering it."""

    asked: Question
    context: RagContext
    scope: Scope
    chat: ChatModel | None
    conversation: str
    began: float = field(default_factory=perf_counter)
    deadline: float = field(default_factory=lambda: monotonic() + settings.RAG_ANSWER_SECONDS)
    text: list[str] = field(default_factory=list)
    citations: int = 0
    first_token_ms: float | None = None
    search_log_id: int | None = None
    budget_tokens: int = field(default_factory=lambda: settings.RAG_CONTEXT_TOKENS)

    @property
    def prompt_tokens(self) -> int:
        """Up to how many tokens a prompt may have, `budget_tokens` where the model has room."""
        return prompt_tokens(self.chat, most=self.budget_tokens, answer_tokens=self.answer_tokens)

    @property
    def answer_tokens(self) -> int | None:
        """What the caller allows an answer; None: what the model does."""
        return self.asked.model_options.get("max_tokens")

    @property
    def uses_memory(self) -> bool:
        """Whether the user's memory is put before the model and extended."""
        if self.asked.memory is None:
            return settings.MEMORY_INJECTION and self.context.allows("memory")
        return self.asked.memory

    @property
    def scope_tokens(self) -> int:
        """Up to how many tokens everything is put before the model; 0: never."""
        if self.chat is None or self.asked.whole is False:
            return 0
        most: int = settings.RAG_WHOLE_TOKENS
        most = most or (settings.RAG_CONTEXT_TOKENS if self.asked.whole else 0)
        fits = prompt_tokens(self.chat, most=most + RULES_TOKENS, answer_tokens=self.answer_tokens)
        return max(min(most, fits - RULES_TOKENS), 0)

    @property
    def elapsed_ms(self) -> float:
        return round((perf_counter() - self.began) * 1000, 1)

    def emit(self, piece: AnswerPiece) -> Event:
        """Record a piece of the answer and return its event."""
        if not isinstance(piece, str):
            self.citations += 1
            return piece
        if self.first_token_ms is None:
            self.first_token_ms = self.elapsed_ms
        self.text.append(piece)
        return Token(piece)

    def reason(self, piece: Reasoning) -> ReasoningToken:
        """The event of a piece of reasoning; withdraws the answer so far where that was some."""
        if piece.withdraws:
            self.text.clear()
            self.citations = 0
        return ReasoningToken(piece.text, withdrawn_from=0 if piece.withdraws else None)

    def done(
        self,
        *,
        finish: FinishReason = "stop",
        verdict: Verdict | None = None,
        usage: Usage | None = None,
    ) -> Done:
        """The last event of a successful answer."""
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


def validate_question(question: str, *, most: int, field: str) -> str:
    """The question without NUL characters. Raises InvalidInput, naming `field`, if it is empty or
    has more than `most` characters."""
    plain = question.replace("\0", " ").strip()
    if not plain:
        raise InvalidInput(gettext("The question is empty. Enter one."), field=field)
    if len(plain) > most:
        raise InvalidInput(
            gettext(
                "A question has at most {most} characters; this one has {length}. Put"
                " long texts into a document."
            ).format(
                most=number_format(most, force_grouping=True),
                length=number_format(len(plain), force_grouping=True),
            ),
            field=field,
        )
    return plain


def checked_language(language: str) -> str:
    """The name or code of a language, fit to stand in a prompt. Raises InvalidInput."""
    plain = language.strip()
    if not re.fullmatch(r"[\w#+. ()-]{0,40}", plain):
        raise InvalidInput(
            gettext(
                "A language is a name or a code of up to 40 characters, such as German,"
                " de or Python."
            ),
            field="language",
        )
    return plain
