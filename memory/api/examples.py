"""Examples in the OpenAPI description."""

from drf_spectacular.utils import OpenApiExample

CONTEXT = {
    "id": 4711,
    "conversation": "support-2026-11-03",
    "user_message": "My sister Clara plays the cello.",
    "assistant_response": "How lovely!",
    "origin": "turn",
    "created_at": "2026-11-03T09:00:00Z",
    "embedded": True,
}
LIVES_IN_BERLIN = {
    "key": "city",
    "value": "Berlin",
    "valid_from": "2026-11-03T09:00:00Z",
    "valid_to": None,
    "is_current": True,
    "origin": "given",
    "source": None,
}
LIVED_IN_BASEL = {
    **LIVES_IN_BERLIN,
    "value": "Basel",
    "valid_from": "2024-02-01T00:00:00Z",
    "valid_to": "2026-11-03T09:00:00Z",
    "is_current": False,
}

SEARCH = OpenApiExample(
    "A question",
    value={"query": "Who plays the cello?", "max_results": 3, "threshold": 0.3},
    request_only=True,
)
SEARCH_ANSWER = OpenApiExample(
    "What the user once said",
    value={
        "user_id": "ada",
        "query": "Who plays the cello?",
        "mode": "hybrid",
        "hits": [
            {
                "context": CONTEXT,
                "scores": {
                    "score": 0.98,
                    "relevance": 0.81,
                    "recency": 0.98,
                    "parts": {"words": 0.62, "meaning": 0.71},
                },
            }
        ],
        "below": 12,
        "searched": 340,
        "degraded": [],
        "milliseconds": 9.4,
    },
    response_only=True,
    status_codes=["200"],
)
TURN = OpenApiExample(
    "A turn",
    value={
        "user_message": "My sister Clara plays the cello.",
        "assistant_response": "How lovely!",
        "conversation": "support-2026-11-03",
    },
    request_only=True,
)
ARCHIVED = OpenApiExample(
    "Kept",
    value={"user_id": "ada", "context": CONTEXT, "is_new": True},
    response_only=True,
    status_codes=["201"],
)
QUESTION = OpenApiExample(
    "A question", value={"question": "What is for dinner?"}, request_only=True
)
FACT = OpenApiExample("A town", value={"value": "Berlin"}, request_only=True)
FACT_CHANGE = OpenApiExample(
    "Moved",
    value={
        "user_id": "ada",
        "fact": LIVES_IN_BERLIN,
        "changed": True,
        "superseded": LIVED_IN_BASEL,
    },
    response_only=True,
    status_codes=["200"],
)
USAGE = OpenApiExample(
    "A tenth of what may be",
    value={
        "user_id": "ada",
        "rows": 1000,
        "bytes": 412_800,
        "facts": 31,
        "max_rows": 10_000,
        "max_bytes": 52_428_800,
        "max_facts": 10_000,
        "prunings": [],
    },
    response_only=True,
    status_codes=["200"],
)
ERASED = OpenApiExample(
    "Everything",
    value={"user_id": "ada", "contexts": 340, "facts": 12, "conversations": 2, "prunings": 0},
    response_only=True,
    status_codes=["200"],
)
EXPORT = OpenApiExample(
    "A header, a fact and a context",
    value=(
        '{"kind": "memory", "version": 1, "user_id": "ada", "at": "2026-11-03T09:00:00Z"}\n'
        '{"kind": "fact", "key": "city", "value": "Berlin", …}\n'
        '{"kind": "context", "id": 4711, "user_message": "My sister Clara plays the cello.", …}\n'
    ),
    media_type="application/x-ndjson",
    response_only=True,
    status_codes=["200"],
)
