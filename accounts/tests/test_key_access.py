"""Requests with an API key: who they are, where they work, and every route against every scope."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient
from rest_framework.views import APIView

from accounts.api_keys import revoke_key
from accounts.authentication import required_scope
from accounts.models import Role, Scope
from accounts.tests.keys import basic_header, client_of_key, client_with, make_key
from documents.tests.factories import (
    PASSWORD,
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)

pytestmark = pytest.mark.django_db
COLLECTIONS = "/api/v1/collections/"
OPEN = {"/api/schema/", "/api/docs/"}
METHODS = ("get", "post", "put", "patch", "delete")


def test_a_key_is_its_user() -> None:
    member = MembershipFactory()
    CollectionFactory(workspace=member.workspace, slug="mine")
    CollectionFactory(slug="not-mine")

    shown = client_of_key(member, "read").get(COLLECTIONS).json()["results"]

    assert [each["slug"] for each in shown] == ["mine"]


def test_what_is_no_key_is_told_so_and_is_not_asked_for_a_password() -> None:
    key, secret = make_key(MembershipFactory())
    revoke_key(key=key)

    for wrong in (secret, "rs_nothing", "", "sk-of-somebody-else"):
        answer = client_with(wrong).get(COLLECTIONS)
        assert answer.status_code == 401
        assert answer.json()["code"] == "authentication_failed"
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_wrong_key_is_not_made_good_by_a_session() -> None:
    client = client_with("rs_nothing")
    client.force_login(MembershipFactory().user)

    assert client.get(COLLECTIONS).status_code == 401


def test_passwords_and_sessions_need_no_scope() -> None:
    member = MembershipFactory()
    session = APIClient()
    session.force_login(member.user)
    password = APIClient(headers=basic_header(member.user.username, PASSWORD))

    for client in (session, password):
        assert client.post(COLLECTIONS, {"name": "New"}).status_code in (201, 409)


def test_a_key_needs_no_csrf_token() -> None:
    _, secret = make_key(MembershipFactory(), "write")
    client = APIClient(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {secret}"})

    assert client.post(COLLECTIONS, {"name": "New"}).status_code == 201


def test_a_key_may_no_more_than_its_user() -> None:
    viewer = MembershipFactory(role=Role.VIEWER)

    answer = client_of_key(viewer).post(COLLECTIONS, {"name": "New"})

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def test_a_missing_scope_is_named() -> None:
    answer = client_of_key(MembershipFactory(), "read", "chat").post(COLLECTIONS, {"name": "New"})

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "“write”" in answer.json()["detail"]
    assert "read, chat" in answer.json()["detail"]


class TestTheWorkspaceOfAKey:
    """Of a user who belongs to two."""

    @pytest.fixture
    def here(self) -> Any:
        return MembershipFactory()

    @pytest.fixture
    def there(self, here: Any) -> Any:
        """Made earlier or later, it is not the key's."""
        return MembershipFactory(user=here.user)

    def test_it_works_in_its_own_without_naming_it(self, here: Any, there: Any) -> None:
        for member in (here, there):
            CollectionFactory(workspace=member.workspace, slug=f"in-{member.workspace.slug}")
        for member in (here, there):
            shown = client_of_key(member, "read").get(COLLECTIONS).json()["results"]
            assert [each["slug"] for each in shown] == [f"in-{member.workspace.slug}"]

    def test_it_may_be_named_and_another_is_not_there(self, here: Any, there: Any) -> None:
        client = client_of_key(here, "read")

        assert client.get(COLLECTIONS, {"workspace": here.workspace.slug}).status_code == 200
        for how in (
            {"data": {"workspace": there.workspace.slug}},
            {"headers": {"X-Workspace": there.workspace.slug}},
        ):
            assert client.get(COLLECTIONS, **how).status_code == 404

    def test_things_of_another_are_not_found_by_their_ids(self, here: Any, there: Any) -> None:
        document = DocumentFactory(collection=CollectionFactory(workspace=there.workspace))
        ChunkFactory(document=document)
        address = f"/api/v1/documents/{document.pk}/"

        assert client_of_key(there, "read").get(address).status_code == 200
        assert client_of_key(here, "read").get(address).status_code == 404
        assert client_of_key(here).delete(address).status_code == 404


# --- every route, every scope ---------------------------------------------------------------------


