"""Answer a question from documents: retrieve, judge, quote or ask a chat model, cite, validate.
Begin with `answer`.
"""

import logging
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import monotonic, perf_counter
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext

from common import features
from common.errors import InvalidInput, RagsiteError
from common.metrics import ANSWER_SECONDS, FIRST_TOKEN_SECONDS
from common.sql import release_connection
from common.stored_messages import translated_message
from documents.question_language import question_language
from inference.cancellation import Cancelled
from inference.chat_models import chat_model
from inference.interfaces import ChatMessage, ChatModel, InferenceError, Usage
from inference.reasoning import Part, Reasoning
from memory.injection import estimated_tokens
from memory.models import Context, Fact
from rag.answering import coreference, prompt
from rag.answering.answerability import judge_confidence
from rag.answering.citations import AnswerPiece, CitationScanner
from rag.answering.evidence import find_passages, quote_passages
from rag.answering.extractive import ExtractiveAnswer
from rag.answering.groundedness import unsupported
from rag.answering.model_context import (
    RULES_TOKENS,
    context_tokens,
    fitting_answer_tokens,
    prompt_tokens,
)
from rag.answering.phrases import (
    is_refusal,
    missing_text,
    not_found_text,
    refusal_help,
    say,
    small_talk,
)
from rag.answering.question_form import source_count, unmentioned_names
from rag.answering.whole_document import whole_document_question
from rag.context import RagContext
from rag.errors import failure_event
from rag.events import (
    Confidence,
    Done,
    Event,
    FinishReason,
    InjectedMemory,
    Metadata,
    Passage,
    ReasoningToken,
    Retrieval,
    Token,
    Verdict,
)
from rag.token_limits import count_tokens, require_tokens
from search.log import record_refusal, record_search
from search.results import Mode, Scope
from tables.questions.words import has_measure


