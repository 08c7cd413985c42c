"""The declared doors are all that there are: a new address, tool, method or admin page has to say
who may come in."""

from typing import Any

import pytest
from django.test import Client, RequestFactory, override_settings
from django.test.client import MULTIPART_CONTENT
from django.urls import resolve

from accounts.authentication import KeyHasScope, required_scope
from accounts.models import Membership
from documents.tests.factories import MembershipFactory, UserFactory
from rag.tools import TOOLS
from tests.access import doors_admin, doors_tools, inventory
from tests.access.policy import Who
from tests.access.report import DOORS
from tests.access.telling import PAGE, page
from tests.access.walking import UNHURRIED

pytestmark = pytest.mark.doors
#: Addresses that nothing is behind: they answer 404, or what Django's own pages do.
NOTHING_BEHIND = {"api/", "^v[12]/", "admin/(?P<url>.*)$"}
#: Pages whose views take any method and look at it themselves.
_ADMIN = "admin/"


def declared() -> set[tuple[str, str]]:
    return {(door.method, inventory.route_of(_with_numbers(door.path))) for door in DOORS}


def _with_numbers(path: str) -> str:
    """As if the things of the braces were there."""
    for name in ("collection", "pipeline", "fact"):
        path = path.replace(f"{{{name}}}", "a")
    before, *rest = path.split("{")
    return before + "".join("1" + each.partition("}")[2] for each in rest)


def test_every_address_is_declared() -> None:
    known = {route for _, route in declared()}
    missing = {
        route
        for route in inventory.routes() - known - NOTHING_BEHIND
        if not route.startswith("admin/^(?P<app_label>")
    }
    assert not missing, f"tests/access/ does not say who may come in: {sorted(missing)}"


def test_every_operation_of_the_api_is_declared() -> None:
    missing = inventory.operations() - declared()
    assert not missing, sorted(missing)


def test_every_view_asks_for_the_scope_of_its_door() -> None:
    asked = 0
    for door in DOORS:
        match = resolve(_with_numbers(door.path).partition("?")[0])
        view_class = getattr(match.func, "cls", None)
        if view_class is None or not view_class.authentication_classes:
            continue
        view = view_class(**getattr(match.func, "initkwargs", {}))
        view.kwargs = match.kwargs
        actions = getattr(match.func, "actions", None)
        view.action = actions[door.method.lower()] if actions else None
        if door.who is not Who.ANYBODY:
            assert KeyHasScope in view.permission_classes, door.name
            assert required_scope(view, door.method) in door.scope.split("+"), door.name
            asked += 1
    assert asked > 100


@pytest.mark.django_db
@override_settings(**UNHURRIED)
def test_whatever_changes_something_with_a_session_needs_its_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(UserFactory(is_superuser=True))
    doors = {(door.method, door.path): door.is_form for door in DOORS if door.method != "GET"}
    asked = {
        (method, path): client.generic(
            method,
            _with_numbers(path),
            content_type=MULTIPART_CONTENT if is_form else "application/json",
        )
        for (method, path), is_form in doors.items()
    }
    taken = {path for (_, path), answer in asked.items() if answer.status_code not in (401, 403)}
    # What an identity provider posts is signed instead.
    assert taken == {"/login/saml/firm/answer/"}
    assert len(doors) > 200


@pytest.mark.django_db
def test_methods_that_are_not_declared_are_refused() -> None:
    owner: Membership = MembershipFactory()
    client = Client(raise_request_exception=False)
    client.force_login(owner.user)
    known = declared()
    tried = 0
    for door in {inventory.route_of(_with_numbers(each.path)): each for each in DOORS}.values():
        path = _with_numbers(door.path)
        route = inventory.route_of(path)
        if route.startswith(_ADMIN):
            continue
        for method in inventory.METHODS:
            if (method, route) in known:
                continue
            answer = getattr(client, method.lower())(path)
            refused = (302, 401, 404, 405) if route == "login/" else (401, 404, 405)
            assert answer.status_code in refused, (method, path, answer.status_code)
            tried += 1
    assert tried > 100


def test_every_tool_and_method_is_declared() -> None:
    assert set(doors_tools.TOOLS) == set(TOOLS)
    # what the SDK answers itself, of versions alone
    ours = inventory.mcp_methods() - {"server/discover"}
    assert ours <= {*doors_tools.METHODS, "tools/call"}
    assert len(ours) > 5


@pytest.mark.django_db
def test_every_model_of_the_admin_is_declared_with_its_rights() -> None:
    there = inventory.admin_models()
    assert set(there) == set(doors_admin.MODELS)
    request: Any = RequestFactory().get("/admin/")
    request.user = UserFactory(is_staff=True, is_superuser=True)
    for label, rights in doors_admin.MODELS.items():
        of_model = there[label]
        named = set(of_model.get_actions(request)) - {"delete_selected"}
        assert named == {name for name, _ in rights.actions}, label
        assert not of_model.actions_submit_line, label
        assert of_model.has_add_permission(request) is rights.add, label
        assert of_model.has_change_permission(request) is rights.change, label


def test_the_page_of_the_reference_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "Write it anew: python -m tests.access"
