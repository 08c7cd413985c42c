"""Answer a question from documents: retrieve, judge, quote or ask a chat model, cite, validate.
Begin with `answer`.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext

from common import features
from common.errors import InvalidInput
from common.sql import release_connection
from common.stored_messages import translated_message
from documents.question_language import question_language
from inference.cancellation import Cancelled
from inference.interfaces import InferenceError
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat
from rag.answering import coreference
from rag.answering.answerability import Evidence, judge_confidence
from rag.answering.evidence import find_passages, quote_passages
from rag.answering.extractive import ExtractiveAnswer
from rag.answering.phrases import not_found_text, refusal_help, say, small_talk
from rag.answering.question_form import source_count, unmentioned_names
from rag.answering.whole_document import whole_document_question
from rag.context import RagContext
from rag.errors import failure_event
from rag.events import Confidence, Event, InjectedMemory, Metadata, Passage, Retrieval, Verdict
from rag.services.generation import Quote, generate, name_missing
from rag.services.questions import (
    COMPUTED,
    EXTRACTIVE,
    MAX_QUESTION_CHARACTERS,
    AnswerRequest,
    Question,
    checked_language,
    validate_question,
)
from rag.services.user_memory import chat_messages, inject_memory, recall, remember
from search.log import record_search


def answer(question: Question, *, context: RagContext, conversation: str = "") -> Iterator[Event]:
    """Answer from what the user may read: an iterator of events, the last Done or Failed.
    `conversation` is the name under which memory stores the question.

    Invalid requests raise at once: InvalidInput, NotFound, Forbidden, TooManyRequests. No database
    connection is held while a chat model answers.
    """
    context.require("chat")
    try:
        chat = metered_chat(
            question.model,
            workspace_id=context.workspace.pk,
            user_id=context.user_id,
            purpose=Purpose.ANSWER,
        )
    except InferenceError as error:
        raise InvalidInput(translated_message(str(error)), field="model") from error
    if question.whole and chat is None:
        raise InvalidInput(
            gettext(
                "Only a chat model can read whole documents, and none is connected. Leave"
                " `whole` out."
            ),
            field="whole",
        )
    if question.memory:
        features.require("memory")
    asked = replace(
        question,
        message=validate_question(question.message, most=MAX_QUESTION_CHARACTERS, field="message"),
        language=checked_language(question.language),
    )
    if chat is not None:
        require_tokens(workspace_id=context.workspace.pk, user_id=context.user_id)
    request = AnswerRequest(asked, context, context.search_scope(), chat, conversation)
    return guarded_events(_events(request))


def guarded_events(events: Iterator[Event]) -> Iterator[Event]:
    """The events of an answer; an error becomes the last one, Failed. Releases the database
    connection at the end."""
    try:
        yield from events
    except Cancelled:
        raise
    except Exception as error:
        yield failure_event(error)
    finally:
        release_connection()


def _events(request: AnswerRequest) -> Iterator[Event]:
    from rag.services.table_answers import TablesRead, read_tables  # noqa: PLC0415 (loads all tools)

    prompt_question, remembered, tables = request.asked.message, None, TablesRead()
    talk = small_talk(request.asked.message)
    if request.chat is None and request.asked.memory is not False and not request.asked.reading:
        remembered = recall(request.asked.message, context=request.context)
    if not talk and not remembered:
        tables = read_tables(request)
    is_computed = tables.retrieval is not None
    if request.chat is not None and request.uses_memory and not is_computed:
        messages = chat_messages(request.asked.message, request.asked.history)
        (*_, prompt_question), remembered = inject_memory(messages, context=request.context)
    model = request.chat.model_name if request.chat else EXTRACTIVE
    yield Metadata(
        question=request.asked.message,
        model=COMPUTED if is_computed else model,
        generator="computed" if is_computed else "model" if request.chat else "extractive",
        collections=request.context.collections,
        memory=remembered,
    )
    if talk:
        yield request.emit(talk)
        yield request.done()
        return
    if tables.retrieval is not None:
        # Each word of the question is understood, so a chat model could only get the number wrong.
        yield tables.retrieval
        yield tables.event
        release_connection()
        yield from map(request.emit, tables.pieces)
        remember(request, response="")
        yield request.done(verdict=Verdict())
        return
    if request.chat is None and remembered:
        yield request.emit(_quoted_memory(remembered, request.asked))
        remember(request, response="")
        yield request.done()
        return
    retrieved, language, quote = yield from _read(request)
    if tables.event.readings:
        yield tables.event
    if retrieved.refused:
        searched = request.context.describe_search(request.scope)
        yield request.emit(not_found_text(language))
        if tables.event.text:
            yield request.emit(f"\n\n{tables.event.text}")
        yield from name_missing(request, retrieved, language)
        yield request.emit(f"\n\n{refusal_help(searched, language)}")
        remember(request, response="")
        verdict = Verdict(confidence="none", searched=searched)
        yield request.done(finish="refused", verdict=verdict)
        return
    if request.chat is None:
        release_connection()
        for piece in quote():
            request.context.check()
            yield request.emit(piece)
        yield from name_missing(request, retrieved, language)
        remember(request, response="")
        yield request.done(verdict=Verdict(confidence=retrieved.confidence))
    else:
        yield from generate(request, request.chat, retrieved, prompt_question, language, quote)


def _quoted_memory(remembered: InjectedMemory, question: Question) -> str:
    """The user's memory as the answer: `metadata` names the entry."""
    entries = [*(f"{key}: {value}" for key, value in remembered.facts)]
    entries += [f"{message} ({day})" for day, message in remembered.context]
    spoken = question.language or question_language(question.message)
    return "\n".join([say("remembered", spoken), *(f"> {each}" for each in entries)])


