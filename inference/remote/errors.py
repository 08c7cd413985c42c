"""What a server's refusal means: try again, ask for less, or tell a person what to correct."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from inference.base import BackendUnavailable

PASSING = {408, 425, 429, 500, 502, 503, 504, 529}  # 529: Anthropic has too much to do
SAID_AT_MOST = 300
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
    403: "Check the API key and what it may be used for.",
    404: "Check the model's name and base_url.",
    413: "Set a smaller batch_size.",
    429: "Set a smaller `parallel`, or wait.",
}


class ServerRefused(BackendUnavailable):
    """A server that answered with an error, for the reason `said`. `too_large`: fewer or shorter
    texts may pass."""

    def __init__(
        self, message: str, *, status: int, said: str = "", too_large: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.said = said
        self.too_large = too_large


class PassingFailure(BackendUnavailable):
    """A failure worth another try, in `retry_after` seconds where the server says so."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def refusal(
    where: str, status: int, headers: Mapping[str, str], said: str, cures: Mapping[int, str]
) -> ServerRefused | PassingFailure:
    """The error for an answer that is none. `said` is the server's own text, from `server_text`."""
    if 300 <= status < 400:
        return ServerRefused(
            f"{where} redirects elsewhere, which is not followed because the API key would go"
            " along: put the final address into base_url.",
            status=status,
        )
    too_large = status == 413 or (status in {400, 422, 500} and bool(TOO_LARGE.search(said)))
    cure = {**CURES, **cures}.get(status, "See the server's log.")
    message = f"{where} answers {status}: {said or 'no reason given'}. {cure}"
    # OpenAI sends 429 also for an account without credit, which no waiting fills.
    if status in PASSING and not too_large and "insufficient_quota" not in said:
        return PassingFailure(message, retry_after=retry_after(headers.get("retry-after", "")))
    return ServerRefused(message, status=status, said=said, too_large=too_large)


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
    return text if len(text) <= SAID_AT_MOST else text[: SAID_AT_MOST - 1] + "…"


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
