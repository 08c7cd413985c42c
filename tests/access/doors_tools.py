"""The tools of chat models, called over the API and by the Model Context Protocol."""

from typing import Any

from tests.access.policy import Door, Who

MEMBER, EDITOR, READER = Who.MEMBER, Who.EDITOR, Who.READER

#: Tool → who may, the scope, what it is asked.
TOOLS: dict[str, tuple[Who, str, dict[str, Any]]] = {
    "similarity_search": (MEMBER, "read", {"query": "warden"}),
    "hybrid_query": (MEMBER, "read", {"query": "warden", "mode": "graph"}),
    "search_words": (MEMBER, "read", {"query": "warden"}),
    "search_vector": (MEMBER, "read", {"vector": [1.0] * 384}),
    "get_document": (READER, "read", {"id": "private.md"}),
    "summarize_document": (READER, "read", {"id": "private.md"}),
    "query_tables": (MEMBER, "read", {"question": "How many rows are there?"}),
    "remove_document": (EDITOR, "write", {"id": "open.md", "collection": "{collection}"}),
    "index_document": (
        EDITOR,
        "write",
        {"id": "n", "content": "New.", "collection": "{collection}"},
    ),
    "list_collections": (MEMBER, "read", {}),
    "list_tables": (MEMBER, "read", {}),
    "memory_search": (MEMBER, "memory", {"query": "town"}),
    "remember": (MEMBER, "memory", {"question": "Where?", "answer": "There."}),
    "archive_turn": (MEMBER, "memory", {"user_message": "I moved."}),
    "clear_memory": (MEMBER, "memory", {"question": "Where is it?"}),
    "set_fact": (MEMBER, "memory", {"key": "new", "value": "Kiel"}),
    "get_fact": (MEMBER, "memory", {"key": "town"}),
    "has_fact": (MEMBER, "memory", {"key": "town"}),
    "get_all_facts": (MEMBER, "memory", {}),
    "clear_fact": (MEMBER, "memory", {"key": "town"}),
    "history": (MEMBER, "memory", {"key": "town"}),
    "graph_upsert": (EDITOR, "write", {"nodes": [{"id": "src:new"}]}),
    "graph_find": (MEMBER, "read", {"text": "gate"}),
    "graph_neighbors": (MEMBER, "read", {"id": "src:gate"}),
    "graph_path": (MEMBER, "read", {"source": "src:gate", "target": "src:wall"}),
}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "walk", "version": "0"},
}
REFERENCE = {"type": "ref/resource", "uri": "ragsite://{collection}/{+key}"}
ARGUMENT = {"name": "key", "value": "p"}
#: Method → what it is told, and who may.
METHODS: dict[str, tuple[Who, dict[str, Any]]] = {
    "initialize": (MEMBER, HELLO),
    "ping": (MEMBER, {}),
    "tools/list": (MEMBER, {}),
    "resources/list": (MEMBER, {}),
    "resources/templates/list": (MEMBER, {}),
    "resources/read": (READER, {"uri": "ragsite://notes/private.md"}),
    "completion/complete": (
        MEMBER,
        {
            "ref": REFERENCE,
            "argument": ARGUMENT,
            "context": {"arguments": {"collection": "notes"}},
        },
    ),
}


def _over_mcp(method: str, who: Who, scope: str, params: dict[str, Any], tool: str = "") -> Door:
    return Door(
        "POST",
        "/mcp",
        who,
        scope,
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
        is_threaded=True,
        is_for_keys=True,
        told=f"/mcp {method} {tool}".rstrip(),
        tool=tool or method,
    )


def _called(name: str, who: Who, scope: str, arguments: dict[str, Any]) -> Door:
    body = {"arguments": arguments}
    return Door("POST", f"/api/v1/tools/{name}/", who, scope, body, tool=name)


GROUPS: dict[str, list[Door]] = {
    "Tools over the API": [_called(name, *told) for name, told in TOOLS.items()],
    "Model Context Protocol": [
        *(_over_mcp(method, who, "read", params) for method, (who, params) in METHODS.items()),
        *(
            _over_mcp(
                "tools/call",
                who,
                scope if scope == "read" else f"read+{scope}",
                {"name": name, "arguments": arguments},
                tool=name,
            )
            for name, (who, scope, arguments) in TOOLS.items()
        ),
    ],
}