@dataclass(frozen=True, slots=True)
class Question:
    """A question and how to answer it. `history` are the earlier turns, oldest first, to which it
    may refer.

    `model` is a name known to `inference.chat_models.chat_model`; without one, and if none is
    connected, sentences are quoted. `instructions` are appended to the rules of the prompt: they
    are the caller's, never a document's. `pipeline` is an id, "" for an answer from passages: a
    pipeline's nodes set the options below `pipeline` themselves.

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
    def whole_tokens(self) -> int:
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
            return piece
        if self.first_token_ms is None:
            self.first_token_ms = self.elapsed_ms
        self.text.append(piece)
        return Token(piece)

    def reason(self, piece: Reasoning) -> ReasoningToken:
        """The event of a piece of reasoning; withdraws the answer so far where that was some."""
        if piece.withdraws:
            self.text.clear()
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


logger = logging.getLogger(__name__)

#: Minimum relevance (memory.ranking) of a memory quoted as an answer. Of 20 questions in the
#: first person about other things, the best of eight facts had up to 0.3, and one had 0.7.
MIN_RECALL_RELEVANCE = 0.5
FIRST_PERSON = re.compile(
    r"\b(?:i|i'm|me|my|mine|myself|ich|mir|mich|mein\w{0,2}|yo|mis?|vivo|je|j'\w+|moi|mon|mes"
    r"|io|mi[oa]|eu|meu|minha|ik|mijn)\b",
    re.IGNORECASE,
)
#: Questions that ask for a fact without naming its key.
FACT_KEYS = {
    re.compile(r"\bwhere do i live\b|\b(?:wohne ich|vivo)\b", re.IGNORECASE): (
        *("city", "town", "home", "address", "residence", "location"),
    ),
    re.compile(r"\b(?:who am i|am i called|heiße ich|heisse ich|me llamo)\b", re.IGNORECASE): (
        *("name", "full_name", "first_name"),
    ),
    re.compile(r"\bwhere do i work\b|\b(?:arbeite ich|trabajo)\b", re.IGNORECASE): (
        *("employer", "company", "workplace", "job"),
    ),
    re.compile(r"\bhow old am i\b|\balt bin ich\b", re.IGNORECASE): ("age", "birthday"),
}


def inject_memory(
    messages: Sequence[Mapping[str, str]], *, context: RagContext
) -> tuple[list[str], InjectedMemory]:
    """The contents of the messages, the last with relevant memory added, and that memory."""
    from memory.services import inject  # noqa: PLC0415 (loads Celery and the rules of extraction)

    injected = inject(messages=messages, scope=context.memory_scope, enabled=True)
    remembered = InjectedMemory(
        facts=injected.facts,
        context=tuple((turn.said_on.isoformat(), turn.question) for turn in injected.context),
        tokens=injected.tokens,
    )
    return [str(message["content"]) for message in injected.messages], remembered


def recall(question: str, *, context: RagContext) -> InjectedMemory | None:
    """The memory that answers a question about the user, without a chat model: a fact, else
    something the user wrote; None if nothing fits."""
    may_recall = features.is_on("memory") and context.allows("memory")
    if not may_recall or not FIRST_PERSON.search(question):
        return None
    scope = context.memory_scope
    if not any(model.objects.of(scope).exists() for model in (Fact, Context)):
        return None
    from memory.services import get_fact, rank_facts, search_memory  # noqa: PLC0415 (as above)

    facts = [
        fact
        for fact, scores in rank_facts(scope=scope, query=question, limit=1)
        if scores.relevance >= MIN_RECALL_RELEVANCE
    ]
    keys = [key for asks, named in FACT_KEYS.items() if asks.search(question) for key in named]
    facts += [fact for key in keys if (fact := get_fact(scope=scope, key=key))]
    if facts:
        return InjectedMemory(facts=((facts[0].key, facts[0].value),))
    # Stored questions are no answers.
    for hit in search_memory(
        scope=scope, query=question, k=10, threshold=MIN_RECALL_RELEVANCE
    ).hits:
        message = hit.context.user_message
        if "?" not in message and FIRST_PERSON.search(message):
            day = timezone.localdate(hit.context.created_at).isoformat()
            return InjectedMemory(context=((day, message),))
    return None


def remember_turn(
    question: str,
    response: str,
    *,
    context: RagContext,
    history: Sequence[ChatMessage] = (),
    conversation: str = "",
) -> None:
    """Store question and `response` in memory, and have facts extracted from a named
    `conversation`."""
    from memory.services import archive_turn, record_messages  # noqa: PLC0415

    scope = context.memory_scope
    try:
        archive_turn(
            scope=scope,
            user_message=question,
            assistant_response=response,
            conversation=conversation,
        )
        if conversation:
            record_messages(
                scope=scope, conversation=conversation, messages=_chat_messages(question, history)
            )
    except RagsiteError as error:
        # Mostly a full quota; the answer itself is not affected.
        logger.warning("a turn is not remembered: %s", error)


def _chat_messages(question: str, history: Sequence[ChatMessage]) -> list[dict[str, str]]:
    return [
        *({"role": turn.role, "content": turn.content} for turn in history),
        {"role": "user", "content": question},
    ]


MAX_QUESTION_CHARACTERS = 8_000
#: Model name of answers without a chat model.
EXTRACTIVE = "extractive"


def answer(question: Question, *, context: RagContext, conversation: str = "") -> Iterator[Event]:
    """Answer from what the user may read: an iterator of events, the last Done or Failed.
    `conversation` is the name under which memory stores the question.

    Invalid requests raise at once: InvalidInput, NotFound, Forbidden, TooManyRequests. No database
    connection is held while a chat model answers.
    """
    context.require("chat")
    try:
        chat = chat_model(question.model, workspace_id=context.workspace.pk)
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
        require_tokens(context)
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
    prompt_question, remembered = request.asked.message, None
    if request.chat is None and request.asked.memory is not False:
        remembered = recall(request.asked.message, context=request.context)
    elif request.uses_memory:
        messages = _chat_messages(request.asked.message, request.asked.history)
        (*_, prompt_question), remembered = inject_memory(messages, context=request.context)
    yield Metadata(
        question=request.asked.message,
        model=request.chat.model_name if request.chat else EXTRACTIVE,
        generator="model" if request.chat else "extractive",
        collections=request.context.collections,
        memory=remembered,
    )
    if talk := small_talk(request.asked.message):
        yield request.emit(talk)
        yield request.done()
        return
    if request.chat is None and remembered:
        # Quote the user's memory: `metadata` names the entry.
        entries = [*(f"{key}: {value}" for key, value in remembered.facts)]
        entries += [f"{message} ({day})" for day, message in remembered.context]
        spoken = request.asked.language or question_language(request.asked.message)
        quoted = [say("remembered", spoken), *(f"> {each}" for each in entries)]
        yield request.emit("\n".join(quoted))
        _remember(request, response="")
        yield request.done()
        return
    retrieved, language, pieces = yield from _read(request)
    if retrieved.refused:
        searched = request.context.describe_search(request.scope)
        yield request.emit(not_found_text(language))
        yield from _name_missing(request, retrieved, language)
        yield request.emit(f"\n\n{refusal_help(searched, language)}")
        _remember(request, response="")
        verdict = Verdict(confidence="none", searched=searched)
        yield request.done(finish="refused", verdict=verdict)
        return
    if request.chat is None:
        release_connection()
        for piece in pieces:
            request.context.check()
            yield request.emit(piece)
        yield from _name_missing(request, retrieved, language)
        _remember(request, response="")
        yield request.done(verdict=Verdict(confidence=retrieved.confidence))
    else:
        yield from _generate(request, request.chat, retrieved, prompt_question, language)


def _read(
    request: AnswerRequest,
) -> Generator[Event, None, tuple[Retrieval, str, Sequence[AnswerPiece]]]:
    """The passages to answer from, with the language, and the answer where no chat model is to
    write it: computed where the question is one of a table's. Of a question about one whole
    document its most central passages."""
    asked = request.asked
    if request.chat is None and has_measure(asked.message):
        from rag.services.table_answers import answer_from_tables  # noqa: PLC0415 (loads all tools)

        computed = answer_from_tables(
            asked.message, context=request.context, language=asked.language
        )
        if computed is not None:
            yield computed.retrieval
            return computed.retrieval, computed.language, computed.pieces
    if not asked.whole and whole_document_question(asked.message):
        from rag.services.whole_document import read_whole_document  # noqa: PLC0415 (loads all tools)

        document = read_whole_document(
            asked.message,
            context=request.context,
            budget_tokens=request.prompt_tokens if request.chat else None,
            language=asked.language,
        )
        if document is not None:
            yield document.retrieval
            return document.retrieval, document.language, document.pieces
    return (yield from _retrieve(request))


def _retrieve(
    request: AnswerRequest,
) -> Generator[Event, None, tuple[Retrieval, str, Sequence[AnswerPiece]]]:
    """Search and emit what was found; returns it with the language to answer in, and with
    quotations where no chat model is to write the answer."""
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
    whole = _whole(request)
    passages = whole or request.context.found.add(found.passages)
    # The question's language if it can be told, else the best passage's.
    language = query_language or (passages[0].language if passages else "")
    quoted = ExtractiveAnswer()
    if request.chat is None:
        quoted, evidence = quote_passages(
            query,
            passages,
            found,
            language=asked.language or language,
            query_language=query_language,
        )
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
    spoken = asked.language or language
    pieces = quoted.unsure_pieces(spoken) if confidence == "low" else quoted.pieces
    return retrieved, spoken, pieces


def _name_missing(request: AnswerRequest, retrieved: Retrieval, language: str) -> Iterator[Event]:
    """A final sentence with the terms of the question that no retrieved passage mentions."""
    if retrieved.missing:
        yield request.emit(f"\n\n{missing_text(retrieved.missing, language)}")


def _whole(request: AnswerRequest) -> list[Passage]:
    """Everything that may be answered from, where it is to be given whole and fits; else []."""
    if not (most := request.whole_tokens):
        return []
    from rag.services.whole_collection import whole_passages  # noqa: PLC0415 (loads all tools)

    passages = whole_passages(context=request.context, scope=request.scope, max_tokens=most)
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


def _generate(
    request: AnswerRequest,
    chat: ChatModel,
    retrieved: Retrieval,
    prompt_question: str,
    language: str,
) -> Iterator[Event]:
    # Released before calling the model, which may be slow.
    release_connection()
    while True:
        known = context_tokens(chat)
        written = _prompt(request, chat, retrieved, prompt_question, language)
        sources = {passage.number: passage for passage in written.passages}
        scanner = CitationScanner(sources)
        has_begun = False
        try:
            with closing(_stream(request, chat, written)) as pieces:
                while True:
                    request.context.check()
                    try:
                        piece = next(pieces)
                    except StopIteration as end:
                        message: ChatMessage = end.value
                        break
                    has_begun = True
                    if isinstance(piece, str):
                        yield from map(request.emit, scanner.feed(piece))
                        continue
                    if piece.withdraws:
                        scanner = CitationScanner(sources)
                    yield request.reason(piece)
            break
        except InferenceError:
            # Where the server has just named its context length, a shorter prompt fits.
            if has_begun or context_tokens(chat) == known:
                raise
    yield from map(request.emit, scanner.finish())
    text = "".join(request.text)
    usage = message.usage or Usage(written.tokens, estimated_tokens(text + message.reasoning))
    count_tokens(request.context, usage.input_tokens + usage.output_tokens)
    refused = is_refusal(text)
    if refused:
        record_refusal(request.search_log_id)
    verdict = Verdict(
        confidence="none" if refused else retrieved.confidence,
        unsupported=() if refused else tuple(unsupported(text, written.passages)),
        dropped_citations=scanner.dropped,
    )
    # An answer that quotes documents is not stored in memory, where it would outlive them.
    _remember(request, response="" if written.passages else text)
    yield from _name_missing(request, retrieved, language)
    finish: FinishReason = "refused" if refused else "length" if message.truncated else "stop"
    yield request.done(finish=finish, verdict=verdict, usage=message.usage)


def _prompt(
    request: AnswerRequest,
    chat: ChatModel,
    retrieved: Retrieval,
    prompt_question: str,
    language: str,
) -> prompt.Prompt:
    """A prompt that fits into the model's context, without what memory adds where there is no
    room. Raises InvalidInput where rules and question alone do not fit."""
    fits = prompt_tokens(chat, most=sys.maxsize, answer_tokens=request.answer_tokens)
    for question in dict.fromkeys((prompt_question, request.asked.message)):
        written = prompt.build_prompt(
            question,
            retrieved.passages,
            request.asked.history,
            budget_tokens=request.prompt_tokens,
            language=language,
            instructions=request.asked.instructions,
            in_language=request.asked.language,
        )
        if written.tokens <= fits:
            return written
    raise InvalidInput(
        gettext(
            "The question takes about {tokens} tokens with its rules; “{model}” has room for"
            " {most}. Shorten it, or choose another model."
        ).format(
            tokens=number_format(written.tokens, force_grouping=True),
            model=chat.model_name,
            most=number_format(fits, force_grouping=True),
        ),
        field="message",
    )


def _stream(
    request: AnswerRequest, chat: ChatModel, written: prompt.Prompt
) -> Generator[Part, None, ChatMessage]:
    options = dict(request.asked.model_options)
    options["max_tokens"] = fitting_answer_tokens(
        chat, prompt=written.tokens, answer_tokens=request.answer_tokens
    )
    timeout = max(1.0, request.deadline - monotonic())
    return chat.stream(written.messages, **options, timeout=timeout)


def _remember(request: AnswerRequest, *, response: str) -> None:
    if request.uses_memory:
        remember_turn(
            request.asked.message,
            response,
            history=request.asked.history,
            conversation=request.conversation,
            context=request.context,
        )
