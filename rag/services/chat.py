"""One question of a chat: answered from passages or by a pipeline, stored in a conversation or
not."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from common.options import nested_options
from rag.context import RagContext
from rag.events import Event
from rag.services.answers import answer
from rag.services.conversations import (
    conversation_history,
    delete_conversation,
    get_conversation,
    question_of_last_answer,
    record_answer,
    start_conversation,
)
from rag.services.pipelines import run_pipeline
from rag.services.questions import Question
from search.query_options import RetrievalOptions
from search.ranking import require_reranker

#: Options of searches that a request may set, also for the tools of a pipeline.
SEARCH_OPTIONS = tuple(nested_options(RetrievalOptions))


def chat(
    question: Question,
    *,
    context: RagContext,
    conversation: int | None = None,
    replaces: int | None = None,
    keep: bool = True,
) -> Iterator[Event]:
    """The events of the answer. Nothing happens, not even validation, before the first is consumed.
    With `keep` the answer is stored in `conversation`, whose messages are the history, or in a new
    one. An existing conversation uses its own collections if `context` names none. `replaces` is
    the conversation's last answer, which this one replaces. Raises NotFound, Conflict, and what
    `answer` and `run_pipeline` raise."""
    if not keep:
        yield from _answer_events(question, context)
        return
    is_new = conversation is None
    if conversation is None:
        stored = start_conversation(context=context, pipeline=question.pipeline)
    else:
        stored = get_conversation(context=context, id=conversation)
    if not context.collections:
        context = replace(context, collections=tuple(stored.collections))
    before = None if replaces is None else question_of_last_answer(stored, replaces)
    history, earlier = (
        ([], []) if is_new else conversation_history(stored, context=context, before=before)
    )
    question = replace(question, history=history) if history else question
    try:
        events = _answer_events(question, context, name=f"chat {stored.pk}", earlier=earlier)
    except BaseException:
        if is_new:
            delete_conversation(conversation=stored)
        raise
    yield from record_answer(
        events,
        question=question.message,
        conversation=stored,
        context=context,
        earlier_documents=earlier,
        replaces=before,
    )


def _answer_events(
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
            system_prompt=question.instructions,
            language=question.language,
            earlier_documents=earlier,
        )
    return answer(question, context=context, conversation=name)
