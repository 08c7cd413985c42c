"""Examples in the OpenAPI description."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

ID = "ent:person:ada lovelace"
COMPLETE = {"limit": False, "hubs": [], "work": False}


def _request(name: str, value: Any, **options: Any) -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=True, **options)


def _answer(name: str, value: Any, *, status: str = "200", **options: Any) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=[status], **options)


def _node(id: str, name: str, label: str, **given: Any) -> dict[str, Any]:
    plain = {"kind": "node", "origin": "given", "document": None, "chunk": None, "props": None}
    return {"id": id, "name": name, "labels": [label], **plain, **given}


ADA = _node(ID, "Ada Lovelace", "Person")
ADA_READ = {**ADA, "props": {"born": 1815}}
ENGINE = _node("ent:name:analytical engine", "Analytical Engine", "Name", origin="extracted")
NOTES = _node(
    "doc:notes:engines.md",
    "Engines",
    "Document",
    kind="document",
    origin="derived",
    document=17,
)
PASSAGE = _node(
    "chunk:notes:engines.md:0",
    "Engines #1",
    "Passage",
    kind="chunk",
    origin="derived",
    chunk=4711,
)
PROGRAMMED = {
    "source": ID,
    "rel": "PROGRAMMED",
    "target": ENGINE["id"],
    "weight": 1.0,
    "origin": "given",
}
MENTIONS_ADA = {
    "source": NOTES["id"],
    "rel": "MENTIONS",
    "target": ID,
    "weight": 3.0,
    "origin": "derived",
}

NODE = _answer("One node", ADA_READ)
NODES = _answer("A page", {"next": None, "previous": None, "results": [ADA, ENGINE]})
NODE_BODY = _request(
    "A person",
    {
        "id": ID,
        "name": "Ada Lovelace",
        "labels": ["Person"],
        "props": {"born": 1815},
        "aliases": ["Augusta Ada King"],
    },
)
NODE_CHANGE = _answer(
    "Made", {"node": ADA_READ, "created": True, "changed": True, "taken": []}, status="201"
)
IDS = _request("Two nodes", {"ids": [ID, ENGINE["id"]], "preview": True})
DELETION = _answer(
    "What would go",
    {"preview": True, "nodes": 2, "edges": 1, "mentions": 5, "aliases": 3, "stubs": 0},
)
EDGE_BODY = _request(
    "What she did",
    {"source": ID, "rel": "PROGRAMMED", "target": ENGINE["id"], "props": {"year": 1843}},
)
EDGES = _answer("A page", {"next": None, "results": [{**PROGRAMMED, "props": None}]})
EDGE_CHANGE = _answer(
    "Made",
    {
        "edge": {**PROGRAMMED, "props": {"year": 1843}},
        "created": True,
        "changed": True,
        "stubs": 0,
    },
    status="201",
)
NEIGHBORS = _answer(
    "A document and a thing",
    {
        "node": ADA,
        "total": 2,
        "next": None,
        "results": [
            {
                "node": NOTES,
                "rel": "MENTIONS",
                "direction": "in",
                "weight": 3.0,
                "origin": "derived",
                "props": {},
            },
            {
                "node": ENGINE,
                "rel": "PROGRAMMED",
                "direction": "out",
                "weight": 1.0,
                "origin": "given",
                "props": {"year": 1843},
            },
        ],
        "truncated": COMPLETE,
    },
)
MENTIONS = _answer(
    "In a note",
    {
        "node": ADA,
        "next": None,
        "results": [
            {
                "passage": PASSAGE,
                "document": NOTES,
                "kind": "text",
                "count": 3,
                "start": 12,
                "end": 24,
                "snippet": "The notes of Ada Lovelace on the engine.",
                "snippet_start": 0,
            }
        ],
    },
)
TRAVERSAL_BODY = _request("Two steps", {"start": ID, "max_depth": 2, "rel": ["PROGRAMMED"]})
TRAVERSAL = _answer(
    "One step",
    {
        "reached": [
            {"node": ADA, "depth": 0, "parent": None, "rel": None, "direction": None},
            {
                "node": ENGINE,
                "depth": 1,
                "parent": ID,
                "rel": "PROGRAMMED",
                "direction": "out",
            },
        ],
        "truncated": COMPLETE,
    },
)
PATH_BODY = _request("From a note to a thing", {"source": NOTES["id"], "target": ENGINE["id"]})
PATH = _answer(
    "Two steps",
    {
        "found": True,
        "length": 2,
        "nodes": [NOTES, ADA, ENGINE],
        "edges": [MENTIONS_ADA, PROGRAMMED],
        "max_depth": 6,
        "truncated": COMPLETE,
    },
)
SUBGRAPH_BODY = _request("Around a person", {"id": [ID], "hops": 1, "limit": 50})
SUBGRAPH = _answer(
    "Two nodes and an edge",
    {
        "elements": {
            "nodes": [{"data": {"id": ID, "name": "Ada Lovelace"}}],
            "edges": [],
        },
        "missing": [],
        "truncated": COMPLETE,
    },
    media_type="application/json",
)
GRAPHML = _answer(
    "A file",
    '<?xml version="1.0" encoding="UTF-8"?>\n<graphml …>…</graphml>',
    media_type="application/graphml+xml",
)
LINES = _answer(
    "A node and an edge",
    '{"node": {"id": "src:crm:4711", "name": "Babbage & Sons"}}\n'
    f'{{"edge": {{"source": "{ID}", "rel": "WORKS_WITH", "target": "src:crm:4711"}}}}\n',
    media_type="application/x-ndjson",
)
BULK = _request(
    "Two nodes and an edge",
    {
        "nodes": [
            {"id": ID, "name": "Ada Lovelace", "labels": ["Person"]},
            {"id": "src:crm:4711", "name": "Babbage & Sons", "labels": ["Company"]},
        ],
        "edges": [{"source": ID, "rel": "WORKS_WITH", "target": "src:crm:4711"}],
        "strict": True,
    },
    media_type="application/json",
)
BULK_LINES = _request(
    "A node and an edge",
    '{"node": {"id": "src:crm:4711", "name": "Babbage & Sons"}}\n'
    f'{{"edge": {{"source": "{ID}", "rel": "WORKS_WITH", "target": "src:crm:4711"}}}}\n',
    media_type="application/x-ndjson",
)
BULK_ANSWER = _answer(
    "All new but a node",
    {
        "nodes": {"created": 1, "updated": 0, "unchanged": 1},
        "edges": {"created": 1, "updated": 0, "unchanged": 0},
        "stubs": 0,
        "taken": [],
    },
)
MERGE = _request("Two spellings", {"keep": ID, "others": ["ent:name:lovelace"]})
MERGE_ANSWER = _answer(
    "Merged",
    {
        "preview": False,
        "keep": ID,
        "nodes": 1,
        "edges": 4,
        "edges_joined": 1,
        "edges_dropped": 0,
        "mentions": 12,
        "aliases": 1,
    },
)
STATISTICS = _answer(
    "A small graph",
    {
        "nodes": 2,
        "edges": 1,
        "documents": 1,
        "mentions": 4,
        "origins": {"given": 1, "extracted": 1},
        "labels": {"Person": 1, "Name": 1},
        "rels": {"PROGRAMMED": 1},
        "best_connected": [{"node": ADA, "degree": 2}],
        "sampled": False,
    },
)
_STATE = {
    "collection": "notes",
    "graph": "rules",
    "waiting": 0,
    "running": 0,
    "done": 40,
    "dead": 0,
    "stale": 0,
    "mentions": 2310,
    "relations": 12,
}
EXTRACTION = _answer("All are read", _STATE)
REEXTRACTION = _request("What is out of date", {"collection": "notes", "only_stale": True})
REEXTRACTION_ANSWER = _answer(
    "Queued", {"queued": 40, "state": {**_STATE, "waiting": 40, "done": 0}}, status="202"
)
