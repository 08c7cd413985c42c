"""Answer a question from documents: retrieve, judge, quote or ask a chat model, cite, validate.
Begin with `answer`.
"""

import logging
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
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
from inference.interfaces import ChatMessage, ChatModel, InferenceError, Usage
from inference.reasoning import Part, Reasoning
from inference.remote.retry import ServerRefused
from memory.models import Context, Fact
from model_servers.token_limits import require_tokens
from model_servers.usage import Purpose, metered_chat
from rag.answering import coreference, prompt
from rag.answering.answerability import Evidence, judge_confidence
from rag.answering.citations import AnswerPiece, CitationScanner
from rag.answering.evidence import find_passages, quote_passages
from rag.answering.extractive import ExtractiveAnswer
from rag.answering.groundedness import Claim, check_claims
from rag.answering.model_context import (
    RULES_TOKENS,
    context_tokens,
    fitting_answer_tokens,
    longest_answer_tokens,
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
from rag.answering.repetition import AnswerBounds
from rag.answering.whole_document import whole_document_question
from rag.context import RagContext
from rag.errors import failure_event
from rag.events import (
    Citation,
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
    retrieved, language, quote = yield from _read(request)
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
        for piece in quote():
            request.context.check()
            yield request.emit(piece)
        yield from _name_missing(request, retrieved, language)
        _remember(request, response="")
        yield request.done(verdict=Verdict(confidence=retrieved.confidence))
    else:
        yield from _generate(request, request.chat, retrieved, prompt_question, language, quote)


#: The passages of an answer quoted, for one without a chat model, or by one without support.
Quote = Callable[[], Sequence[AnswerPiece]]


def _read(
    request: AnswerRequest,
) -> Generator[Event, None, tuple[Retrieval, str, Quote]]:
    """The passages to answer from, with the language and what quotes them. Where no chat model is
    to answer a question to tables, the quoted answer is the computed one. Of a question about one
    whole document its most central passages."""
    asked = request.asked
    if request.chat is None and has_measure(asked.message):
        from rag.services.table_answers import answer_from_tables  # noqa: PLC0415 (loads all tools)

        computed = answer_from_tables(
            asked.message, context=request.context, language=asked.language
        )
        if computed is not None:
            yield computed.retrieval
            return computed.retrieval, computed.language, lambda: computed.pieces
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


def _name_missing(request: AnswerRequest, retrieved: Retrieval, language: str) -> Iterator[Event]:
    """A final sentence with the terms of the question that no retrieved passage mentions."""
    if retrieved.missing:
        yield request.emit(f"\n\n{missing_text(retrieved.missing, language)}")


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


#: An answer that cites nothing is given the passages that say the same, so many at most.
MAX_ADDED_CITATIONS = 3
#: How often a prompt is shortened that has more tokens than was estimated, and to which share.
MAX_SHORTENED = 2
SHORTENED_SHARE = 0.55


@dataclass(slots=True)
class _Written:
    """What a chat model has written: its `message`, None where it was stopped, and why."""

    prompt: prompt.Prompt
    scanner: CitationScanner
    bounds: AnswerBounds
    message: ChatMessage | None = None
    has_begun: bool = False


def _generate(
    request: AnswerRequest,
    chat: ChatModel,
    retrieved: Retrieval,
    prompt_question: str,
    language: str,
    quote: Quote,
) -> Iterator[Event]:
    # Released before calling the model, which may be slow.
    release_connection()
    for shortened in range(MAX_SHORTENED + 1):
        known = context_tokens(chat)
        written = _Written(
            _prompt(request, chat, retrieved, prompt_question, language),
            CitationScanner({}),
            AnswerBounds(None),
        )
        try:
            yield from _write(request, chat, written)
            break
        except InferenceError as error:
            # Where the server has just named its context length, a shorter prompt fits; where it
            # is known, the text has more tokens than was estimated.
            now = context_tokens(chat)
            is_too_long = isinstance(error, ServerRefused) and error.too_large and now is not None
            if written.has_begun or shortened == MAX_SHORTENED:
                raise
            if not is_too_long and now == known:
                raise
            if now == known:
                request.budget_tokens = int(written.prompt.tokens * SHORTENED_SHARE)
    text = "".join(request.text)
    message, passages = written.message, written.prompt.passages
    refused = is_refusal(text)
    claims = [] if refused else check_claims(text, passages)
    confidence: Confidence = "none" if refused else retrieved.confidence
    if refused:
        record_refusal(request.search_log_id)
    elif passages and (claims or written.bounds.ended == "loop"):
        is_supported = yield from _cite(request, written.scanner, claims)
        if not is_supported:
            confidence = "low"
            yield from _append(request, quote())
    verdict = Verdict(
        confidence=confidence,
        unsupported=tuple(claim.data() for claim in claims if not claim.is_supported),
        dropped_citations=written.scanner.dropped,
    )
    # An answer that quotes documents is not stored in memory, where it would outlive them.
    _remember(request, response="" if passages else text)
    yield from _name_missing(request, retrieved, language)
    is_cut = message.truncated if message else written.bounds.ended == "length"
    finish: FinishReason = "refused" if refused else "length" if is_cut else "stop"
    yield request.done(finish=finish, verdict=verdict, usage=message.usage if message else None)


def _write(request: AnswerRequest, chat: ChatModel, written: _Written) -> Iterator[Event]:
    """The model's answer as it comes, up to where it repeats itself or becomes too long."""
    sources = {passage.number: passage for passage in written.prompt.passages}
    most = None
    if request.answer_tokens is None:
        most = longest_answer_tokens(chat, most=settings.RAG_ANSWER_TOKENS)
    written.scanner, written.bounds = CitationScanner(sources), AnswerBounds(most)
    with closing(_stream(request, chat, written.prompt)) as pieces:
        while not written.bounds.ended:
            request.context.check()
            try:
                piece = next(pieces)
            except StopIteration as end:
                written.message = end.value
                break
            written.has_begun = True
            if isinstance(piece, str):
                yield from map(request.emit, written.scanner.feed(written.bounds.feed(piece)))
                continue
            if piece.withdraws:
                written.scanner, written.bounds = CitationScanner(sources), AnswerBounds(most)
            yield request.reason(piece)
    yield from map(request.emit, written.scanner.feed(written.bounds.finish()))
    yield from map(request.emit, written.scanner.finish())


def _cite(
    request: AnswerRequest, scanner: CitationScanner, claims: Sequence[Claim]
) -> Generator[Event, None, bool]:
    """Whether passages support the answer. Where it cites none of them, those that say what most of
    its sentences say are cited at its end; without such passages nothing supports it."""
    if request.citations:
        return any(claim.is_supported for claim in claims)
    found = [claim.source for claim in claims if claim.source]
    if not found or 2 * len(found) < len(claims):
        return False
    numbers = dict.fromkeys(source.number for source in found)
    cited = "".join(f"[{number}]" for number in list(numbers)[:MAX_ADDED_CITATIONS])
    yield from map(request.emit, [*scanner.feed(f" {cited}"), *scanner.finish()])
    return True


def _append(request: AnswerRequest, pieces: Sequence[AnswerPiece]) -> Iterator[Event]:
    """Quotations below the answer so far."""
    if not pieces:
        return
    yield request.emit("\n\n")
    shift = sum(map(len, request.text))
    for piece in pieces:
        moved = replace(piece, at=piece.at + shift) if isinstance(piece, Citation) else piece
        yield request.emit(moved)


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
