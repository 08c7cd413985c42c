"""What holds for every page: errors are pages too, and nothing is written inline."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from psycopg.errors import AdminShutdown
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from documents.tests.factories import CollectionFactory, MembershipFactory, UserFactory

TEMPLATES = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))
INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.I)
ELSEWHERE = re.compile(r"""(?:src|href|action)=["'](?:https?:)?//""", re.I)


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a mistake")


def without_database(request: HttpRequest) -> HttpResponse:
    raise OperationalError("connection refused")


class CutOff(APIView):
    authentication_classes = []
    permission_classes = []

    def get(self, request: Request) -> Response:
        raise AdminShutdown("terminating connection")


urlpatterns = [
    path("api/without-database/", CutOff.as_view()),
    path("", include("ragsite.urls")),
    path("broken/", broken),
    path("without-database/", without_database),
]
handler500 = "ragsite.views.server_error"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda file: file.name)
def test_a_template_has_no_inline_code_or_style_and_calls_no_other_site(template: Path) -> None:
    text = template.read_text()

    assert not INLINE.findall(text)
    assert not ELSEWHERE.findall(text)


def test_there_are_templates_to_look_at() -> None:
    assert len(TEMPLATES) > 20


@pytest.mark.parametrize(
    "name",
    [
        "css/site.css",
        "css/memory.css",
        "css/rag.css",
        "css/pipelines.css",
        "js/site.js",
        "vendor/htmx.min.js",
        "icons.svg",
    ],
)
def test_static_files_call_no_other_site(name: str) -> None:
    text = Path(settings.BASE_DIR, "static", name).read_text()

    assert not re.findall(r"url\(|@import|(?:src|href)=[\"']https?:", text)


def test_every_icon_that_a_template_names_is_there() -> None:
    named = {
        name
        for template in TEMPLATES
        for name in re.findall(r'{% (?:icon|way) "([a-z]+)"', template.read_text())
    }
    drawn = set(
        re.findall(r'symbol id="([a-z]+)"', Path(settings.BASE_DIR, "static/icons.svg").read_text())
    )

    assert named == drawn


@pytest.mark.django_db
def test_an_address_that_is_not_there_gets_a_page_of_ours(client: Client) -> None:
    stranger = client.get("/nope/")
    client.force_login(MembershipFactory().user)
    member = client.get("/nope/")

    assert (stranger.status_code, member.status_code) == (404, 404)
    assert "Not found" in stranger.text
    assert 'role="search"' not in stranger.text
    assert 'role="search"' in member.text


@pytest.mark.urls("tests.test_pages")
def test_a_mistake_of_the_site_gets_a_page_that_needs_no_database() -> None:
    # Without the django_db mark every query fails, as it would with the server down.
    answer = Client(raise_request_exception=False).get("/broken/")

    assert answer.status_code == 500
    assert "An error occurred" in answer.text


@pytest.mark.urls("tests.test_pages")
def test_a_database_that_is_away_is_no_mistake_of_the_site() -> None:
    answer = Client(raise_request_exception=False).get("/without-database/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer["Refresh"] == "5"  # the browser loads the page again by itself
    assert "The database does not respond" in answer.text
    assert "reloads every 5 seconds" in answer.text
    assert "An error occurred" not in answer.text


@pytest.mark.urls("tests.test_pages")
def test_a_form_that_the_database_missed_is_not_sent_again_by_itself() -> None:
    answer = Client(raise_request_exception=False).post("/without-database/")

    assert (answer.status_code, "Refresh" in answer) == (503, False)
    assert "may not have been stored" in answer.text


@pytest.mark.urls("tests.test_pages")
def test_programs_are_told_when_to_ask_a_database_again_that_is_away() -> None:
    answer = Client(raise_request_exception=False).get("/api/without-database/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "database_unavailable"


@pytest.mark.django_db
def test_who_belongs_nowhere_is_told_whom_to_ask(client: Client) -> None:
    client.force_login(UserFactory(username="dora"))
    page = client.get("/chat/").text
    assert "You are not in a workspace yet" in page
    assert "dora" in page
    assert "/admin/" not in page

    client.force_login(UserFactory(is_superuser=True))
    assert "/admin/accounts/membership/add/" in client.get("/chat/").text


@pytest.mark.django_db
def test_times_are_relative_with_the_exact_one_on_hover(client: Client) -> None:
    member = MembershipFactory()
    CollectionFactory(workspace=member.workspace)
    client.force_login(member.user)

    text = client.get("/documents/").text
    found: Any = re.search(r'<time datetime="[^"]+" title="([^"]+)">([^<]+)', text)
    assert re.fullmatch(r"\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC", found[1])
    assert found[2] == "now"
