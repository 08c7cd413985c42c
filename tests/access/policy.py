"""What is said of a door, and whom it lets in. Nothing here asks the site."""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Who(Enum):
    """Whom a door lets in; the value is how the documentation says it."""

    ANYBODY = "anybody"
    LOGGED_IN = "whoever is logged in"
    MEMBER = "members"
    EDITOR = "editors, owners"
    READER = "members on the access list"
    CORRECTOR = "editors and owners on the access list"
    OWNER = "owners"
    OWN = "the user alone"
    STAFF = "staff"
    OPERATOR = "the operator of the site, in a workspace of their own"


@dataclass(frozen=True, slots=True)
class Door:
    """One method of one address. What stands in braces is a thing of workspace A.

    `scope` is what an API key needs; without one, keys are strangers here. `body` is JSON, or a
    form where `is_form`; `fine` are statuses that say nothing of rights, such as 409 for what
    cannot be done twice. `is_threaded`: other threads answer, which see only what is committed.
    `permission` is what staff need; `does_nothing` marks doors that answer those without rights as
    they do everybody else, and then do nothing. `is_for_keys`: a session opens nothing.
    """

    method: str
    path: str
    who: Who
    scope: str = ""
    body: Any = None
    is_form: bool = False
    fine: tuple[int, ...] = ()
    is_threaded: bool = False
    permission: str = ""
    does_nothing: bool = False
    told: str = ""
    tool: str = ""
    is_for_keys: bool = False

    @property
    def name(self) -> str:
        """As failures and the matrix call it."""
        return f"{self.method} {self.told or self.path}"

    @property
    def is_of_a_thing(self) -> bool:
        """Whether it names something of workspace A."""
        return "{" in self.path or "{" in _braces(self.body)

    @property
    def is_of_the_collection(self) -> bool:
        """Whether it names something that is in the collection of workspace A."""
        if "/graph/edges/?" in self.path or self.tool == "completion/complete":
            return False  # which list what there is: nothing
        named = (self.path + _braces(self.body)).replace("{pipeline}", "")
        return any(mark in named for mark in ("{", "src:gate", "private.md", "notes"))


