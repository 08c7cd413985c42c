"""The doors of people: every page of the site but the admin's."""

from typing import Any

from tests.access.policy import Door, Who

ANYBODY, LOGGED_IN, MEMBER, EDITOR = Who.ANYBODY, Who.LOGGED_IN, Who.MEMBER, Who.EDITOR
READER, CORRECTOR, OWN = Who.READER, Who.CORRECTOR, Who.OWN
SET = "/documents/{collection}"
DOC = f"{SET}/{{document}}"
EDGE = "source=src:gate&rel=NEEDS&target=src:wall"


def _doors(who: Who, *rows: tuple[Any, ...], **more: Any) -> list[Door]:
    """Rows of method, path, and a form where there is one."""
    return [Door(row[0], row[1], who, "", *row[2:], is_form=True, **more) for row in rows]


def _form(who: Who, path: str, body: dict[str, str], **more: Any) -> list[Door]:
    """A page with a form: shown and sent."""
    return _doors(who, ("GET", path), ("POST", path, body), **more)


SEARCHING = [
    *_doors(
        MEMBER,
        ("GET", "/?q=warden"),
        ("GET", "/facets/?facet=author&q=warden"),
        ("GET", "/export/?q=warden"),
        ("GET", "/saved/"),
        ("GET", "/summary/?collection={collection}"),
        ("POST", "/summary/?collection={collection}", {"act": "stop"}),
    ),
    *_doors(
        MEMBER, ("POST", "/saved/new/", {"parameters": "q=warden", "name": "n"}), does_nothing=True
    ),
    *_doors(
        READER,
        ("GET", "/similar/?document={document}"),
        ("GET", "/similar/document/{document}/"),
        ("GET", "/summary/document/{document}/"),
        ("POST", "/summary/document/{document}/", {"act": "stop"}),
    ),
    *_doors(
        CORRECTOR,
        ("POST", "/judge/", {"parameters": "q=warden", "hit": "{document}.{chunk}.2"}),
    ),
    *_doors(
        OWN,
        ("POST", "/saved/{saved}/rename/", {"name": "Other"}),
        ("POST", "/saved/{saved}/delete/"),
    ),
]
DOCUMENTS = [
    *_doors(
        MEMBER,
        ("GET", "/documents/"),
        ("GET", f"{SET}/"),
        ("GET", "/runs/"),
        ("GET", "/runs/{run}/"),
        ("GET", "/runs/{run}/events/"),
        ("GET", "/sources/"),
        ("GET", "/sources/{source}/"),
        ("GET", "/dashboard/"),
        ("GET", "/dashboard/quality/"),
        ("GET", "/dashboard/quality/{collection}/"),
    ),
    *_doors(EDITOR, ("POST", "/documents/", {"name": "New"}), ("POST", f"{SET}/move/")),
    *_form(EDITOR, f"{SET}/change/", {"name": "Other"}),
    *_form(EDITOR, f"{SET}/delete/", {}, fine=(400,)),
    *_form(EDITOR, f"{SET}/upload/", {}, fine=(400,)),
    *_form(EDITOR, "/runs/{running}/cancel/", {}),
    *_form(EDITOR, "/sources/new/folder/", {}, fine=(400,)),
    *_form(EDITOR, "/sources/{source}/change/", {}, fine=(400,)),
    *_doors(
        EDITOR,
        ("GET", "/sources/{source}/preview/"),
        ("POST", "/sources/{source}/run/"),
        ("POST", "/sources/{source}/retry/"),
        ("POST", "/sources/{source}/cancel/"),
    ),
    *_form(EDITOR, "/sources/{source}/remove/", {}),
    *_form(EDITOR, "/sources/{source}/webhook/", {"act": "make"}),
    *_doors(
        EDITOR,
        ("POST", "/runs/{failed}/retry/"),
        ("POST", "/dashboard/quality/{collection}/measure/"),
        fine=(409,),
    ),
    *_doors(
        READER,
        ("GET", f"{DOC}/"),
        ("GET", f"{DOC}/download/"),
        ("GET", f"{DOC}/pages/1/image/"),
        ("GET", f"{DOC}/text/"),
        ("GET", f"{DOC}/edits/"),
    ),
    *_doors(READER, ("GET", f"{DOC}/compare/"), fine=(404,)),
    *_form(CORRECTOR, f"{DOC}/change/", {"title": "Other"}, fine=(400,)),
    *_form(CORRECTOR, f"{DOC}/passages/{{chunk}}/", {"text": "Other words."}, fine=(400,)),
    *_form(CORRECTOR, f"{DOC}/delete/", {}),
    *_doors(
        CORRECTOR,
        ("POST", f"{DOC}/edits/{{edit}}/undo/"),
        ("POST", f"{DOC}/edits/{{edit}}/dismiss/"),
    ),
]
TABLES = [
    *_doors(MEMBER, ("GET", "/documents/{collection}/tables/")),
    *_doors(EDITOR, ("POST", "/documents/{collection}/tables/matches/")),
    *_doors(READER, ("GET", "/tables/{table}/"), ("GET", "/tables/{table}/group/")),
    *_doors(CORRECTOR, ("POST", "/tables/{table}/group/change/", {"act": "apart"})),
    *_doors(READER, ("GET", "/tables/rows/?reading={reading}")),
    *_doors(CORRECTOR, ("POST", "/tables/{table}/column/", {"column": "Key", "name": "Other"})),
]
GRAPH = [
    *_doors(
        MEMBER,
        ("GET", "/graph/?node=src:gate"),
        ("GET", "/graph/elements/?node=src:gate"),
        ("GET", "/graph/about/?node=src:gate"),
        ("GET", "/graph/find/?find=gate"),
        ("GET", "/graph/export/"),
        fine=(400, 404),
    ),
    *_doors(READER, ("GET", "/graph/document/{document}/")),
    *_form(EDITOR, "/graph/nodes/new/", {"id": "src:new"}),
    *_form(EDITOR, "/graph/node/?id=src:gate", {"name": "Other"}),
    *_form(EDITOR, "/graph/node/delete/?id=src:gate", {}),
    *_form(EDITOR, "/graph/merge/?id=src:gate&id=src:wall", {}),
    *_form(EDITOR, "/graph/edges/new/", {"source": "src:gate", "rel": "R", "target": "src:wall"}),
    *_form(EDITOR, f"/graph/edge/?{EDGE}", {"weight": "2"}),
    *_form(EDITOR, f"/graph/edge/delete/?{EDGE}", {}),
]
MEMORY = [
    *_form(MEMBER, "/memory/", {"key": "new", "value": "Kiel"}, fine=(400,)),
    *_doors(
        MEMBER,
        ("GET", "/memory/contexts/"),
        ("GET", "/memory/reading/"),
        ("GET", "/memory/storage/"),
        ("GET", "/memory/storage/export/"),
    ),
    *_doors(MEMBER, ("GET", "/memory/said/?said=My"), fine=(404,)),
    *_form(MEMBER, "/memory/storage/erase/", {}, fine=(400,)),
    *_form(OWN, "/memory/facts/{fact}/", {"value": "Kiel"}, fine=(400,)),
    *_form(OWN, "/memory/facts/{fact}/forget/", {}, does_nothing=True),
    *_doors(OWN, ("POST", "/memory/facts/{fact}/end/"), does_nothing=True),
    *_doors(
        OWN,
        ("GET", "/memory/contexts/{context}/"),
        ("POST", "/memory/reading/{extraction}/retry/"),
    ),
    *_form(OWN, "/memory/contexts/{context}/forget/", {}),
]
CHAT = [
    *_doors(LOGGED_IN, ("GET", "/chat/connect/")),
    *_doors(
        MEMBER,
        ("GET", "/chat/"),
        ("GET", "/pipelines/"),
        ("GET", "/pipelines/{pipeline}/"),
        ("GET", "/traces/"),
    ),
    *_doors(
        OWN,
        ("GET", "/chat/{conversation}/"),
        ("GET", "/chat/{conversation}/turns/{message}/"),
        ("GET", "/traces/{trace}/"),
        ("POST", "/traces/{tracing}/cancel/"),
    ),
    *_form(OWN, "/chat/{conversation}/rename/", {"title": "Other"}),
    *_form(OWN, "/chat/{conversation}/delete/", {}),
    *_doors(MEMBER, ("GET", "/databases/")),
    *_form(Who.OWNER, "/databases/new/", {}, fine=(400,)),
    *_form(Who.OWNER, "/databases/{database}/", {"act": "try"}),
    *_form(Who.OWNER, "/databases/{database}/change/", {}, fine=(400,)),
    *_form(Who.OWNER, "/databases/{database}/remove/", {}),
    *_form(EDITOR, "/new-pipeline/", {}, fine=(400,)),
    *_form(EDITOR, "/pipelines/{pipeline}/edit/", {}, fine=(400,)),
    *_form(EDITOR, "/pipelines/{pipeline}/delete/", {}),
    *_doors(
        MEMBER,
        ("POST", "/chat/", {"question": "Which warden?"}),
        ("POST", "/pipelines/{pipeline}/", {"question": "Which warden?"}),
        is_threaded=True,
    ),
    *_doors(
        OWN,
        ("POST", "/chat/{conversation}/", {"question": "And who?"}),
        is_threaded=True,
    ),
]
PEOPLE = [
    *_form(MEMBER, "/keys/", {"name": "n", "scopes": "read"}),
    *_form(OWN, "/keys/{key}/revoke/", {}),
    *_doors(MEMBER, ("GET", "/members/")),
    *_doors(MEMBER, ("GET", "/models/")),
    *_doors(Who.OWNER, ("GET", "/dashboard/models/")),
    *_doors(Who.OWNER, ("POST", "/models/choose/", {"connection": "{connection}"})),
    *_form(Who.OPERATOR, "/models/found/", {}),
    *_form(Who.OWNER, "/models/new/other/", {}, fine=(400,)),
    *_form(Who.OWNER, "/models/{connection}/", {}),
    *_form(Who.OWNER, "/models/{connection}/change/", {}, fine=(400,)),
    *_doors(Who.OPERATOR, ("POST", "/models/{connection}/default/")),
    *_doors(Who.OPERATOR, ("POST", "/models/{connection}/use/", {"collections": "new"})),
    *_form(Who.OWNER, "/models/{connection}/remove/", {}),
    *_doors(Who.OWNER, ("POST", "/members/", {"role": "viewer", "days": "7", "uses": "1"})),
    *_form(Who.OWNER, "/members/{accounts.membership}/", {"role": "owner"}),
    *_form(Who.OWNER, "/members/{accounts.membership}/remove/", {}, fine=(409,)),
    *_form(Who.OWNER, "/groups/new/", {"name": "New"}),
    *_form(Who.OWNER, "/groups/{accounts.workspacegroup}/", {"name": "Other"}),
    *_form(Who.OWNER, "/groups/{accounts.workspacegroup}/delete/", {}),
    *_form(Who.OWNER, "/invitations/{accounts.invitation}/revoke/", {}),
    *_doors(MEMBER, ("POST", "/workspaces/choose/", {"workspace": "{workspace}"})),
    *_doors(LOGGED_IN, ("POST", "/language/", {"language": ""})),
]
#: Second factors are switched off, as they are by default: nobody sets one up.
ACCOUNT = [
    *_doors(
        LOGGED_IN,
        ("GET", "/account/security/"),
        ("POST", "/account/sessions/end-others/"),
    ),
    *_form(LOGGED_IN, "/account/confirm/", {"password": "wrong"}),
    *_form(LOGGED_IN, "/account/password/", {"old_password": "wrong"}, fine=(403,)),
    *_form(LOGGED_IN, "/account/authenticator/", {"code": "1"}, fine=(404,)),
    *_form(LOGGED_IN, "/account/passkeys/new/", {"name": "n"}, fine=(404,)),
    *_form(LOGGED_IN, "/account/recovery-codes/", {}, fine=(404,)),
    *_form(OWN, "/account/factors/{accounts.secondfactor}/remove/", {}, does_nothing=True),
    *_form(OWN, "/account/identities/{accounts.identity}/remove/", {}, does_nothing=True),
    *_doors(OWN, ("POST", "/account/sessions/{accounts.loginsession}/end/")),
]
OPEN = [
    *_form(ANYBODY, "/join/no-such-token/", {}, fine=(404,)),
    *_doors(
        ANYBODY,
        ("GET", "/docs/"),
        ("GET", "/docs/search/?q=warden"),
        ("GET", "/docs/images/architecture.svg"),
        ("GET", "/docs/tutorial/"),
        ("GET", "/texts.js"),
        ("POST", "/logout/"),
    ),
    *_doors(ANYBODY, ("GET", "/admin/login/"), fine=(403,)),
    *_form(ANYBODY, "/login/", {"username": "nobody", "password": "wrong"}),
    *_form(ANYBODY, "/login/second/", {"code": "1"}),
    *_form(ANYBODY, "/login/link/MQ/a-b/", {}, fine=(403, 429)),
    *_doors(
        ANYBODY,
        ("POST", "/login/passkey/", {"answer": "{}"}),
        ("POST", "/login/passkey/begin/"),
        ("GET", "/login/oidc/firm/"),
        ("GET", "/login/oidc/firm/callback/"),
        ("GET", "/login/saml/firm/"),
        ("POST", "/login/saml/firm/answer/", {}),
        ("GET", "/login/saml/firm/finish/"),
        ("GET", "/login/saml/firm/metadata/"),
        fine=(403, 404, 429),
    ),
]

GROUPS: dict[str, list[Door]] = {
    "Search": SEARCHING,
    "Documents, runs and figures": DOCUMENTS,
    "Graph": GRAPH,
    "Tables": TABLES,
    "Memory": MEMORY,
    "Chat, pipelines and traces": CHAT,
    "Keys and workspaces": PEOPLE,
    "Account": ACCOUNT,
    "Login and documentation": OPEN,
}
