"""What a server offers and how it answers: its models, a question on trial, and faults with their
cures. Begin with `ModelServer`."""

import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpcore2
import httpx2

from common.translation import gettext
from inference.backends.chat_anthropic import VERSION
from inference.interfaces import (
    BackendUnavailable,
    ChatMessage,
    ChatModel,
    DimensionMismatch,
    Embedder,
    InferenceError,
    MalformedAnswer,
    Reranker,
)
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
TRIAL_TEXTS = ("The Danube flows into the Black Sea.", "Bananas are rich in potassium.")
RERANKER_QUESTION = "Where does the Danube flow?"
MAX_MODELS = 1_000
#: Ollama is asked for what each of so many models is for.
MAX_SHOWN_MODELS = 50
#: What servers call the kinds of models, by the kind here.
_TYPES = {"embedding": "embedder", "embeddings": "embedder", "rerank": "reranker"}
_TYPES |= {"reranker": "reranker", "llm": "chat", "vlm": "chat", "chat": "chat"}
#: Names of models by kind, where the server does not say.
_NAMES = {
    "embedder": re.compile(r"embed|minilm|bge-(?!rerank)|\b(?:e5|gte)-", re.IGNORECASE),
    "reranker": re.compile(r"rerank", re.IGNORECASE),
}
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
    cure; `code` is one of unknown_host, refused, timeout, tls, key, model, order,
    dimensions, forbidden_address, no_model_server, failed."""

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


@dataclass(frozen=True, slots=True)
class EmbedderTrial:
    """How a model embedded two texts: the length of the vectors, and milliseconds a text."""

    dimensions: int
    text_ms: int


class ScoredPassage(NamedTuple):
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class RerankerTrial:
    """Two passages with their scores for a question, the best first, and how long that took."""

    question: str
    passages: tuple[ScoredPassage, ...]
    milliseconds: int


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

    def models_for(self, kind: str, *, seconds: float = LIST_SECONDS) -> list[str]:
        """Names of the models of a kind, `embedder` or `reranker`: as the server says, else as
        their names say. All models where neither does, for people to choose. Raises ServerFault."""
        end = time.monotonic() + seconds
        names: list[str] = []
        found: list[str] = []
        entries = self._entries(seconds)
        types = self._types(entries, end)
        for entry in entries:
            name = str(entry.get("id") or entry.get("name"))
            names.append(name)
            said = types.get(name)
            if said == kind or (said is None and _NAMES[kind].search(name)):
                found.append(name)
        return found or names

    def _types(self, entries: Sequence[Mapping[str, Any]], end: float) -> dict[str, str]:
        """What each model is for, `embedder`, `reranker` or `chat`, where the server says."""
        described: Iterator[tuple[Any, Mapping[str, Any]]]
        if self.kind == "ollama":
            named = [(each.get("name"), each) for each in entries[:MAX_SHOWN_MODELS]]
            described = ((name, self._described(each, end)) for name, each in named)
        else:
            listed = entries
            if not any("type" in each for each in entries):  # LM Studio tells it elsewhere
                listed = self._root_list("/api/v0/models", "data", end) or entries
            described = ((each.get("id"), each) for each in listed)
        types: dict[str, str] = {}
        for name, facts in described:
            able = facts.get("capabilities")
            if isinstance(able, list) and able:
                types[str(name)] = "embedder" if "embedding" in able else "chat"
            elif (kind := _TYPES.get(str(facts.get("type")).lower())) is not None:
                types[str(name)] = kind
        return types

    def _described(self, entry: Mapping[str, Any], end: float) -> Mapping[str, Any]:
        """What Ollama tells of a model of its list: newer ones in the list itself."""
        left = end - time.monotonic()
        if "capabilities" in entry or left <= 0:
            return entry
        with suppress(BackendUnavailable, MalformedAnswer):
            patience = quick_policy(left, attempts=1)
            shown = self._client.post("/api/show", {"model": entry.get("name")}, patience=patience)
            return shown if isinstance(shown, dict) else {}
        return {}

    def _root_list(self, path: str, key: str, end: float) -> list[dict[str, Any]]:
        """A list of objects from a path beside the API's; empty where there is none."""
        if (left := end - time.monotonic()) <= 0:
            return []
        with suppress(BackendUnavailable, MalformedAnswer):
            answer = self._root().get(path, patience=quick_policy(left, attempts=1))
            found = answer.get(key) if isinstance(answer, dict) else None
            return [each for each in found if isinstance(each, dict)] if found else []
        return []

    def _root(self) -> JsonClient:
        """For what servers offer beside OpenAI's protocol."""
        address = self.address.rstrip("/").removesuffix("/v1")
        return JsonClient(address, api_key=self._key, transport=self._transport)

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
                props = self._root().get("/props", patience=once)
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

    def try_embedder(self, build: Callable[[int | None], Embedder]) -> EmbedderTrial:
        """Embed two texts. `build` makes the embedder of this server for vectors of a length; None:
        of the known one. Raises ServerFault; vectors that are not finite or of several lengths are
        one."""
        model = ""
        try:
            try:
                embedder = build(None)
            except BackendUnavailable:  # the length is not known
                embedder = build(1)
            model = embedder.model_name
            try:
                embedder.embed_query(TRIAL_TEXTS[0])  # the server may load the model first
            except DimensionMismatch as error:
                embedder = build(error.actual)
            began = time.monotonic()
            embedder.embed_documents(TRIAL_TEXTS)
            each = (time.monotonic() - began) * 1000 / len(TRIAL_TEXTS)
        except InferenceError as error:
            raise self._trial_fault(error, model) from error
        return EmbedderTrial(dimensions=embedder.dimensions, text_ms=round(each))

    def try_reranker(self, reranker: Reranker, model: str) -> RerankerTrial:
        """Have two passages ordered for a question. Raises ServerFault."""
        texts = TRIAL_TEXTS[::-1]  # the answer comes last
        began = time.monotonic()
        try:
            scores = reranker.score(RERANKER_QUESTION, texts)
        except InferenceError as error:
            raise self._trial_fault(error, model) from error
        taken = round((time.monotonic() - began) * 1000)
        passages = map(ScoredPassage, texts, scores)
        ordered = sorted(passages, key=lambda passage: -passage.score)
        if ordered[0].text != TRIAL_TEXTS[0]:
            told = gettext(
                "“{model}” prefers “{wrong}” to “{right}” for the question “{question}”: it is no"
                " reranker, or not one for English."
            )
            wrong, right = texts
            raise ServerFault(
                "order",
                told.format(model=model, wrong=wrong, right=right, question=RERANKER_QUESTION),
            )
        return RerankerTrial(RERANKER_QUESTION, tuple(ordered), taken)

    def _trial_fault(self, error: InferenceError, model: str) -> ServerFault:
        """Of an embedder or a reranker."""
        if isinstance(error, BackendUnavailable):
            return self.fault(error, model=model)
        if isinstance(error, MalformedAnswer):
            return self._no_model_server()
        if isinstance(error, DimensionMismatch):
            told = gettext("“{model}” makes vectors of several lengths, which cannot be compared.")
            return ServerFault("failed", told.format(model=model))
        return ServerFault("failed", str(error))

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
        if model in names or f"{model}:latest" in names:
            told = gettext(
                "The server has “{model}”, but not for this use. See how it was started, or choose"
                " another model."
            )
            return ServerFault("model", told.format(model=model))
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
