"""Embeddings from Ollama's own API."""

from collections.abc import Sequence
from typing import Any

from inference.interfaces import MalformedAnswer
from inference.local.model_folder import Prompts
from inference.remote import retry
from inference.remote.client import JsonClient
from inference.remote.embedder import RemoteEmbedder, RemoteModel, dimensions_field
from inference.remote.retry import RequestLimits

SPECIAL_TOKENS = 2  # at most: one before a text and one after it
QWEN3 = Prompts(
    query="Instruct: Given a web search query, retrieve relevant passages that answer the query\n"
    "Query:"
)
# Dimensions and windows from ollama.com/library and the models' GGUF metadata, prompts from their
# cards. nomic-embed-text reads 2,048 tokens there, not the 8,192 of its card, and all-minilm 256.
# Qwen3 reads 32,768, of which memory is set aside for 8,192.
KNOWN = {
    "nomic-embed-text": RemoteModel(
        768, 2046, Prompts(document="search_document: ", query="search_query: ")
    ),
    "mxbai-embed-large": RemoteModel(
        1024, 510, Prompts(query="Represent this sentence for searching relevant passages: ")
    ),
    "all-minilm": RemoteModel(384, 254),
    "bge-m3": RemoteModel(1024, 8190),
    "qwen3-embedding:0.6b": RemoteModel(1024, 8190, QWEN3),
    "qwen3-embedding:4b": RemoteModel(2560, 8190, QWEN3),
    "qwen3-embedding:8b": RemoteModel(4096, 8190, QWEN3),
}


class OllamaEmbedder(RemoteEmbedder):
    """`POST /api/embed`. Ollama is told not to truncate: long texts are sent in windows."""

    path = "/api/embed"

    def __init__(
        self,
        model: str = "nomic-embed-text",
        *,
        base_url: str = "http://localhost:11434",
        api_key: str | None = None,
        dimensions: int | None = None,
        send_dimensions: bool | None = None,
        keep_alive: str | int | None = None,
        name: str | None = None,
        max_tokens: int | None = None,
        tokenizer: str | None = None,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        batch_size: int = retry.BATCH_SIZE,
        batch_tokens: int = retry.BATCH_TOKENS,
        parallel: int = retry.PARALLEL_REQUESTS,
        timeout: float = retry.TIMEOUT,
        attempts: int = retry.ATTEMPTS,
        query_timeout: float = retry.QUERY_TIMEOUT,
    ) -> None:
        """Dimensions, prompts and window of the models in KNOWN need not be given. For others
        `dimensions` must be, which `ollama show` calls embedding length, and `max_tokens`, special
        tokens not counted, is 510 unless given.

        `keep_alive` is how long Ollama keeps the model loaded after a request, "30m" or -1 for
        ever; None leaves that to it. `api_key` is for an Ollama behind a proxy that wants one.
        `send_dimensions`, `name`, `tokenizer` and the rest are as for OpenAIEmbedder. Raises
        BackendUnavailable.
        """
        known = KNOWN.get(model.removesuffix(":latest"))
        super().__init__(
            JsonClient(
                base_url,
                api_key=api_key,
                cures={404: f"Run `ollama pull {model}`, or correct base_url."},
                unreachable="Check that `ollama serve` is running and that base_url is right.",
            ),
            model,
            known=known,
            name=name,
            dimensions=dimensions,
            max_tokens=max_tokens,
            document_prompt=document_prompt,
            query_prompt=query_prompt,
            tokenizer=tokenizer,
            limits=RequestLimits(
                batch_size, batch_tokens, parallel, timeout, attempts, query_timeout
            ),
        )
        self._fields: dict[str, object] = {
            "model": model,
            "truncate": False,
            **dimensions_field(known, dimensions, send=send_dimensions),
        }
        if known or max_tokens:
            # Ollama cuts the window of long models to 4,096 tokens unless told.
            self._fields["options"] = {"num_ctx": self.window + SPECIAL_TOKENS}
        if keep_alive is not None:
            self._fields["keep_alive"] = keep_alive

    def _payload(self, texts: Sequence[str]) -> dict[str, object]:
        return {**self._fields, "input": list(texts)}

    def _rows(self, answer: Any, count: int) -> list[Any]:
        rows = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise MalformedAnswer(
                "the answer holds no list `embeddings`: is base_url that of Ollama 0.3 or later?"
            )
        if len(rows) != count:
            raise MalformedAnswer(
                f"{count} texts were sent and {len(rows)} vectors came: set a smaller batch_size,"
                " or update Ollama."
            )
        return rows
