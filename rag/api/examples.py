"""Examples in the OpenAPI description of chat, models, pipelines and traces."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

from rag.pipelines.validation import templates

CHAT_QUESTION = OpenApiExample(
    "A question to one collection",
    value={"message": "How many days may be carried over?", "collections": ["handbook"]},
    request_only=True,
)
CHAT_FOLLOW_UP = OpenApiExample(
    "A further question of a conversation, answered whole",
    value={"message": "And until when?", "conversation": 17, "stream": False},
    request_only=True,
)
_LOCATION = {
    "number": 1,
    "chunk": 4711,
    "document": 42,
    "document_key": "leave.md",
    "version": 1,
    "collection": "handbook",
    "title": "Leave",
    "heading_path": ["Leave", "Carrying over"],
    "page": None,
    "url": "/documents/handbook/42/?chunk=4711#passage",
}
_SENTENCE = "Staff may carry five days over into the next year."
_ANSWER_TEXT = f"Quoted from the sources:\n\n“{_SENTENCE}” [1]"
_CITATION = {**_LOCATION, "start": 310, "end": 360, "quote": _SENTENCE, "at": 79}
_PASSAGE = {
    **_LOCATION,
    "start": 310,
    "end": 369,
    "text": f"{_SENTENCE} Ask first.",
    "similarity": 0.64,
    "lexical": 9.1,
    "fused": 0.97,
    "rerank": None,
}
_VERDICT = {"refused": False, "unsupported": [], "dropped_citations": 0}
CHAT_ANSWER = OpenApiExample(
    "The answer",
    value={
        "answer": _ANSWER_TEXT,
        "citations": [_CITATION],
        "passages": [_PASSAGE],
        "verdict": _VERDICT,
        "model": "extractive",
        "generator": "extractive",
        "pipeline": None,
        "queries": ["How many days may be carried over?"],
        "degraded": [],
        "memory": None,
        "finish_reason": "stop",
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "elapsed_ms": 31.0,
        "first_token_ms": 30.2,
        "conversation": 17,
        "message": 35,
        "trace": None,
    },
    response_only=True,
    media_type="application/json",
)
CHAT_EVENTS = OpenApiExample(
    "The answer as it comes",
    value=(
        "event: metadata\nid: 5d1c09be-1\n"
        'data: {"conversation": 17, "message": 35, "model": "extractive", …}\n\n'
        "event: retrieval\nid: 5d1c09be-2\n"
        'data: {"query": "How many days may be carried over?", "passages": […], …}\n\n'
        'event: token\nid: 5d1c09be-3\ndata: {"text": "Quoted from the sources: …” "}\n\n'
        'event: token\nid: 5d1c09be-4\ndata: {"text": "[1]"}\n\n'
        'event: citation\nid: 5d1c09be-5\ndata: {"number": 1, "start": 310, "end": 360, …}\n\n'
        'event: done\nid: 5d1c09be-6\ndata: {"finish_reason": "stop", "elapsed_ms": 31.0, …}\n\n'
    ),
    response_only=True,
    media_type="text/event-stream",
)
MODELS = OpenApiExample(
    "A site without a chat model",
    value={
        "chat": [{"name": "extractive", "owner": "ragsite", "is_default": True}],
        "embedders": [
            {
                "name": "default",
                "model": "all-MiniLM-L6-v2",
                "space": "minilm-384",
                "dimensions": 384,
                "is_default": True,
            }
        ],
        "rerankers": [],
    },
    response_only=True,
)


def _response_example(name: str, value: Any, *, status: str = "200") -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=[status])


_DEFINITION = {**templates()["rag"].to_json(), "id": "handbook", "name": "The handbook"}
_LISTED = {
    "id": "handbook",
    "name": "The handbook",
    "description": _DEFINITION["description"],
    "is_template": False,
    "version": 3,
    "updated_at": "2026-11-22T16:00:00Z",
}
_TEMPLATE = {
    "id": "rag",
    "name": templates()["rag"].name,
    "description": templates()["rag"].description,
    "is_template": True,
    "version": None,
    "updated_at": None,
}
PIPELINE_DEFINITION = OpenApiExample("Look up, then answer", value=_DEFINITION, request_only=True)
PIPELINE_LIST = _response_example(
    "One of one's own, and a template", {"results": [_LISTED, _TEMPLATE]}
)
PIPELINE = _response_example("A pipeline", {**_LISTED, "definition": _DEFINITION})
PIPELINE_CREATED = _response_example(
    "Made", {**_LISTED, "version": 1, "definition": _DEFINITION}, status="201"
)
PIPELINE_CHECKED = _response_example("Nothing is wrong", {"definition": _DEFINITION})
PIPELINE_QUESTION = OpenApiExample(
    "Asked for the whole answer",
    value={"question": "How many days may be carried over?", "stream": False},
    request_only=True,
)
_TRACE = {
    "id": 8,
    "pipeline": "handbook",
    "version": 3,
    "state": "done",
    "question": "How many days may be carried over?",
    "started_at": "2026-11-22T16:00:00Z",
    "ended_at": "2026-11-22T16:00:02.481Z",
    "elapsed_ms": 2481.0,
    "input_tokens": 1210,
    "output_tokens": 95,
    "error_code": "",
    "error": "",
    "removed_at": None,
    "is_withheld": False,
}
_SPAN = {
    "id": 31,
    "parent": None,
    "ordinal": 1,
    "kind": "node",
    "node": "retriever",
    "type": "worker",
    "iteration": 1,
    "state": "done",
    "started_at": "2026-11-22T16:00:00Z",
    "ended_at": "2026-11-22T16:00:01.2Z",
    "elapsed_ms": 1200.0,
    "input": "How many days may be carried over?",
    "output": "Five days, says [1].",
    "is_cut": False,
    "input_tokens": 640,
    "output_tokens": 31,
    "error": "",
}
TRACE = _response_example(
    "A run with its first step",
    {**_TRACE, "answer": "Five days [1].", "definition": _DEFINITION, "spans": [_SPAN]},
)
_STATISTICS = {
    "name": "handbook",
    "runs": 41,
    "failed": 1,
    "p50_ms": 2100.5,
    "p95_ms": 4980.2,
    "p99_ms": 7001.9,
    "input_tokens": 49210,
    "output_tokens": 3870,
}
TRACE_STATISTICS = _response_example(
    "A week",
    {
        "days": 7,
        "results": [
            {**_STATISTICS, "nodes": [{**_STATISTICS, "name": "retriever", "p50_ms": 1200.0}]}
        ],
    },
)
