"""Examples in the OpenAPI description."""

from drf_spectacular.utils import OpenApiExample

BATCH = OpenApiExample(
    "A text, a vector, and a text with its vector",
    value={
        "items": [
            {"id": "note-1", "text": "We move in March.", "metadata": {"year": 2026}},
            {"id": "picture-7", "vector": [0.12, -0.07, 0.33], "metadata": {"kind": "photo"}},
            {"id": "note-2", "text": "The canteen opens.", "vector": [0.02, 0.41, -0.3]},
        ]
    },
    request_only=True,
)
ITEM = OpenApiExample(
    "A text with its title",
    value={"text": "We move in March.", "title": "Moving", "metadata": {"year": 2026}},
    request_only=True,
)
IDS = OpenApiExample("Two items", value={"ids": ["note-1", "note-2"]}, request_only=True)
HYBRID = OpenApiExample(
    "Words and a vector, weighed",
    value={
        "query": "when do we move?",
        "vector": [0.12, -0.07, 0.33],
        "weights": {"lexical": 0.4, "vector": 0.6},
        "filter": {"year": {"$gte": 2025}},
        "k": 5,
    },
    request_only=True,
)
NEAREST = OpenApiExample(
    "The nearest by inner product",
    value={"vector": [0.12, -0.07, 0.33], "metric": "ip", "k": 20},
    request_only=True,
)
