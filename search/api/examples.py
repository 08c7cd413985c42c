"""Examples in the OpenAPI description."""

from drf_spectacular.utils import OpenApiExample

QUESTION = OpenApiExample(
    "A question to one collection",
    value={
        "q": "What are common side effects of aripiprazole?",
        "collection": ["leaflets"],
        "filter": {"language": "en", "year": {"$gte": 2020}},
        "k": 3,
        "explain": True,
    },
    request_only=True,
)
ANSWER = OpenApiExample(
    "The best passage",
    value={
        "query": "What are common side effects of aripiprazole?",
        "mode": "hybrid",
        "sort": "relevance",
        "total": 50,
        "offset": 0,
        "k": 1,
        "next_offset": 1,
        "hits": [
            {
                "rank": 1,
                "chunk_id": 4711,
                "chunk_key": "aripiprazole_chunk_012",
                "ordinal": 12,
                "text": "4. Possible side effects\nSleepiness and nausea are common.",
                "context": "Aripiprazole\nPossible side effects",
                "heading_path": ["Possible side effects"],
                "page": 4,
                "parent": None,
                "start": 9120,
                "end": 9178,
                "summary": "Which side effects are common.",
                "token_count": 14,
                "language": "english",
                "metadata": {"year": 2025},
                "scores": {"similarity": 0.71, "lexical": 14.2, "fused": 0.98, "rerank": None},
                "relevance": 1.0,
                "ranks": {"lexical": 2, "vector": 1},
                "fused_rank": 1,
                "contributions": {"lexical": 0.48, "vector": 0.5},
                "snippet": {
                    "text": "Possible side effects\nSleepiness and nausea are common.",
                    "start": 3,
                    "highlights": [[9, 13], [14, 21], [47, 53]],
                    "cut_before": True,
                    "cut_after": False,
                },
                "surroundings": None,
                "document": {
                    "id": 88,
                    "url": "http://localhost:8000/api/v1/documents/88/",
                    "key": "leaflets/aripiprazole.pdf",
                    "version": 1,
                    "is_current": True,
                    "title": "Aripiprazole",
                    "source": "leaflets/aripiprazole.pdf",
                    "source_url": "",
                    "media_type": "application/pdf",
                    "updated_at": "2026-11-03T09:00:00Z",
                    "dated": "2025-08",
                },
                "collection": {"slug": "leaflets", "name": "Leaflets"},
                "more_in_document": 0,
            }
        ],
        "facets": {
            "collection": [
                {
                    "value": "leaflets",
                    "label": "Leaflets",
                    "count": 9,
                    "selected": True,
                    "filter": "",
                }
            ],
            "media_type": [
                {
                    "value": "application/pdf",
                    "label": "PDF",
                    "count": 9,
                    "selected": False,
                    "filter": "",
                }
            ],
        },
        "filter": {"language": "en", "year": {"$gte": 2020}},
        "arms": [
            {
                "name": "lexical",
                "method": "bm25",
                "candidates": 50,
                "weight": 0.5,
            },
            {
                "name": "vector",
                "method": "exact",
                "candidates": 50,
                "weight": 0.5,
            },
        ],
        "timings": {"plan": 0.9, "embed": 6.0, "database": 8.3, "rerank": 0.0, "total": 16.2},
        "can_rerank": False,
        "reranker": "",
        "reranked": 0,
        "suggestion": "",
        "degraded": [],
        "notes": [],
    },
    response_only=True,
    status_codes=["200"],
)
_DOCUMENT = {
    "id": 91,
    "url": "http://localhost:8000/api/v1/documents/91/",
    "key": "leaflets/risperidone.pdf",
    "version": 1,
    "is_current": True,
    "title": "Risperidone",
    "source": "leaflets/risperidone.pdf",
    "source_url": "",
    "media_type": "application/pdf",
    "updated_at": "2026-11-03T09:00:00Z",
    "dated": "2024-05-31",
}
SIMILAR = OpenApiExample(
    "The most similar one",
    value={
        "hits": [
            {
                "chunk_id": 5102,
                "ordinal": 9,
                "heading_path": ["Possible side effects"],
                "page": 3,
                "start": 7204,
                "end": 7391,
                "text": "4. Possible side effects Headache and feeling restless are common.",
                "language": "en",
                "similarity": 0.83,
                "relevance": 1.0,
                "document": _DOCUMENT,
                "collection": {"slug": "leaflets", "name": "Leaflets"},
            }
        ]
    },
    response_only=True,
    status_codes=["200"],
)
FACET = OpenApiExample(
    "Authors whose name begins with “kn”",
    value={
        "facet": "author",
        "values": [
            {
                "value": "Donald Knuth",
                "label": "Donald Knuth",
                "count": 4,
                "selected": False,
                "filter": 'author="Donald Knuth"',
            }
        ],
    },
    response_only=True,
    status_codes=["200"],
)
FIELDS = OpenApiExample(
    "A usual field, and metadata",
    value={
        "filters": [
            {
                "name": "language",
                "description": "ISO code of the passage's language.",
                "kinds": ["language"],
                "is_list": False,
                "is_facet": True,
                "operators": ["$eq", "$in", "$exists"],
                "examples": ["language=de,fr"],
                "values": [],
                "share": 1.0,
            },
            {
                "name": "year",
                "description": "Metadata of what was brought here.",
                "kinds": ["number"],
                "is_list": False,
                "is_facet": True,
                "operators": ["$eq", "$in", "$gt", "$gte", "$lt", "$lte", "$contains", "$exists"],
                "examples": ["year=2025", "year>=2025"],
                "values": [2025, 2024],
                "share": 0.8,
            },
        ]
    },
    response_only=True,
    status_codes=["200"],
)
