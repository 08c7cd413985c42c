"""Examples in the OpenAPI description."""

from drf_spectacular.utils import OpenApiExample

NEW_COLLECTION = OpenApiExample(
    "A collection of German leaflets",
    value={"name": "Leaflets", "slug": "leaflets", "language": "de"},
    request_only=True,
)
RENAME = OpenApiExample("A new name", value={"name": "Package leaflets"}, request_only=True)
TEXT = OpenApiExample(
    "A note as text",
    value={
        "collection": "notes",
        "key": "meeting-2026-11-03",
        "title": "Meeting of 3 November",
        "text": "# Decisions\n\nWe move to the new building in March.",
        "media_type": "text/markdown",
        "metadata": {"year": 2026, "topic": "building"},
    },
    media_type="application/json",
    request_only=True,
)
FILES = OpenApiExample(
    "Two files of a folder",
    value={
        "collection": "notes",
        "files": ["(binary)", "(binary)"],
        "paths": ["2026/march.pdf", "2026/april.pdf"],
        "metadata": '{"year": 2026}',
    },
    media_type="multipart/form-data",
    request_only=True,
)
ACCEPTED = OpenApiExample(
    "Queued",
    value={
        "id": 17,
        "url": "http://localhost:8000/api/v1/runs/17/",
        "items_url": "http://localhost:8000/api/v1/runs/17/items/",
        "events_url": "http://localhost:8000/api/v1/runs/17/events/",
        "retry_of": None,
        "collection": "notes",
        "source": "2 files",
        "policy": "skip_if_unchanged",
        "state": "running",
        "is_finished": False,
        "total": 2,
        "settled": 0,
        "ready": 0,
        "skipped": 0,
        "failed": 0,
        "cancelled": 0,
        "duplicates": 0,
        "bytes": 48210,
        "chunks": 0,
        "embedded": 0,
        "tokens": 0,
        "mentions": 0,
        "relations": 0,
        "timings": {},
        "started_at": "2026-11-03T09:00:00Z",
        "finished_at": None,
    },
    response_only=True,
    status_codes=["202"],
)
PASSAGE = OpenApiExample(
    "A corrected passage",
    value={"text": "We move to the new building in April."},
    request_only=True,
)
CORRECTION = OpenApiExample(
    "Another title, and metadata",
    value={"title": "Meeting of 4 November", "metadata": {"year": 2026}},
    request_only=True,
)
EVENTS = OpenApiExample(
    "A run that ends",
    value=(
        'retry: 2000\n\nevent: progress\nid: 4be09a1c77d21f03\ndata: {"run": 17,'
        ' "state": "running", "stage": "embedding", "total": 2, "settled": 1}\n\n'
        'event: end\nid: 90a3b6f5c1d84e27\ndata: {"run": 17, "state": "succeeded"}\n\n'
    ),
    media_type="text/event-stream",
    response_only=True,
    status_codes=["200"],
)
