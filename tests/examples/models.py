"""Servers that stand for OpenAI, Ollama and Anthropic, and how the examples reach them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from inference.backends.hashing import HashingEmbedder
from inference.tests.stub_answers import (
    anthropic_events,
    anthropic_reply,
    ollama_line,
    ollama_stream,
)
from inference.tests.stub_server import Reply, Stream, chat_reply, chat_stream, stub_server

ANSWER = "Five days may be carried over [1]."
SQL = """```sql
SELECT c.city, sum(o.revenue_eur) FROM crm.customers c
JOIN crm.orders o ON o.customer_id = c.id GROUP BY c.city
```"""


@contextmanager
def model_servers() -> Iterator[dict[str, str]]:
    """Environment variables that lead to servers of all three protocols."""
    with ExitStack() as stack:
        openai, ollama, anthropic = (stack.enter_context(stub_server()) for _ in range(3))
        openai.always(_openai)
        ollama.always(_ollama)
        anthropic.always(_anthropic)
        yield {
            "EXAMPLES_OPENAI": f"{openai.url}/v1",
            "EXAMPLES_OLLAMA": ollama.url,
            "EXAMPLES_ANTHROPIC": anthropic.url,
            "EMBEDDERS": json.dumps(_EMBEDDERS),
            "CHATS": json.dumps(_chats(f"{openai.url}/v1")),
            "RERANKERS": json.dumps(_RERANKERS),
            "OPENAI_API_KEY": "sk-of-the-examples",
            "OPENAI_BASE_URL": f"{openai.url}/v1",
        }


_EMBEDDERS = {
    "mine": {
        "BACKEND": "inference.backends.given.GivenVectors",
        "OPTIONS": {"dimensions": 3, "name": "my-model"},
    },
}


_RERANKERS = {"strict": {"BACKEND": "inference.backends.rerank_basic.ScoreReranker"}}


def _chats(url: str) -> dict[str, Any]:
    return {
        "my-model": {
            "BACKEND": "inference.backends.chat_openai.OpenAIChat",
            "OPTIONS": {"model": "my-model", "base_url": url, "api_key": "sk-of-the-examples"},
        }
    }


def _openai(payload: Any) -> Any:
    if "input" in payload:
        vectors = _vectors(payload)
        items = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        return Reply({"object": "list", "data": items})
    answer = SQL if "You write SQL" in json.dumps(payload["messages"]) else ANSWER
    if payload.get("stream"):
        return chat_stream(answer)
    if payload.get("tools") and payload["messages"][-1]["role"] == "user":
        return chat_reply(None, finish="tool_calls", tool_calls=[_call(payload)])
    return chat_reply(answer)


def _call(payload: Any) -> dict[str, Any]:
    """A call of the first tool that takes what it is asked, with all that it requires."""
    tools = {tool["function"]["name"]: tool["function"] for tool in payload["tools"]}
    function = tools.get("hybrid_query") or next(iter(tools.values()))
    said = payload["messages"][-1]["content"]
    arguments = dict.fromkeys(function["parameters"]["properties"].keys() & {"query", "city"}, said)
    call = {"name": function["name"], "arguments": json.dumps(arguments)}
    return {"id": "call-1", "type": "function", "function": call}


def _ollama(payload: Any) -> Any:
    if "input" in payload:
        return Reply({"embeddings": _vectors(payload)})
    if payload.get("stream"):
        return ollama_stream(ollama_line(ANSWER), ollama_line(done="stop"))
    return Reply(ollama_line(ANSWER, done="stop"))


def _anthropic(payload: Any) -> Any:
    if payload.get("stream"):
        return Stream(*anthropic_events(ANSWER))
    return anthropic_reply(ANSWER)


def _vectors(payload: Any) -> list[list[float]]:
    embedder = HashingEmbedder(
        dimensions=payload.get("dimensions") or _DIMENSIONS[payload["model"]]
    )
    texts = payload["input"] if isinstance(payload["input"], list) else [payload["input"]]
    return [[float(number) for number in vector] for vector in embedder.embed_documents(texts)]


_DIMENSIONS = {"text-embedding-3-small": 1536, "nomic-embed-text": 768, "bge-m3": 1024}
