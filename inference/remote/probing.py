"""What a server offers and how it answers: its models, a question on trial, and faults with their
cures. Begin with `ModelServer`."""

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from common.translation import gettext
from inference.backends.chat_anthropic import VERSION
from inference.interfaces import BackendUnavailable, ChatMessage, ChatModel, MalformedAnswer
from inference.reasoning import Part, Reasoning
from inference.remote.chat import Transport
from inference.remote.client import JsonClient, with_version
from inference.remote.retry import ServerRefused, quick_policy

#: Seconds for a list of models, and for an answer on trial: a server may load the model first.
LIST_SECONDS = 10.0
TRIAL_SECONDS = 90.0
TRIAL_QUESTION = "Say in two sentences what a library is."
#: A trial reads so many pieces of the answer, or for so many seconds from its first words on.
TRIAL_PIECES = 64
TRIAL_READING_SECONDS = 10.0
MAX_MODELS = 1_000
#: What servers call the number of tokens that a model reads, in their lists of models.
_CONTEXT_FIELDS = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "max_context_length",
    "max_input_tokens",
    "n_ctx",
    "n_ctx_train",
)


class ServerFault(BackendUnavailable):
    """A server that cannot be used as it was described. The message says what is wrong and the
    cure; `code` is one of unknown_host, refused, timeout, tls, key, model, forbidden_address,
    no_model_server, failed."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Trial:
    """How a model answered a question. `tokens_per_second` are counted from the first words on,
    None for an answer of one piece; `context_tokens` None where the server does not say."""

    first_words_ms: int
    tokens_per_second: float | None
    context_tokens: int | None
    answer: str


class ModelServer:
    """A server of the kind `ollama`, `openai` (any that speaks its protocol) or `anthropic`."""

    def __init__(
        self, kind: str, address: str, *, key: str = "", transport: Transport | None = None
    ) -> None:
        """Raises ServerFault for an address or key that cannot be one."""
        self.kind, self.address, self._key, self._transport = kind, address, key, transport
        is_anthropic = kind == "anthropic"
        try:
            self._client = JsonClient(
                address if kind == "ollama" else with_version(address),
                api_key=key,
                key_header="x-api-key" if is_anthropic else "Authorization",
                headers={"anthropic-version": VERSION} if is_anthropic else None,
                transport=transport,
            )
        except BackendUnavailable as error:
            raise ServerFault("address", str(error)) from error

    def models(self, *, seconds: float = LIST_SECONDS) -> list[str]:
        """Names of the models that the server has, in its order. Raises ServerFault."""
        return [str(entry.get("id") or entry.get("name")) for entry in self._entries(seconds)]

    def _entries(self, seconds: float) -> list[dict[str, Any]]:
        path, key = ("/api/tags", "models") if self.kind == "ollama" else ("/models", "data")
        try:
            answer = self._client.get(path, patience=quick_policy(seconds, attempts=1))
        except BackendUnavailable as error:
            raise self.fault(error) from error
        except MalformedAnswer as error:
            raise self._no_model_server() from error
        entries = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(entries, list):
            raise self._no_model_server()
        found = [entry for entry in entries if isinstance(entry, dict)]
        return [entry for entry in found if entry.get("id") or entry.get("name")][:MAX_MODELS]

    def context_tokens(self, model: str, *, seconds: float = LIST_SECONDS) -> int | None:
        """How many tokens the model reads, None where the server does not say."""
        with suppress(BackendUnavailable, MalformedAnswer):
            for found in self._descriptions(model, seconds):
                for name in _CONTEXT_FIELDS:
                    if type(count := found.get(name)) is int and count > 0:
                        return count
        return None

    def _descriptions(self, model: str, seconds: float) -> Iterator[Mapping[str, Any]]:
        """What the server tells of the model, the most exact first."""
        once = quick_policy(seconds, attempts=1)
        if self.kind == "ollama":
            shown = self._client.post("/api/show", {"model": model}, patience=once)
            facts = shown.get("model_info") if isinstance(shown, dict) else None
            for name, value in facts.items() if isinstance(facts, dict) else ():
                yield {str(name).rpartition(".")[2]: value}
            return
        entry = next((each for each in self._entries(seconds) if each.get("id") == model), {})
        meta = entry.get("meta")
        if isinstance(meta, dict):
            # llama.cpp: its slots may have less than the model was trained for.
            with suppress(BackendUnavailable, MalformedAnswer):
                root = JsonClient(
                    self.address.rstrip("/").removesuffix("/v1"),
                    api_key=self._key,
                    transport=self._transport,
                )
                props = root.get("/props", patience=once)
                slot = props.get("default_generation_settings") if isinstance(props, dict) else None
                yield slot if isinstance(slot, dict) else {}
            yield meta
        yield entry

    def try_chat(self, model: ChatModel, *, seconds: float = TRIAL_SECONDS) -> Trial:
        """Ask one question. `model` is one of this server. Raises ServerFault."""
        began = time.monotonic()
        first, tokens = 0.0, None
        pieces: list[Part] = []
        question = [ChatMessage("user", TRIAL_QUESTION)]
        try:
            with closing(model.stream(question, timeout=seconds)) as stream:
                while True:
                    try:
                        pieces.append(next(stream))
                    except StopIteration as end:
                        tokens = end.value.usage and end.value.usage.output_tokens
                        break
                    first = first or time.monotonic()
                    is_late = time.monotonic() - first > TRIAL_READING_SECONDS
                    if is_late or len(pieces) >= TRIAL_PIECES:
                        break
        except BackendUnavailable as error:
            raise self.fault(error, model=model.model_name) from error
        except MalformedAnswer as error:
            raise self._no_model_server() from error
        # Some have not begun their answer by then.
        answer = [piece for piece in pieces if isinstance(piece, str)]
        reasoning = [piece.text for piece in pieces if isinstance(piece, Reasoning)]
        first = first or time.monotonic()
        rest = time.monotonic() - first
        counted = (tokens or len(pieces)) - 1
        return Trial(
            first_words_ms=round((first - began) * 1000),
            tokens_per_second=round(counted / rest, 1) if counted > 0 and rest > 0 else None,
            context_tokens=self.context_tokens(model.model_name),
            answer="".join(answer or reasoning).strip(),
        )

    def fault(self, error: BackendUnavailable, *, model: str = "") -> ServerFault:
        """The error in words for people who connect a model."""
        if isinstance(error, ServerFault):
            return error
        causes = list(_causes(error))
        host = self._client.base_url
        refused = next((each for each in causes if isinstance(each, ServerRefused)), None)
        if refused is not None and refused.status in (401, 403):
            told = (
                gettext("{address} does not accept this key. Copy it again from the provider.")
                if self._key
                else gettext("{address} wants a key. Enter the one that its provider gave you.")
            )
            return ServerFault("key", told.format(address=host))
        if refused is not None and refused.status == 404:
            return self._missing_model(model) if model else self._no_model_server()
        return self._connection_fault(causes, host) or ServerFault("failed", str(error))

    def _connection_fault(self, causes: list[BaseException], host: str) -> ServerFault | None:
        def has(*kinds: type[BaseException]) -> bool:
            return any(isinstance(each, kinds) for each in causes)

        own = next((each for each in causes if isinstance(each, ServerFault)), None)
        code, told = "", ""
        if own is not None:
            return own
        if has(socket.gaierror):
            code = "unknown_host"
            told = gettext("{address} has no address on the network. Check the name for typos.")
        elif has(ssl.SSLError):
            code = "tls"
            told = gettext(
                "{address} cannot be reached over TLS: {reason}. Use http:// for a server without"
                " a certificate, or have its certificate renewed."
            )
        elif has(httpx2.TimeoutException, httpcore2.TimeoutException):
            code = "timeout"
            told = gettext(
                "{address} did not answer in time. It may be loading the model: try again, or use"
                " a smaller one."
            )
        elif has(ConnectionRefusedError):
            code = "refused"
            told = (
                gettext(
                    "Nothing listens at {address}. Start Ollama (“ollama serve”) or correct the"
                    " port."
                )
                if self.kind == "ollama"
                else gettext("Nothing listens at {address}. Start the server, or correct the port.")
            )
        if not code:
            return None
        reason = next((str(each) for each in causes if isinstance(each, ssl.SSLError)), "")
        return ServerFault(code, told.format(address=host, reason=reason))

    def _missing_model(self, model: str) -> ServerFault:
        names: list[str] = []
        with suppress(ServerFault):
            names = self.models()
        told = (
            gettext("Ollama does not have “{model}”. Run “ollama pull {model}” there.")
            if self.kind == "ollama"
            else gettext("The server does not have a model “{model}”.")
        )
        if names:
            told += " " + gettext("It has: {names}.")
        listed = ", ".join(names[:10])
        return ServerFault("model", told.format(model=model, names=listed))

    def _no_model_server(self) -> ServerFault:
        return ServerFault(
            "no_model_server",
            gettext(
                "{address} answers, but not as a model server of this kind. Check the address, its"
                " port and the kind."
            ).format(address=self._client.base_url),
        )


def _causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__ or at.__context__