def _braces(body: Any) -> str:
    """Every text in it."""
    if isinstance(body, dict):
        return "".join(_braces(value) for value in body.values())
    if isinstance(body, list | tuple):
        return "".join(map(_braces, body))
    return body if isinstance(body, str) else ""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody at a door. `role` is theirs in workspace A, empty for others; `scopes` are None for
    people. `permissions` are in the admin: nothing, to look, or all."""

    name: str
    role: str = ""
    is_known: bool = True
    has_home: bool = False
    scopes: frozenset[str] | None = None
    is_listed: bool = True
    permissions: str = ""
    is_staff: bool = False
    is_owner_of_things: bool = False
    #: The key is limited to a collection in which there is nothing.
    is_limited: bool = False

    @property
    def is_key(self) -> bool:
        return self.scopes is not None


ALL_SCOPES = frozenset({"read", "write", "memory", "chat", "admin"})


def _key(name: str, *scopes: str, **fields: Any) -> Actor:
    given = {"role": "owner", "is_owner_of_things": True, **fields}
    return Actor(name, scopes=frozenset(scopes), **given)


ACTORS = (
    Actor("anonymous", is_known=False),
    Actor("stranger"),
    Actor("outsider", has_home=True),
    Actor("viewer", "viewer"),
    Actor("unlisted", "editor", is_listed=False),
    Actor("editor", "editor"),
    Actor("owner", "owner", is_owner_of_things=True),
    Actor("staff", is_staff=True),
    Actor("looker", is_staff=True, permissions="view"),
    Actor("curator", is_staff=True, permissions="all"),
    Actor("superuser", is_staff=True, permissions="all"),
    *(_key(f"key:{scope}", scope) for scope in ("read", "write", "memory", "chat", "admin")),
    _key("key:all", *ALL_SCOPES),
    _key("key:unlisted", *ALL_SCOPES, role="editor", is_listed=False, is_owner_of_things=False),
    _key("key:viewer", *ALL_SCOPES, role="viewer", is_owner_of_things=False),
    _key("key:revoked", *ALL_SCOPES, is_known=False),
    _key("key:expired", *ALL_SCOPES, is_known=False),
    _key("key:elsewhere", *ALL_SCOPES, is_limited=True),
    _key("key:B", *ALL_SCOPES, role="", has_home=True, is_owner_of_things=False),
)

EDITING = ("editor", "owner")

#: Doors that a key limited to collections may come through, as method and path. All others belong
#: to the whole workspace.
OPEN_TO_LIMITED_KEYS = re.compile(
    r"(GET|POST) /api/v1/(search|facets|filters|summary|documents|chunks|edits|runs|tables|tools)/"
    r"|(GET|PATCH|DELETE) /api/v1/(documents|chunks|tables)/"
    r"|DELETE /api/v1/summary/"
    r"|(GET|PATCH|DELETE) /api/v1/collections/|[A-Z]+ /api/v1/collections/[^/]+/"
    r"|GET /api/v1/(graph|spaces|models)/"
    r"|POST /api/v1/graph/(traverse|paths|subgraph)/"
    r"|POST /api/v1/(chat/|pipelines/check/|pipelines/[^/]+/run/)"
    r"|[A-Z]+ (/v1/|/v2/|/mcp)"
)


def is_known(door: Door, actor: Actor) -> bool:
    """Whether the door takes the actor for somebody."""
    return actor.is_known and (actor.is_key or not door.is_for_keys)


def _lacks_scope(door: Door, actor: Actor) -> bool:
    return actor.is_key and not set(door.scope.split("+")) <= (actor.scopes or frozenset())


def _is_open_to_limited_keys(door: Door) -> bool:
    is_of_workspace = "memory" in door.scope or door.tool == "graph_upsert"
    return not is_of_workspace and bool(OPEN_TO_LIMITED_KEYS.match(f"{door.method} {door.path}"))


def _is_in_own_workspace(door: Door, actor: Actor) -> bool:
    return door.is_form and actor.has_home and not door.is_of_a_thing


def is_let_in(door: Door, actor: Actor) -> bool:
    """Whether the policy lets the actor through the door."""
    if door.who is Who.ANYBODY:
        return True
    if not is_known(door, actor) or _lacks_scope(door, actor):
        return False
    if actor.is_limited and (not _is_open_to_limited_keys(door) or door.is_of_the_collection):
        return False
    if door.who is Who.LOGGED_IN:
        return bool(actor.role) or not actor.is_key  # a key knows no other workspace than its own
    if door.who is Who.STAFF:
        return actor.is_staff and _is_permitted(door, actor)
    return _is_member_let_in(door, actor)


def _is_permitted(door: Door, actor: Actor) -> bool:
    wanted = door.permission
    if wanted in ("", "view"):
        return not wanted or bool(actor.permissions)
    return wanted != "never" and actor.permissions == "all"


def _is_member_let_in(door: Door, actor: Actor) -> bool:
    if _is_in_own_workspace(door, actor) and door.who is not Who.OPERATOR:
        return True
    if not actor.role or door.who is Who.OPERATOR:
        return False  # the superuser here is no member of anything
    if door.who in (Who.EDITOR, Who.CORRECTOR) and actor.role not in EDITING:
        return False
    if door.who is Who.OWNER and actor.role != "owner":
        return False
    if door.who in (Who.READER, Who.CORRECTOR) and not actor.is_listed:
        return False
    return door.who is not Who.OWN or actor.is_owner_of_things


def refusals(door: Door, actor: Actor) -> tuple[int, ...]:
    """The statuses by which the site's rule turns this actor away from a door of the API or of a
    page: 401 for nobody, 404 for what one may not see, 403 for what one sees and may not do."""
    if not is_known(door, actor):
        return (401,)
    if _lacks_scope(door, actor):
        return (403,)
    if actor.is_limited and door.who is not Who.STAFF:
        is_continued = "{conversation}" in _braces(door.body)
        return (404,) if _is_open_to_limited_keys(door) and not is_continued else (403,)
    if door.who is Who.CORRECTOR and actor.role == "viewer" and not actor.is_listed:
        return (403, 404)  # whatever is looked at first
    hides_thing = (
        door.method == "GET"
        and door.is_of_a_thing
        and not door.is_form
        and door.who is not Who.OWNER
    )
    # Staff and owners manage what has no document's list.
    is_unlisted = not actor.is_listed and door.who not in (Who.STAFF, Who.OWNER)
    is_stranger = not actor.role and not _is_in_own_workspace(door, actor)
    if is_stranger or door.who is Who.OWN or is_unlisted or hides_thing:
        return (404,)
    return (403,)
