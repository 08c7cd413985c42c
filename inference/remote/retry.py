"""Errors of model servers, retries with backoff, batch splitting, parallel requests."""

import json
import logging
import random
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from math import inf
from threading import Event
from typing import Any, TypeVar

from inference.cancellation import pause
from inference.interfaces import BackendUnavailable

RETRYABLE_STATUSES = {408, 425, 429, 500, 502, 503, 504, 529}  # 529: Anthropic has too much to do
MAX_ERROR_CHARACTERS = 300
# Text Embeddings Inference: "batch size 66 > maximum allowed batch size 64", "`inputs` must have
# less than 512 tokens"; OpenAI, vLLM: "maximum context length is …"; Ollama: "the input length
# exceeds the context length"; llama.cpp, with status 500: "input is too large to process".
TOO_LARGE = re.compile(
    r"batch size|context (length|size|window)|too (large|long|many (inputs|texts|tokens))"
    r"|must have less than \d+ tokens|tokens per request",
    re.IGNORECASE,
)
CURES = {
    400: "Check the model's name and the OPTIONS.",
    401: "Check the API key.",
    403: "Check the API key and its rights.",
    404: "Check the model's name and base_url.",
    413: "Set a smaller batch_size.",
    429: "Set a smaller `parallel`, or wait.",
}


