"""One question of a chat: answered by passages or by a pipeline, kept in a conversation or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from inference.base import ChatMessage
from rag.context import RagContext
from rag.events import Event
from rag.models import Conversation
from rag.services.answering import answer
from rag.services.asked import GenerationOptions
from rag.services.conversations import (
    delete_conversation,
    get_conversation,
    question_of_last,
    start_conversation,
)
from rag.services.history import history_of
from rag.services.keeping import converse
from rag.services.pipelines import run_pipeline
from search.reranking import require_reranker
from search.results import Mode

#: What a request may say of the searches that answer it, also those of a pipeline's tools.
SEARCH_OPTIONS = ("fusion", "rrf_k", "weights", "depth", "rerank")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked and how. `pipeline` is an id, "" for an answer by passages; its nodes say for
    themselves what the fields below say of such an answer, but for `model`, and for `instructions`
    and `language` of the options."""

    message: str
    history: Sequence[ChatMessage] = ()
    model: str = ""
    pipeline: str = ""
    memory: bool | None = None
    whole: bool | None = None
    mode: Mode = "hybrid"
    search_options: Mapping[str, Any] = field(default_factory=dict)
    options: GenerationOptions = field(default_factory=GenerationOptions)


def chat(
    question: Question,
    *,
    context: RagContext,
    conversation: int | None = None,
    replaces: int | None = None,
    keep: bool = True,
) -> Iterator[Event]:
    """The events of the answer. Nothing is done, not even checked, before the first is drawn.

    With `keep` they are kept in `conversation`, whose messages are the history, or in a new one.
    One that is continued is asked of its own collections where `context` names none. `replaces` is
    the last answer of the conversation, whose place this one takes. Raises NotFound, Conflict, and
    what `answer` and `run_pipeline` raise.
    """
    if not keep:
        yield from _answered(question, context)
        return
    kept, is_new = _opened(context, conversation, question.pipeline)
    if not context.collections:
        context = replace(context, collections=tuple(kept.collections))
    before = None if replaces is None else question_of_last(kept, replaces)
    history, earlier = ([], []) if is_new else history_of(kept, context=context, before=before)
    question = replace(question, history=history) if history else question
    try:
        events = _answered(question, context, name=f"chat {kept.pk}", earlier=earlier)
    except BaseException:
        if is_new:
            delete_conversation(conversation=kept)
        raise
    yield from converse(
        events,
        question=question.message,
        conversation=kept,
        context=context,
        earlier_documents=earlier,
        replaces=before,
    )


def _opened(context: RagContext, id: int | None, pipeline: str) -> tuple[Conversation, bool]:
    if id is not None:
        return get_conversation(context=context, id=id), False
    return start_conversation(context=context, pipeline=pipeline), True


def _answered(
    question: Question, context: RagContext, *, name: str = "", earlier: Sequence[int] = ()
) -> Iterator[Event]:
    if question.search_options.get("rerank"):
        require_reranker(context.search_scope())
    if question.pipeline:
        return run_pipeline(
            question.pipeline,
            question.message,
            context=replace(context, search_options=question.search_options),
            history=question.history,
            model=question.model,
            system_prompt=question.options.instructions,
            language=question.options.language,
            earlier_documents=earlier,
        )
    return answer(
        question.message,
        context=context,
        history=question.history,
        model=question.model,
        memory=question.memory,
        whole=question.whole,
        options=question.options,
        mode=question.mode,
        search_options=question.search_options,
        conversation=name,
    )
