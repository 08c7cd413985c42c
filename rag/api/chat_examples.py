"""Examples in the OpenAPI description."""

from drf_spectacular.utils import OpenApiExample

QUESTION = OpenApiExample(
    "A question to one collection",
    value={"message": "How many days may be carried over?", "collections": ["handbook"]},
    request_only=True,
)
FOLLOW_UP = OpenApiExample(
    "A further question of a conversation, answered whole",
    value={"message": "And until when?", "conversation": 17, "stream": False},
    request_only=True,
)
_PLACE = {
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
_ANSWER = f"Quoted from the sources:\n\n“{_SENTENCE}” [1]"
_CITATION = {**_PLACE, "start": 310, "end": 360, "quote": _SENTENCE, "at": 79}
_PASSAGE = {
    **_PLACE,
    "start": 310,
    "end": 369,
    "text": f"{_SENTENCE} Ask first.",
    "similarity": 0.64,
    "lexical": 9.1,
    "fused": 0.97,
    "rerank": None,
}
_VERDICT = {"refused": False, "unsupported": [], "dropped_citations": 0}
ANSWER = OpenApiExample(
    "The answer",
    value={
        "answer": _ANSWER,
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
EVENTS = OpenApiExample(
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
