"""An answer written by a chat model: prompted, bounded, cited, and checked against its passages.
Begin with `generate`."""

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import monotonic

from django.conf import settings
from django.utils.formats import number_format
from django.utils.translation import gettext

from common.errors import InvalidInput
from common.sql import release_connection
from inference.interfaces import ChatMessage, ChatModel, InferenceError
from inference.reasoning import Part
from inference.remote.retry import ServerRefused
from rag.answering import prompt
from rag.answering.citations import AnswerPiece, CitationScanner
from rag.answering.groundedness import Claim, check_claims
from rag.answering.model_context import (
    context_tokens,
    fitting_answer_tokens,
    longest_answer_tokens,
    prompt_tokens,
)
from rag.answering.phrases import is_refusal, missing_text
from rag.answering.repetition import AnswerBounds
from rag.events import Citation, Confidence, Event, FinishReason, Retrieval, Verdict
from rag.services.questions import AnswerRequest
from rag.services.user_memory import remember
from search.log import record_refusal

#: The passages of an answer quoted, for one without a chat model, or by one without support.
Quote = Callable[[], Sequence[AnswerPiece]]
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


def generate(
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
    remember(request, response="" if passages else text)
    yield from name_missing(request, retrieved, language)
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


def name_missing(request: AnswerRequest, retrieved: Retrieval, language: str) -> Iterator[Event]:
    """A final sentence with the terms of the question that no retrieved passage mentions."""
    if retrieved.missing:
        yield request.emit(f"\n\n{missing_text(retrieved.missing, language)}")
