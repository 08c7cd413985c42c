"""A question in, an answer out that can be checked: retrieve, ask or quote, cite, validate."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from time import monotonic
from typing import Any

from django.conf import settings

from common.connections import give_back
from common.errors import InvalidInput
from documents.languages import detect_language
from inference.base import ChatMessage, ChatModel, InferenceError
from inference.cancelling import Cancelled
from inference.routing import chat_model
from rag.answering import evidence, prompt, refusal, rewriting
from rag.answering.citations import CitationScanner
from rag.answering.extractive import extract
from rag.answering.similarity import similar_to
from rag.answering.smalltalk import small_talk
from rag.answering.support import unsupported
from rag.answering.wording import is_refusal, say
from rag.context import RagContext
from rag.events import (
    Event,
    Finish,
    Metadata,
    Remembered,
    Retrieved,
    Verdict,
)
from rag.failures import failed
from rag.passage import Passage
from rag.services.asked import Asked, GenerationOptions, checked_language, checked_question
from rag.services.remembering import archive, recalled, with_memory
from rag.services.whole import whole_passages
from search.log import record_refusal, record_search
from search.results import Mode
from search.services import search

MAX_QUESTION_CHARACTERS = 8_000
#: What the generator is called where there is no model.
EXTRACTIVE = "extractive"


def answer(
    question: str,
    *,
    context: RagContext,
    history: Sequence[ChatMessage] = (),
    model: str = "",
    memory: bool | None = None,
    whole: bool | None = None,
    options: GenerationOptions | None = None,
    mode: Mode = "hybrid",
    search_options: Mapping[str, Any] | None = None,
    conversation: str = "",
) -> Iterator[Event]:
    """Answer `question` from what the user may read: the events, of which the last is Done or
    Failed.

    `model` is a name that `inference.routing.chat_model` knows; without one, and where none is
    connected, sentences are quoted. `search_options` are others of `search.services.search`, such
    as its `fusion`. `history` are the turns before, oldest first, which a follow-up
    question leans on. `memory` puts what is remembered of the user before a chat model and keeps
    the question, under the name `conversation`; None is MEMORY_INJECTION. `whole` puts everything
    in collections and filter before a chat model, or fails where that is too much; None does where
    it has up to RAG_WHOLE_TOKENS.

    What cannot be is raised at once: InvalidInput, NotFound, Forbidden. No database
    connection is held while a chat model answers.
    """
    context.require("chat")
    try:
        chat = chat_model(model)
    except InferenceError as error:
        raise InvalidInput(str(error), field="model") from error
    if whole and chat is None:
        raise InvalidInput(
            "Only a chat model can be given everything, and there is none. Leave it out.",
            field="whole",
        )
    asked = Asked(
        question=checked_question(question, most=MAX_QUESTION_CHARACTERS, field="message"),
        context=context,
        scope=context.search_scope(),
        history=history,
        chat=chat,
        memory=memory,
        whole=whole,
        options=replace(options, language=checked_language(options.language))
        if options
        else GenerationOptions(),
        mode=mode,
        search_options=search_options or {},
        conversation=conversation,
    )
    return _told(asked)


def _told(asked: Asked) -> Iterator[Event]:
    try:
        yield from _events(asked)
    except Cancelled:
        raise
    except Exception as error:
        yield failed(error)
    finally:
        give_back()


def _events(asked: Asked) -> Iterator[Event]:
    said, remembered = asked.question, None
    if asked.chat is None and asked.memory is not False:
        remembered = recalled(asked.question, context=asked.context)
    elif asked.uses_memory:
        said, remembered = with_memory(asked.question, history=asked.history, context=asked.context)
    yield Metadata(
        question=asked.question,
        model=asked.chat.model_name if asked.chat else EXTRACTIVE,
        generator="model" if asked.chat else "extractive",
        collections=asked.context.collections,
        memory=remembered,
    )
    if talk := small_talk(asked.question):
        yield asked.told(talk)
        yield asked.done()
        return
    if asked.chat is None and remembered:
        yield from _recall(asked, remembered)
        return
    retrieved, language = yield from _retrieve(asked)
    if retrieved.refused:
        yield asked.told(refusal.not_found_text(language))
        _archive(asked, told="")
        yield asked.done(finish="refused", verdict=Verdict(refused=True))
        return
    if asked.chat is None:
        yield from _quote(asked, retrieved, language)
    else:
        yield from _generate(asked, asked.chat, retrieved, said, language)


def _recall(asked: Asked, remembered: Remembered) -> Iterator[Event]:
    """Quote the user's memory: `metadata` names the entry."""
    entries = [*(f"{key}: {value}" for key, value in remembered.facts)]
    entries += [f"{said} ({day})" for day, said in remembered.context]
    language = asked.options.language or detect_language(asked.question, default="")
    yield asked.told("\n".join([say("remembered", language), *(f"> {each}" for each in entries)]))
    _archive(asked, told="")
    yield asked.done()


