"""Embeddings from OpenAI, or from any server that speaks its protocol."""

from collections.abc import Sequence
from typing import Any

from inference.interfaces import MalformedAnswer
from inference.remote import retry
from inference.remote.client import (
    BAD_OPENAI_KEY,
    OPENAI_URL,
    JsonClient,
    checked_header,
    checked_path,
    provider_key,
    with_version,
)
from inference.remote.embedder import RemoteEmbedder, RemoteModel, dimensions_field
from inference.remote.retry import RequestLimits

# https://platform.openai.com/docs/guides/embeddings
KNOWN = {
    "text-embedding-3-small": RemoteModel(dimensions=1536, max_tokens=8191),
    "text-embedding-3-large": RemoteModel(dimensions=3072, max_tokens=8191),
    "text-embedding-ada-002": RemoteModel(dimensions=1536, max_tokens=8191),
}
WRONG_FIELD = (
    "Check the model's name. A server that knows no field `dimensions` needs"
    " OPTIONS['send_dimensions'] = false."
)


class OpenAIEmbedder(RemoteEmbedder):
    """`POST {base}/v1/embeddings`: OpenAI, Azure, TEI, vLLM, LM Studio, llama.cpp and others."""

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str = OPENAI_URL,
        path: str | None = None,
        api_key: str | None = None,
        key_header: str = "Authorization",
        dimensions: int | None = None,
        send_dimensions: bool | None = None,
        name: str | None = None,
        max_tokens: int | None = None,
        tokenizer: str | None = None,
        query_prompt: str = "",
        document_prompt: str = "",
        batch_size: int = retry.BATCH_SIZE,
        batch_tokens: int = retry.BATCH_TOKENS,
        parallel: int = retry.PARALLEL_REQUESTS,
        timeout: float = retry.TIMEOUT,
        attempts: int = retry.ATTEMPTS,
        query_timeout: float = retry.QUERY_TIMEOUT,
    ) -> None:
        """`path` goes behind `base_url` as that stands, and may have a query; None is `/embeddings`
        behind a base_url with its version.

        `api_key`: None takes OPENAI_API_KEY from the environment, "" sends none. It is sent in
        `key_header`, as a bearer's where that is Authorization.

        `name` is what the vectors are filed under, by default the model's. `dimensions` must be
        given for a model of another maker. It is sent, to get shorter vectors, only where it
        differs from what is known of the model, since many servers refuse that field;
        `send_dimensions` decides otherwise. `max_tokens`, special tokens not counted, is what the
        model reads at once: 8191 for OpenAI's, else 510 unless given. `tokenizer` is the path of
        the model's tokenizer.json or its folder; without it tokens are estimated. Prompts go before
        each text as they are. For the rest see RequestLimits. Raises BackendUnavailable.
        """
        known = KNOWN.get(model)
        self.path = "/embeddings" if path is None else checked_path(path)
        shortened = dimensions_field(known, dimensions, send=send_dimensions)
        self._fields = {"model": model, **shortened}
        wrong_field = {400: WRONG_FIELD, 422: WRONG_FIELD} if shortened else {}
        super().__init__(
            JsonClient(
                with_version(base_url) if path is None else base_url,
                api_key=provider_key("OpenAI", api_key, base_url),
                key_header=checked_header(key_header),
                cures={401: BAD_OPENAI_KEY, 403: BAD_OPENAI_KEY, **wrong_field},
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

    def _payload(self, texts: Sequence[str]) -> dict[str, object]:
        return {**self._fields, "input": list(texts)}

    def _rows(self, answer: Any, count: int) -> list[Any]:
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
            raise MalformedAnswer(
                "the answer holds no list `data`: is base_url that of an OpenAI-compatible server?"
            )
        indexes = [item.get("index") for item in data]
        # A bool is an int in Python, and sorted() cannot compare None.
        if not all(type(index) is int for index in indexes) or sorted(indexes) != [*range(count)]:
            raise MalformedAnswer(
                f"{count} texts were sent and vectors came for {str(indexes)[:100]}: each index"
                " must come once. Set a smaller batch_size, or update the server."
            )
        rows: list[Any] = [None] * count
        for item in data:
            rows[item["index"]] = item.get("embedding")
        return rows