class ServerRefused(BackendUnavailable):
    """A server's error answer with its `reason`. `too_large`: fewer or shorter texts may pass."""

    def __init__(
        self, message: str, *, status: int, reason: str = "", too_large: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.said = reason
        self.too_large = too_large

    @property
    def rejects_request(self) -> bool:
        """Whether the server has something against this request, and not against all."""
        return self.too_large or self.status in (400, 413, 422)


def is_outage(error: Exception) -> bool:
    """Whether the model was unreachable, rather than unable to process this request."""
    if isinstance(error, ServerRefused):
        return not error.rejects_request
    return isinstance(error, BackendUnavailable)


class RetryableError(BackendUnavailable):
    """A failure worth a retry, in `retry_after` seconds where the server says so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def error_for_status(
    where: str, status: int, headers: Mapping[str, str], reason: str, cures: Mapping[int, str]
) -> ServerRefused | RetryableError:
    """The error for a status that is no success. `reason` is the server's text, from
    `server_text`.
    """
    if 300 <= status < 400:
        return ServerRefused(
            f"{where} redirects elsewhere. That is not followed, because the API key would be sent"
            " there. Set base_url to the final address.",
            status=status,
        )
    too_large = status == 413 or (status in {400, 422, 500} and bool(TOO_LARGE.search(reason)))
    cure = {**CURES, **cures}.get(status, "See the server's log.")
    message = f"{where} answers {status}: {reason or 'no reason given'}. {cure}"
    # OpenAI sends 429 also for an account without credit, which no waiting fills.
    if status in RETRYABLE_STATUSES and not too_large and "insufficient_quota" not in reason:
        return RetryableError(message, retry_after=retry_after(headers.get("retry-after", "")))
    return ServerRefused(message, status=status, reason=reason, too_large=too_large)


def server_text(body: bytes, secrets: tuple[str, ...] = ()) -> str:
    """The reason in an error's body, on one line of at most 300 characters, without `secrets`."""
    text = body.decode(errors="replace")
    try:
        text = _reason(json.loads(text))
    except (ValueError, RecursionError):
        if re.search(r"<(!doctype|html|body)", text, re.IGNORECASE):
            title = re.search(r"<title>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
            text = "a web page" + (f" “{title[1]}”" if title else "")
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    text = " ".join(text.split()).removesuffix(".")
    return text if len(text) <= MAX_ERROR_CHARACTERS else text[: MAX_ERROR_CHARACTERS - 1] + "…"


def retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date; None for anything else."""
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", value):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())


def _reason(answer: Any) -> str:
    """From {"error": {"message", "code"}}, {"error": "…"}, {"message": "…"} or {"detail": …}."""
    if isinstance(answer, dict):
        for key in ("error", "message", "detail"):
            if answer.get(key):
                code = answer.get("code") or answer.get("error_type")
                reason = _reason(answer[key])
                return f"{reason} ({code})" if key == "message" and code else reason
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retry policy: `attempts` requests of at most `timeout` seconds; between them waits of about
    `first_wait` seconds, doubled each time, or what the server asks for, up to `longest_wait`.
    """

    attempts: int
    timeout: float
    first_wait: float
    longest_wait: float

    def call_with_retries(
        self,
        attempt: Callable[[float], T],
        *,
        deadline: float = inf,
        cancelled: threading.Event | None = None,
    ) -> T:
        """The result of `attempt`, which is called with the `time.monotonic()` at which it must
        end.

        Retries after a RetryableError only, and raises BackendUnavailable as soon as the next try
        would be too late. `deadline` is such a time for all tries and waits together; setting
        `cancelled` ends the waits. Raises Cancelled within a cancelled `cancellation` block.
        """
        cancelled = cancelled or threading.Event()
        tries = 0
        while True:
            tries += 1
            try:
                return attempt(min(deadline, time.monotonic() + self.timeout))
            except RetryableError as failure:
                backoff = self.first_wait * (2 ** (tries - 1) + random.random())  # noqa: S311
                wait = max(min(backoff, self.longest_wait), failure.retry_after or 0.0)
                too_long = wait > self.longest_wait or time.monotonic() + wait >= deadline
                if tries >= self.attempts or cancelled.is_set() or too_long:
                    reason = f" Tried {tries} times." if tries > 1 else ""
                    if failure.retry_after and too_long:
                        reason += f" The server asks to wait {failure.retry_after:.0f} s, too long."
                    raise BackendUnavailable(f"{failure}{reason}") from failure
            pause(wait, until=cancelled)


BATCH_SIZE = 32  # what Text Embeddings Inference takes at most unless told otherwise
BATCH_TOKENS = 16_384
PARALLEL_REQUESTS = 4
TIMEOUT = 60.0
ATTEMPTS = 5
QUERY_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits: `batch_size` texts or `batch_tokens` a request, `parallel` requests at once.

    In seconds: `timeout` is for one request with documents, of which there are `attempts`, with
    waits of up to a minute between them; a query has `query_timeout` for everything, because a
    person waits.
    """

    batch_size: int
    batch_tokens: int
    parallel: int
    timeout: float
    attempts: int
    query_timeout: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value <= 0:
                raise BackendUnavailable(f"OPTIONS[{name!r}] is {value}: it must be above 0.")

    def for_documents(self) -> RetryPolicy:
        return RetryPolicy(self.attempts, self.timeout, first_wait=1.0, longest_wait=60.0)

    def for_query(self) -> RetryPolicy:
        return quick_policy(self.query_timeout, attempts=min(3, self.attempts))


def quick_policy(seconds: float, *, attempts: int = 3) -> RetryPolicy:
    """For interactive requests: a few tries, all within `seconds`."""
    return RetryPolicy(attempts, seconds, first_wait=0.2, longest_wait=seconds)


logger = logging.getLogger(__name__)

U = TypeVar("U")
SPLIT_CHARACTERS = ("\n", " ")
MIN_SPLIT_CHARACTERS = 32  # characters; a server that finds this too long means something else


def call_with_splits(
    texts: Sequence[str], ask: Callable[[Sequence[str]], Sequence[T]]
) -> list[list[tuple[str, T]]]:
    """For each text the pieces it was split into, nearly always one, with their results.

    `ask` returns one result for each text. Where the server rejects a request as too large, it gets
    half of the texts, and finally half of a text. Nothing is cut off. Other errors of `ask` are
    raised.
    """
    try:
        results = ask(texts)
    except ServerRefused as refused:
        if not refused.too_large or (len(texts) == 1 and len(texts[0]) < MIN_SPLIT_CHARACTERS):
            raise
        _warn_batch_size(len(texts) > 1)
        if len(texts) > 1:
            half = len(texts) // 2
            return call_with_splits(texts[:half], ask) + call_with_splits(texts[half:], ask)
        halves = call_with_splits(halve(texts[0]), ask)
        return [[piece for pieces in halves for piece in pieces]]
    return [[(text, result)] for text, result in zip(texts, results, strict=True)]


def halve(text: str) -> list[str]:
    """Two parts of similar length, split at white space where possible; one if the rest is blank.

    Only white space around the parts is dropped.
    """
    text = text.strip()
    quarter, middle, late = len(text) // 4, len(text) // 2, len(text) * 3 // 4 + 1
    found = [text.rfind(blank, quarter, middle) for blank in SPLIT_CHARACTERS]
    found += [text.find(blank, middle, late) for blank in SPLIT_CHARACTERS]
    blanks = (at for at in found if at > 0)
    at = min(blanks, key=lambda at: abs(at - middle), default=middle)
    return [part for part in (text[:at].strip(), text[at:].strip()) if part]


def run_parallel(run: Callable[[T, Event], U], batches: Sequence[T], *, parallel: int) -> list[U]:
    """`run` of each batch, in order, `parallel` at a time. The first error ends all.

    `run` also gets an event that is set when its result is no longer wanted.
    """
    cancelled = Event()
    if len(batches) <= 1 or parallel <= 1:
        return [run(batch, cancelled) for batch in batches]
    executor = ThreadPoolExecutor(min(parallel, len(batches)), thread_name_prefix="remote")
    # Each in the context of who asks, whose cancellation counts for them too.
    futures = [executor.submit(copy_context().run, run, batch, cancelled) for batch in batches]
    try:
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]
    finally:
        cancelled.set()
        executor.shutdown(wait=False, cancel_futures=True)


@cache  # once is enough: it happens again for every batch
def _warn_batch_size(several: bool) -> None:
    if several:
        logger.warning("the server takes fewer texts at once: set a smaller batch_size")
    else:
        logger.warning(
            "the server takes only shorter texts, so long ones are embedded in halves: set"
            " max_tokens to what its model reads, or `tokenizer` to the model's own"
        )