def _read(
    request: AnswerRequest,
) -> Generator[Event, None, tuple[Retrieval, str, Quote]]:
    """The passages to answer from, with the language and what quotes them. Of a question about one
    whole document its most central passages."""
    asked = request.asked
    if not asked.whole and whole_document_question(asked.message):
        from rag.services.long_context import read_named_document  # noqa: PLC0415 (loads all tools)

        document = read_named_document(
            asked.message,
            context=request.context,
            budget_tokens=request.prompt_tokens if request.chat else None,
            language=asked.language,
        )
        if document is not None:
            yield document.retrieval
            return document.retrieval, document.language, lambda: document.pieces
    return (yield from _retrieve(request))


def _retrieve(
    request: AnswerRequest,
) -> Generator[Event, None, tuple[Retrieval, str, Quote]]:
    """Search and emit what was found; returns it with the language to answer in, and with what
    quotes it."""
    asked, query = request.asked, request.asked.message
    leans = bool(asked.history) and coreference.needs_history(asked.message, asked.history)
    if leans:
        release_connection()
        query = coreference.rewrite_question(asked.message, asked.history, model=request.chat)
    request.context.check()
    query_language = question_language(query)
    sources: int = settings.RAG_PASSAGES
    if request.chat:
        sources = source_count(query, language=query_language, usual=sources)
    found = find_passages(
        query,
        scope=request.scope,
        k=sources,
        mode=asked.mode,
        **asked.search_options,
    )
    result, evidence = found.result, found.evidence
    whole = _passages_in_scope(request)
    passages = whole or request.context.found.add(found.passages)
    # The question's language if it can be told, else the best passage's.
    language = query_language or (passages[0].language if passages else "")
    spoken = asked.language or language

    def quote_found() -> tuple[ExtractiveAnswer, Evidence]:
        return quote_passages(
            query, passages, found, language=spoken, query_language=query_language
        )

    quoted = ExtractiveAnswer()
    if request.chat is None:
        quoted, evidence = quote_found()
    confidence: Confidence = "high" if whole else judge_confidence(evidence)
    if confidence == "none" and leans and request.chat:
        confidence = "low"  # “make it shorter” is answered from the conversation
    asker = request.context.user
    if asked.logged:
        request.search_log_id = record_search(
            result=result,
            scope=request.scope,
            user=asker,
            source="chat" if asker else "command",
            confidence=confidence,
            answered_from=[]
            if whole
            else [cited.passage.document_id for cited in quoted.cited]
            + [passage.document_id for passage in passages],
        )
    retrieved = Retrieval(
        query=query,
        passages=tuple(passages),
        elapsed_ms=result.milliseconds,
        degraded=result.degraded,
        confidence=confidence,
        missing=unmentioned_names(query, passages, language=language),
    )
    yield retrieved
    if request.chat is not None:
        # The whole selection has no hits of a search, by which sentences are chosen.
        return retrieved, spoken, lambda: () if whole else quote_found()[0].unsure_pieces(spoken)
    pieces = quoted.unsure_pieces(spoken) if confidence == "low" else quoted.pieces
    return retrieved, spoken, lambda: pieces


def _passages_in_scope(request: AnswerRequest) -> list[Passage]:
    """Everything that may be answered from, where it is to be given whole and fits; else []."""
    if not (most := request.scope_tokens):
        return []
    from rag.services.long_context import passages_in_scope  # noqa: PLC0415 (loads all tools)

    passages = passages_in_scope(context=request.context, scope=request.scope, max_tokens=most)
    if passages:
        request.budget_tokens += most
    elif request.asked.whole:
        raise InvalidInput(
            gettext(
                "The selection is empty or exceeds the limit of {most} tokens for whole"
                " documents. Choose collections or a filter, raise"
                " RAGSITE_RAG_WHOLE_TOKENS, or ask without `whole`."
            ).format(most=number_format(most, force_grouping=True)),
            field="whole",
        )
    return passages
