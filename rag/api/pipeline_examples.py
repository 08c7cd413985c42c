"""Examples in the OpenAPI description of pipelines and traces."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

from rag.pipelines.shipped import templates


def _answer(name: str, value: Any, *, status: str = "200") -> OpenApiExample:
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
DEFINITION = OpenApiExample("Look up, then answer", value=_DEFINITION, request_only=True)
LIST = _answer("One of one's own, and a template", {"results": [_LISTED, _TEMPLATE]})
PIPELINE = _answer("A pipeline", {**_LISTED, "definition": _DEFINITION})
MADE = _answer("Made", {**_LISTED, "version": 1, "definition": _DEFINITION}, status="201")
CHECKED = _answer("Nothing is wrong", {"definition": _DEFINITION})
QUESTION = OpenApiExample(
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
TRACE = _answer(
    "A run with its first step",
    {**_TRACE, "answer": "Five days [1].", "definition": _DEFINITION, "spans": [_SPAN]},
)
_FIGURES = {
    "name": "handbook",
    "runs": 41,
    "failed": 1,
    "p50_ms": 2100.5,
    "p95_ms": 4980.2,
    "p99_ms": 7001.9,
    "input_tokens": 49210,
    "output_tokens": 3870,
}
STATISTICS = _answer(
    "A week",
    {
        "days": 7,
        "results": [{**_FIGURES, "nodes": [{**_FIGURES, "name": "retriever", "p50_ms": 1200.0}]}],
    },
)
