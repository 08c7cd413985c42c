"""The doors of the admin, of which each model has the same ones: declared are its rights.

Nobody may do there what is not named here, superusers included.
"""

from dataclasses import dataclass

from tests.access.policy import Door, Who


@dataclass(frozen=True, slots=True)
class Rights:
    """What staff with every permission may do with a model's rows, and the permissions that its
    actions need."""

    add: bool = False
    change: bool = False
    delete: bool = False
    actions: tuple[tuple[str, str], ...] = ()


NOTHING = Rights()
ALL = Rights(add=True, change=True, delete=True)
DELETE = Rights(delete=True)
AGAIN = (("read_again", "change"), ("embed_again", "change"), ("export", "view"))

MODELS: dict[str, Rights] = {
    "accounts.user": ALL,
    "auth.group": ALL,
    "accounts.workspace": Rights(add=True, change=True),  # deleted when empty only
    "accounts.membership": ALL,
    "accounts.apikey": Rights(delete=True, actions=(("revoke", "change"),)),
    "accounts.workspacegroup": NOTHING,
    "accounts.groupmember": DELETE,
    "accounts.invitation": Rights(actions=(("revoke", "change"),)),
    "accounts.idempotencyrecord": NOTHING,
    "accounts.change": NOTHING,
    "accounts.identity": DELETE,
    "accounts.secondfactor": DELETE,
    "accounts.loginsession": DELETE,
    "documents.chunk": NOTHING,
    "documents.collection": Rights(delete=True, actions=AGAIN),
    "documents.document": Rights(delete=True, actions=(*AGAIN, ("prune_versions", "delete"))),
    "documents.stageddocument": NOTHING,
    "documents.stagedvectors": NOTHING,
    "documents.scannedpage": NOTHING,
    "documents.chunkedit": Rights(actions=(("undo", "change"), ("dismiss", "change"))),
    "documents.ingestionrun": Rights(actions=(("cancel", "change"), ("retry", "change"))),
    "documents.ingestionitem": NOTHING,
    "documents.embeddingspace": Rights(
        add=True, change=True, actions=(("reembed", "change"), ("build_index", "change"))
    ),
    "documents.reembedding": Rights(actions=(("stop", "change"), ("go_on", "change"))),
    "documents.lexicalsegment": NOTHING,
    "model_servers.modelconnection": NOTHING,
    "model_servers.workspacemodel": NOTHING,
    "model_servers.modelusage": NOTHING,
    "sources.datasource": NOTHING,
    "sources.datasourceitem": NOTHING,
    "sources.datasourcerun": NOTHING,
    "sources.datasourcenotice": NOTHING,
    "memory.context": DELETE,
    "memory.extractionitem": Rights(actions=(("try_again", "change"),)),
    "memory.fact": Rights(delete=True, actions=(("clear", "change"),)),
    "memory.pruning": NOTHING,
    "tables.table": NOTHING,
    "tables.tablegroup": NOTHING,
    "tables.tablelayout": Rights(
        actions=(("accept_suggestions", "change"), ("refuse_suggestions", "change"))
    ),
    "graph.alias": DELETE,
    "graph.node": Rights(delete=True, actions=(("merge_selected", "change"),)),
    "graph.edge": DELETE,
    "graph.extraction": Rights(actions=(("try_again", "change"), ("read_again", "change"))),
    "search.evaluation": DELETE,
    "search.evaluatedquestion": NOTHING,
    "search.judgement": ALL,
    "search.searchlog": DELETE,
    "search.savedsearch": DELETE,
    "rag.conversation": NOTHING,
    "rag.message": NOTHING,
    "rag.span": NOTHING,
    "rag.summary": NOTHING,
    "rag.pipeline": NOTHING,
    "rag.databaseconnection": NOTHING,
    "rag.trace": NOTHING,
    "dashboard.sample": NOTHING,
}


def _door(method: str, path: str, permission: str, body: object = None, **more: object) -> Door:
    return Door(
        method,
        path,
        Who.STAFF,
        "",
        body,
        is_form=True,
        permission=permission,
        **more,  # type: ignore[arg-type]
    )


def of_model(label: str, rights: Rights) -> list[Door]:
    """Every page of the model's, and each of its actions."""
    base = f"/admin/{label.replace('.', '/')}/"
    row = f"{base}{{{label}}}/"
    add, change, delete = (
        name if given else "never"
        for name, given in (
            ("add", rights.add),
            ("change", rights.change),
            ("delete", rights.delete),
        )
    )
    doors = [
        _door("GET", base, "view"),
        _door("GET", f"{base}add/", add),
        _door("POST", f"{base}add/", add, {}),
        _door("GET", row, ""),
        _door("GET", f"{row}change/", "view"),
        _door("POST", f"{row}change/", change, {}),
        _door("GET", f"{row}delete/", delete),
        _door("POST", f"{row}delete/", delete, {"post": "yes"}),
        _door("GET", f"{row}history/", "view"),
    ]
    for name, permission in (("delete_selected", delete), *rights.actions):
        body = {"action": name, "_selected_action": f"{{{label}}}"}
        told = f"{base} {name}"
        doors.append(_door("POST", base, permission, body, does_nothing=True, told=told))
    return doors


OTHERS = [
    _door("GET", "/admin/", ""),
    _door("GET", "/admin/search/?s=warden", ""),
    *(_door("GET", f"/admin/{app}/", "view") for app in ("accounts", "documents", "rag")),
    _door("GET", "/admin/password_change/", ""),
    _door("GET", "/admin/password_change/done/", ""),
    _door("GET", "/admin/jsi18n/", ""),
    _door(
        "GET",
        "/admin/autocomplete/?app_label=accounts&model_name=membership&field_name=user&term=a",
        "view",
    ),
    _door("GET", "/admin/r/{content_type}/{documents.document}/", "", fine=(404,)),
    _door("GET", "/admin/accounts/user/{accounts.user}/password/", "change"),
    _door("GET", "/admin/search/searchlog/open-questions/", "view"),
    _door("GET", "/admin/nothing-here/", "", fine=(404,)),
]
ANYBODYS = [Door("POST", "/admin/logout/", Who.ANYBODY, is_form=True)]

GROUPS: dict[str, list[Door]] = {
    "Admin": [*OTHERS, *ANYBODYS],
    **{f"Admin: {label}": of_model(label, rights) for label, rights in MODELS.items()},
}