def _retrieve(asked: Asked) -> Generator[Event, None, tuple[Retrieved, str]]:
    """Tell what was found, and return it with the language to answer in."""
    query = asked.question
    leans = bool(asked.history) and rewriting.leans_on_history(asked.question, asked.history)
    if leans:
        give_back()
        query = rewriting.rewritten(asked.question, asked.history, model=asked.chat)
    asked.context.check()
    result = search(
        query,
        scope=asked.scope,
        mode=asked.mode,
        k=settings.RAG_PASSAGES,
        snippets=False,
        **asked.search_options,
    )
    if passages := _whole(asked):
        refused = False
    else:
        passages = asked.context.collect(result.hits)
        judgement = refusal.judge(evidence.gather(result, passages, scope=asked.scope))
        # With a chat model “make it shorter” is answered from what was said before.
        refused = not judgement.answers and not (leans and asked.chat)
    asker = asked.context.user
    asked.logged = record_search(
        result=result,
        scope=asked.scope,
        user=asker,
        source="chat" if asker else "command",
        refused=refused,
    )
    retrieved = Retrieved(
        query=query,
        passages=tuple(passages),
        elapsed_ms=result.milliseconds,
        degraded=result.degraded,
        refused=refused,
    )
    yield retrieved
    return retrieved, asked.options.language or _language(query, passages)


def _whole(asked: Asked) -> list[Passage]:
    """Everything that may be answered from, where it is to be given whole and fits; else []."""
    if not (most := asked.whole_tokens):
        return []
    passages = whole_passages(context=asked.context, scope=asked.scope, max_tokens=most)
    if passages:
        asked.budget_tokens += most
    elif asked.whole:
        raise InvalidInput(
            f"There is nothing, or more than the {most:,} tokens that may be put before the model"
            " whole. Name collections or a filter, raise RAGSITE_RAG_WHOLE_TOKENS, or ask without"
            " `whole`.",
            field="whole",
        )
    return passages


def _quote(asked: Asked, retrieved: Retrieved, language: str) -> Iterator[Event]:
    similar = similar_to(retrieved.query, retrieved.passages)
    give_back()
    extracted = extract(
        retrieved.query,
        retrieved.passages,
        similar=similar,
        language=language,
    )
    for piece in extracted.pieces:
        asked.context.check()
        yield asked.told(piece)
    _archive(asked, told="")
    yield asked.done()


def _generate(
    asked: Asked, chat: ChatModel, retrieved: Retrieved, said: str, language: str
) -> Iterator[Event]:
    written = prompt.build(
        said,
        retrieved.passages,
        asked.history,
        budget_tokens=asked.budget_tokens,
        language=language,
        instructions=asked.options.instructions,
        in_language=asked.options.language,
    )
    # Given back before the model is asked: it may take its time.
    give_back()
    scanner = CitationScanner({passage.number: passage for passage in written.passages})
    message = yield from _streamed(asked, chat, written.messages, scanner)
    text = "".join(asked.text)
    refused = is_refusal(text)
    if refused:
        record_refusal(asked.logged)
    verdict = Verdict(
        refused=refused,
        unsupported=() if refused else tuple(unsupported(text, written.passages)),
        dropped_citations=scanner.dropped,
    )
    # An answer that quotes documents stays out of memory: there it would outlive them.
    _archive(asked, told="" if written.passages else text)
    finish: Finish = "refused" if refused else "length" if message.truncated else "stop"
    yield asked.done(finish=finish, verdict=verdict, usage=message.usage)


def _streamed(
    asked: Asked, chat: ChatModel, messages: Sequence[ChatMessage], scanner: CitationScanner
) -> Generator[Event, None, ChatMessage]:
    """The model's words with their citations; its whole message. Raises InferenceError."""
    options = asked.options
    pieces = chat.stream(
        messages,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        top_p=options.top_p,
        stop=options.stop,
        timeout=max(1.0, asked.deadline - monotonic()),
    )
    with closing(pieces):
        while True:
            asked.context.check()
            try:
                piece = next(pieces)
            except StopIteration as end:
                message: ChatMessage = end.value
                break
            yield from map(asked.told, scanner.feed(piece))
    yield from map(asked.told, scanner.finish())
    return message


def _archive(asked: Asked, *, told: str) -> None:
    if asked.uses_memory:
        archive(
            asked.question,
            told,
            history=asked.history,
            conversation=asked.conversation,
            context=asked.context,
        )


def _language(question: str, passages: Sequence[Passage]) -> str:
    """That of the question where it can be told; else of the best passage."""
    return detect_language(question, default=passages[0].language if passages else "")
