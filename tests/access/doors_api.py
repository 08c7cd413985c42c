"""The doors of programs: the API, the protocols of OpenAI and Anthropic, MCP."""

from typing import Any

from rag.pipelines.validation import templates
from tests.access.policy import Door, Who

ANYBODY, LOGGED_IN, MEMBER, EDITOR = Who.ANYBODY, Who.LOGGED_IN, Who.MEMBER, Who.EDITOR
READER, CORRECTOR, OWN = Who.READER, Who.CORRECTOR, Who.OWN

DEFINITION: dict[str, Any] = {**templates()["rag"].to_json(), "id": "plan"}
SET = "/api/v1/collections/{collection}"
DOC = "/api/v1/documents/{document}"
PIPE = "/api/v1/pipelines/{pipeline}"
GRAPH = "/api/v1/graph"
MEMORY = "/api/v1/memory"
NODE = "src:gate"


def _doors(who: Who, scope: str, *rows: tuple[Any, ...], **more: Any) -> list[Door]:
    """Rows of method, path, and a body where there is one."""
    return [Door(row[0], row[1], who, scope, *row[2:], **more) for row in rows]


SEEING = _doors(
    MEMBER,
    "read",
    ("GET", "/api/v1/collections/"),
    ("GET", f"{SET}/"),
    ("GET", "/api/v1/documents/"),
    ("GET", "/api/v1/runs/"),
    ("GET", "/api/v1/runs/{run}/"),
    ("GET", "/api/v1/runs/{run}/items/"),
    ("GET", "/api/v1/runs/{run}/events/"),
    ("GET", "/api/v1/search/?q=warden"),
    ("POST", "/api/v1/search/", {"q": "warden"}),
    ("GET", "/api/v1/search/export/?q=warden"),
    ("GET", "/api/v1/facets/?facet=author"),
    ("GET", "/api/v1/filters/"),
    ("GET", "/api/v1/summary/?collection={collection}"),
    ("GET", f"{SET}/store/"),
    ("GET", f"{SET}/store/items/?id=open.md"),
    ("GET", f"{SET}/store/items/open.md/"),
    ("POST", f"{SET}/store/search/", {"query": "warden"}),
    ("GET", "/api/v1/evaluations/"),
    ("GET", "/api/v1/evaluations/{evaluation}/"),
    ("GET", "/api/v1/dashboard/"),
    ("GET", "/api/v1/pipelines/"),
    ("GET", f"{PIPE}/"),
    ("GET", "/api/v1/tools/"),
    ("GET", "/api/v1/spaces/"),
    ("GET", "/api/v1/spaces/minilm-384/"),
)
SEEING += _doors(
    LOGGED_IN,
    "read",
    ("GET", "/api/v1/models/"),
    ("POST", "/api/v1/pipelines/check/", DEFINITION),
)
SEEING += _doors(
    Who.STAFF,
    "admin",
    ("PATCH", "/api/v1/spaces/minilm-384/", {"ef_search": 100}),
    permission="documents.change_embeddingspace",
)
CHANGING = _doors(
    EDITOR,
    "write",
    ("POST", "/api/v1/collections/", {"name": "New", "slug": "new"}),
    ("PATCH", f"{SET}/", {"name": "Other"}),
    ("DELETE", f"{SET}/"),
    ("POST", f"{SET}/sync/", {"directory": "{directory}", "allow_empty": True}),
    ("POST", "/api/v1/documents/", {"collection": "{collection}", "key": "n", "text": "New."}),
    ("POST", "/api/v1/runs/{running}/cancel/"),
    ("POST", "/api/v1/runs/{failed}/retry/"),
    ("POST", f"{SET}/store/items/", {"items": [{"id": "n", "text": "New."}]}),
    ("PUT", f"{SET}/store/items/n/", {"text": "New."}),
    ("DELETE", f"{SET}/store/items/open.md/"),
    ("POST", f"{SET}/store/delete/", {"ids": ["open.md"]}),
    ("POST", "/api/v1/evaluations/", {"collection": "{collection}"}),
    ("POST", "/api/v1/pipelines/", {**DEFINITION, "id": "new"}),
    ("PUT", f"{PIPE}/", DEFINITION),
    ("DELETE", f"{PIPE}/"),
    fine=(409,),
)
SUMMARISING = _doors(
    MEMBER,
    "read+chat",
    ("POST", "/api/v1/summary/?collection={collection}", {}),
    ("DELETE", "/api/v1/summary/?collection={collection}"),
    fine=(409,),
)
ASKING_TABLES = _doors(
    MEMBER, "read", ("POST", "/api/v1/tables/ask/", {"question": "How many rows are there?"})
)
HISTORY = _doors(EDITOR, "read", ("GET", "/api/v1/changes/"), ("GET", "/api/v1/changes/{change}/"))
LISTED = [
    *_doors(
        READER,
        "read",
        ("GET", f"{DOC}/"),
        ("GET", f"{DOC}/chunks/"),
        ("GET", f"{DOC}/edits/"),
        ("GET", f"{DOC}/file/"),
        ("GET", f"{DOC}/pages/1/image/"),
        ("GET", f"{DOC}/similar/"),
        ("GET", f"{DOC}/summary/"),
        ("GET", "/api/v1/chunks/{chunk}/"),
        ("GET", "/api/v1/chunks/{chunk}/similar/"),
        ("GET", "/api/v1/edits/{edit}/"),
    ),
    # Notes have one version, and the site has no chat model.
    *_doors(READER, "read", ("GET", f"{DOC}/changes/"), fine=(404,)),
    *_doors(
        READER,
        "read+chat",
        ("POST", f"{DOC}/summary/", {}),
        ("DELETE", f"{DOC}/summary/"),
        fine=(409,),
    ),
    *_doors(
        CORRECTOR,
        "write",
        ("PATCH", f"{DOC}/", {"metadata": {"year": 2001}}),
        ("DELETE", f"{DOC}/"),
        ("PATCH", "/api/v1/chunks/{chunk}/", {"text": "Other words of the warden."}),
        ("POST", "/api/v1/edits/{edit}/undo/"),
        ("POST", "/api/v1/edits/{edit}/dismiss/"),
        fine=(409,),
    ),
]
TABLE = "/api/v1/tables/{table}"
TABLES = [
    *_doors(MEMBER, "read", ("GET", "/api/v1/tables/")),
    *_doors(
        READER,
        "read",
        ("GET", f"{TABLE}/"),
        ("GET", f"{TABLE}/rows/?words=7"),
        ("GET", f"{TABLE}/csv/"),
        ("GET", f"{TABLE}/group/"),
        ("GET", f"{TABLE}/xlsx/"),
        ("GET", "/api/v1/tables/result/rows/?reading={reading}"),
        ("GET", "/api/v1/tables/result/csv/?reading={reading}"),
        ("GET", "/api/v1/tables/result/xlsx/?reading={reading}"),
    ),
    *_doors(CORRECTOR, "write", ("PATCH", f"{TABLE}/group/", {"apart": True})),
    *_doors(
        CORRECTOR, "write", ("PATCH", f"{TABLE}/", {"column": "Key", "name": "Other"}), fine=(400,)
    ),
]
SOURCE = "/api/v1/sources/{source}"
FOLDER = {"connector": "folder", "options": {"path": "{directory}"}}
SOURCES = [
    *_doors(LOGGED_IN, "read", ("GET", "/api/v1/sources/kinds/")),
    *_doors(
        MEMBER,
        "read",
        ("GET", "/api/v1/sources/"),
        ("GET", f"{SOURCE}/"),
        ("GET", f"{SOURCE}/runs/"),
        ("GET", f"{SOURCE}/failures/"),
    ),
    *_doors(
        EDITOR,
        "write",
        ("POST", "/api/v1/sources/", {"name": "n", "collection": "{collection}", **FOLDER}),
        ("PATCH", f"{SOURCE}/", {"name": "Other"}),
        ("DELETE", f"{SOURCE}/"),
        ("POST", "/api/v1/sources/try/", FOLDER),
        ("POST", f"{SOURCE}/runs/"),
        ("POST", f"{SOURCE}/cancel/"),
        ("POST", f"{SOURCE}/retry/"),
        ("POST", f"{SOURCE}/webhook/"),
        ("DELETE", f"{SOURCE}/webhook/"),
    ),
    # The place of the one here is nowhere.
    *_doors(
        EDITOR, "write", ("POST", f"{SOURCE}/dry-run/"), ("POST", f"{SOURCE}/preview/"), fine=(424,)
    ),
]
READING_GRAPH = _doors(
    MEMBER,
    "read",
    ("GET", f"{GRAPH}/nodes/"),
    ("GET", f"{GRAPH}/edges/?source={NODE}&rel=NEEDS&target=src:wall"),
    ("GET", f"{GRAPH}/neighbors/?id={NODE}"),
    ("GET", f"{GRAPH}/mentions/?id={NODE}"),
    ("GET", f"{GRAPH}/traverse/?start={NODE}"),
    ("POST", f"{GRAPH}/traverse/", {"start": NODE}),
    ("GET", f"{GRAPH}/paths/?source={NODE}&target=src:wall"),
    ("POST", f"{GRAPH}/paths/", {"source": NODE, "target": "src:wall"}),
    ("GET", f"{GRAPH}/subgraph/?id={NODE}"),
    ("POST", f"{GRAPH}/subgraph/", {"id": [NODE]}),
    ("GET", f"{GRAPH}/stats/"),
    ("GET", f"{GRAPH}/export/"),
    ("GET", f"{GRAPH}/extractions/?collection={{collection}}"),
)
WRITING_GRAPH = _doors(
    EDITOR,
    "write",
    ("PUT", f"{GRAPH}/nodes/", {"id": "src:new", "name": "New"}),
    ("DELETE", f"{GRAPH}/nodes/?id={NODE}"),
    ("POST", f"{GRAPH}/nodes/delete/", {"ids": [NODE]}),
    ("PUT", f"{GRAPH}/edges/", {"source": NODE, "rel": "HAS", "target": "src:wall"}),
    ("DELETE", f"{GRAPH}/edges/?source={NODE}&rel=NEEDS&target=src:wall"),
    ("POST", f"{GRAPH}/bulk/", {"nodes": [{"id": "src:new"}]}),
    ("POST", f"{GRAPH}/merge/", {"keep": NODE, "others": ["src:wall"]}),
    ("POST", f"{GRAPH}/extractions/", {"collection": "{collection}"}),
    fine=(409,),
)
SAVED = [
    *_doors(MEMBER, "read", ("GET", "/api/v1/saved-searches/")),
    *_doors(
        MEMBER, "write", ("POST", "/api/v1/saved-searches/", {"name": "n", "parameters": "q=a"})
    ),
    *_doors(OWN, "read", ("GET", "/api/v1/saved-searches/{saved}/")),
    *_doors(
        OWN,
        "write",
        ("PATCH", "/api/v1/saved-searches/{saved}/", {"name": "Other"}),
        ("DELETE", "/api/v1/saved-searches/{saved}/"),
    ),
]
REMEMBERING = [
    *_doors(MEMBER, "memory", ("DELETE", f"{MEMORY}/"), fine=(400,)),
    *_doors(
        MEMBER,
        "memory",
        ("GET", f"{MEMORY}/search/?q=town"),
        ("POST", f"{MEMORY}/search/", {"q": "town"}),
        ("GET", f"{MEMORY}/contexts/"),
        ("POST", f"{MEMORY}/contexts/", {"user_message": "I moved."}),
        ("POST", f"{MEMORY}/contexts/clear/", {"question": "Where is it?"}),
        ("GET", f"{MEMORY}/facts/"),
        ("PUT", f"{MEMORY}/facts/new/", {"value": "Kiel"}),
        ("POST", f"{MEMORY}/inject/", {"messages": [{"role": "user", "content": "Which town?"}]}),
        ("GET", f"{MEMORY}/conversations/"),
        (
            "POST",
            f"{MEMORY}/conversations/",
            {"conversation": "c", "messages": [{"role": "user", "content": "I moved."}]},
        ),
        ("GET", f"{MEMORY}/usage/"),
        ("GET", f"{MEMORY}/export/"),
    ),
    *_doors(
        OWN,
        "memory",
        ("GET", f"{MEMORY}/contexts/{{context}}/"),
        ("DELETE", f"{MEMORY}/contexts/{{context}}/"),
        ("GET", f"{MEMORY}/facts/{{fact}}/"),
        ("POST", f"{MEMORY}/conversations/{{extraction}}/retry/"),
        fine=(409,),
    ),
]
# A key of somebody else's is nobody's here: there is nothing under it.
REMEMBERING += _doors(
    OWN,
    "memory",
    ("DELETE", f"{MEMORY}/facts/{{fact}}/"),
    ("POST", f"{MEMORY}/facts/{{fact}}/clear/"),
    ("GET", f"{MEMORY}/facts/{{fact}}/history/"),
    does_nothing=True,
)
WARDEN = {"model": "extractive", "messages": [{"role": "user", "content": "Which warden?"}]}
CHATTING = [
    *_doors(
        MEMBER,
        "chat",
        ("GET", "/api/v1/conversations/"),
        ("GET", "/api/v1/traces/"),
        ("GET", "/api/v1/traces/statistics/"),
    ),
    *_doors(
        MEMBER,
        "chat",
        ("GET", "/v1/models"),
        ("GET", "/v1/models/extractive"),
        ("POST", "/v1/messages/count_tokens", WARDEN),
        ("POST", "/v1/embeddings", {"model": "default", "input": "A warden."}),
        ("POST", "/v1/rerank", {"query": "warden", "documents": ["A warden."]}),
        ("POST", "/v2/rerank", {"query": "warden", "documents": ["A warden."]}),
        fine=(503,),
        is_for_keys=True,
    ),
    *_doors(
        OWN,
        "chat",
        ("GET", "/api/v1/conversations/{conversation}/"),
        ("PATCH", "/api/v1/conversations/{conversation}/", {"title": "Other"}),
        ("DELETE", "/api/v1/conversations/{conversation}/"),
        ("GET", "/api/v1/conversations/{conversation}/messages/"),
        ("GET", "/api/v1/traces/{trace}/"),
        ("DELETE", "/api/v1/traces/{trace}/"),
        ("POST", "/api/v1/traces/{tracing}/cancel/"),
        fine=(409,),
    ),
    *_doors(
        MEMBER,
        "read+chat",
        ("POST", "/api/v1/chat/", {"message": "What does the warden keep?"}),
        is_threaded=True,
    ),
    *_doors(
        MEMBER,
        "chat",
        ("POST", f"{PIPE}/run/", {"question": "Which warden?"}),
        is_threaded=True,
    ),
    *_doors(
        MEMBER,
        "read+chat",
        ("POST", "/v1/chat/completions", WARDEN),
        ("POST", "/v1/messages", WARDEN),
        is_threaded=True,
        is_for_keys=True,
    ),
    *_doors(
        OWN,
        "read+chat",
        ("POST", "/api/v1/chat/", {"message": "And who?", "conversation": "{conversation}"}),
        is_threaded=True,
    ),
]
KEYS = [
    *_doors(
        MEMBER,
        "admin",
        ("GET", "/api/v1/keys/"),
        ("POST", "/api/v1/keys/", {"name": "n", "scopes": ["admin"]}),
    ),
    *_doors(
        OWN,
        "admin",
        ("GET", "/api/v1/keys/{key}/"),
        ("POST", "/api/v1/keys/{key}/revoke/"),
    ),
]
MEMBERS = _doors(
    Who.OWNER,
    "admin",
    ("GET", "/api/v1/members/"),
    ("GET", "/api/v1/members/{accounts.membership}/"),
    ("PATCH", "/api/v1/members/{accounts.membership}/", {"external_names": ["a"]}),
    ("DELETE", "/api/v1/members/{accounts.membership}/"),
    ("GET", "/api/v1/groups/"),
    ("POST", "/api/v1/groups/", {"name": "New"}),
    ("GET", "/api/v1/groups/{accounts.workspacegroup}/"),
    ("PATCH", "/api/v1/groups/{accounts.workspacegroup}/", {"name": "Other"}),
    ("DELETE", "/api/v1/groups/{accounts.workspacegroup}/"),
    ("GET", "/api/v1/invitations/"),
    ("POST", "/api/v1/invitations/", {"role": "viewer"}),
    ("GET", "/api/v1/invitations/{accounts.invitation}/"),
    ("POST", "/api/v1/invitations/{accounts.invitation}/revoke/"),
    fine=(409,),  # the last owner stays
)
OPEN = _doors(
    ANYBODY,
    "read",
    ("GET", "/api/"),
    ("GET", "/api/v1/"),
    ("GET", "/api/schema/"),
    ("GET", "/api/docs/"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
    fine=(401, 503),  # 401 for a key that is over
)
CONNECTION = "/api/v1/model-connections/{connection}/"
SERVER = {"kind": "openai", "address": "https://127.0.0.1:1", "owner": "workspace"}
CONNECTIONS = _doors(
    Who.OWNER,
    "admin",
    ("GET", "/api/v1/model-connections/"),
    ("POST", "/api/v1/model-connections/", {**SERVER, "model": "other", "key": "k"}),
    ("POST", "/api/v1/model-connections/server-models/", SERVER),
    ("GET", CONNECTION),
    ("PATCH", CONNECTION, {"name": "Other"}),
    ("DELETE", CONNECTION),
    ("POST", f"{CONNECTION}try/"),
    fine=(424,),  # nothing listens there
) + _doors(
    Who.OPERATOR,
    "admin",
    ("POST", f"{CONNECTION}use/", {"collections": "new"}),
    fine=(400,),  # it is no embedder
)
CONNECTIONS += _doors(Who.OWNER, "read", ("GET", "/api/v1/dashboard/models/"))
DATABASE = "/api/v1/databases/{database}/"
NOWHERE = {"address": "postgresql://127.0.0.1:1/shop", "username": "reader"}
DATABASES = _doors(
    Who.OWNER,
    "admin",
    ("GET", "/api/v1/databases/"),
    ("POST", "/api/v1/databases/", {**NOWHERE, "collection": "{collection}"}),
    ("GET", DATABASE),
    ("PATCH", DATABASE, {"is_enabled": False}),
    ("DELETE", DATABASE),
    ("POST", f"{DATABASE}try/"),
    fine=(424,),  # owners are not let to an address of the site's own network
)
# The signature of the call says whose the source is; these have none.
CALLED = _doors(ANYBODY, "read", ("POST", "/hooks/sources/{source}/"), fine=(401,))
WATCHING = _doors(Who.STAFF, "none", ("GET", "/metrics"))

GROUPS: dict[str, list[Door]] = {
    "Documents, search and pipelines: seen": SEEING,
    "Documents, search and pipelines: changed": CHANGING,
    "Documents with an access list": LISTED,
    "Tables": TABLES,
    "Sources": SOURCES,
    "Summaries by a chat model": SUMMARISING,
    "Questions to tables": ASKING_TABLES,
    "History": HISTORY,
    "Graph": READING_GRAPH + WRITING_GRAPH,
    "Saved searches": SAVED,
    "Memory": REMEMBERING,
    "Chat and traces": CHATTING,
    "Databases": DATABASES,
    "API keys": KEYS,
    "Members, groups and invitations": MEMBERS,
    "Connections to models": CONNECTIONS,
    "Description and health": OPEN,
    "Webhooks of sources": CALLED,
    "Figures for those who run the site": WATCHING,
}