def routes(patterns: Any = None, prefix: str = "/") -> Iterator[tuple[str, Any]]:
    """Each address of the site with its callback."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        address = prefix + str(pattern.pattern).removeprefix("^").removesuffix(r"\Z")
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                yield from routes(pattern.url_patterns, address)
        elif isinstance(pattern, URLPattern):
            yield address, pattern.callback


def operations() -> list[tuple[str, str, str]]:
    """Method, address and needed scope of everything that the API does."""
    found = []
    for address, callback in routes():
        view_class = getattr(callback, "cls", None)
        if view_class is None or not issubclass(view_class, APIView):
            continue
        if address in OPEN or not view_class.authentication_classes:
            continue  # the description, and what says that nothing is here
        actions = getattr(callback, "actions", None)
        for method in METHODS:
            if method not in (actions or dir(view_class)):
                continue
            view = view_class(**getattr(callback, "initkwargs", {}))
            view.action = actions[method] if actions else None
            found.append((method, address, required_scope(view, method.upper())))
    return sorted(found)


def filled(address: str) -> str:
    """With something in the place of each parameter that is not there."""
    address = re.sub(r"<int:\w+>", "999999999", address)
    return re.sub(r"<[^>]+>", "none", address)


def test_there_are_operations_of_every_part_to_look_at() -> None:
    found = operations()
    assert len(found) > 60
    for part in ("documents", "runs", "search", "store", "memory", "graph", "keys", "v1/chat"):
        assert any(f"/{part}/" in address for _, address, _ in found), part
    assert {scope for *_, scope in found} <= set(Scope.values)


#: Addresses whose every method takes one scope.
PARTS = {
    "/api/v1/memory/": "memory",
    "/api/v1/keys/": "admin",
    "/api/v1/members/": "admin",
    "/api/v1/groups/": "admin",
    "/api/v1/invitations/": "admin",
    "/api/v1/chat/": "chat",
    "/api/v1/conversations/": "chat",
    "/api/v1/traces/": "chat",
    "/v1/": "chat",
    "/v2/": "chat",
}
#: What is posted and changes nothing by itself: questions too long for an address; tools, of which
#: those that write ask for more; and what says whether a definition could be kept.
QUESTIONS = (
    r"/search/$",
    r"/graph/(paths|subgraph|traverse)/$",
    r"/pipelines/check/$",
    r"/tools/<str:name>/$",
    r"^/mcp",
)


#: Where a key that may ask a chat model must be allowed to read, too: what it reads is named.
READS_TOO = ("post", "delete"), "/summary/"


def expected_scope(method: str, address: str) -> str:
    """Said here once more, so that a view cannot take a lesser one unseen."""
    for part, scope in PARTS.items():
        if address.startswith(part):
            return scope
    if address.endswith("/run/") or (address.endswith("/summary/") and method != "get"):
        return "chat"
    if method == "patch" and "/spaces/" in address:  # they belong to the whole site
        return "admin"
    is_question = any(re.search(each, address) for each in QUESTIONS)
    return "read" if method == "get" or (method == "post" and is_question) else "write"


def test_every_operation_takes_the_scope_that_the_manual_says() -> None:
    wrong = {
        (method, address): (needed, expected_scope(method, address))
        for method, address, needed in operations()
        if needed != expected_scope(method, address)
    }
    assert wrong == {}


def test_every_view_of_the_api_asks_for_a_scope() -> None:
    from accounts.authentication import KeyHasScope

    for address, callback in routes():
        view_class = getattr(callback, "cls", None)
        if view_class is None or address in OPEN or not view_class.authentication_classes:
            continue
        assert KeyHasScope in view_class.permission_classes, address


@pytest.mark.parametrize("scope", Scope.values)
def test_a_key_passes_where_it_has_the_scope_and_nowhere_else(scope: str) -> None:
    client = client_of_key(MembershipFactory(), scope)
    client.raise_request_exception = False
    matrix, wrong = [], []
    for method, address, needed in operations():
        answer = getattr(client, method)(filled(address))
        refused = answer.status_code == 403 and "insufficient_scope" in answer.text
        line = f"{scope:6} {method:6} {address:60} needs {needed:6} -> {answer.status_code}"
        matrix.append(line)
        lacks_read = method in READS_TOO[0] and address.endswith(READS_TOO[1])
        if refused == (scope == needed and not lacks_read) or answer.status_code >= 500:
            wrong.append(line)
    assert not wrong, "\n".join(["wrong:", *wrong, "all:", *matrix])
