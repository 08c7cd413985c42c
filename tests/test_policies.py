"""What browsers may do with each kind of answer."""

from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory

from accounts.models import Membership
from common.web import CSP_DATA, CSP_FILES, CSP_HEADER, CSP_PAGES, security_headers
from documents.tests.factories import MembershipFactory, UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice(client: Client) -> Membership:
    member: Membership = MembershipFactory(user=UserFactory(is_superuser=True))
    client.force_login(member.user)
    return member


def directives(answer: Any) -> dict[str, list[str]]:
    parts = (part.split() for part in answer.headers[CSP_HEADER].split(";"))
    return {name: values for name, *values in parts}


@pytest.mark.parametrize(
    "path", ["/", "/login/", "/docs/", "/chat/", "/graph/", "/keys/", "/none/", "/admin"]
)
def test_a_page_has_no_inline_code_and_asks_no_other_site(path: str, client: Client) -> None:
    assert client.get(path, follow=True).headers[CSP_HEADER] == CSP_PAGES
    assert "unsafe" not in CSP_PAGES


def test_a_refused_form_is_a_page_like_any_other() -> None:
    refused = Client(enforce_csrf_checks=True).post("/login/")
    assert (refused.status_code, refused.headers[CSP_HEADER]) == (403, CSP_PAGES)


@pytest.mark.parametrize("path", ["/admin/", "/admin/documents/document/"])
def test_the_admin_may_write_styles_and_make_functions(
    path: str, client: Client, alice: Membership
) -> None:
    said = directives(client.get(path))
    assert said["script-src"] == ["'self'", "'unsafe-eval'"]
    assert said["style-src"] == ["'self'", "'unsafe-inline'"]
    assert said["default-src"] == ["'self'"]
    assert said["frame-ancestors"] == said["base-uri"] == said["object-src"] == ["'none'"]


@pytest.mark.parametrize("path", ["/api/v1/collections/", "/api/none/", "/v1/models", "/mcp"])
def test_an_answer_to_a_program_does_nothing(path: str, client: Client) -> None:
    assert client.get(path).headers[CSP_HEADER] == CSP_DATA


def test_the_page_to_try_the_api_has_no_inline_code(client: Client) -> None:
    said = directives(client.get("/api/docs/"))
    assert "script-src" not in said
    assert said["default-src"] == ["'self'"]


def test_what_is_taken_along_is_shut_in(client: Client, alice: Membership) -> None:
    taken = client.get("/memory/storage/export/")
    assert taken.headers["Content-Disposition"].startswith("attachment")
    assert taken.headers[CSP_HEADER] == CSP_FILES
    assert CSP_FILES.endswith("sandbox")


def test_a_drawing_may_have_style_and_nothing_else(client: Client) -> None:
    said = directives(client.get("/docs/images/architecture.svg"))
    assert said["default-src"] == ["'none'"]
    assert said["style-src"] == ["'unsafe-inline'"]
    assert "sandbox" in said


@pytest.mark.parametrize("path", ["/login/", "/api/v1/collections/", "/none/", "/mcp"])
def test_every_answer_tells_browsers_what_else_to_leave(path: str, client: Client) -> None:
    headers = client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"].split(", ")


@pytest.mark.parametrize(("debug", "status", "fenced"), [(True, 500, False), (True, 200, True)])
def test_a_developer_sees_the_page_with_the_source(
    debug: bool, status: int, fenced: bool, settings: Any
) -> None:
    settings.DEBUG = debug
    answer = security_headers(lambda request: HttpResponse(status=status))(
        RequestFactory().get("/")
    )
    assert (CSP_HEADER in answer.headers) == fenced
