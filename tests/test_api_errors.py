"""Whatever a stranger sends, the API answers in one shape, and never with a 500."""

import json
from base64 import b64encode
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from common.parsers import MAX_JSON_BYTES
from documents.tests.factories import CollectionFactory, MembershipFactory
from tests.kit import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
COLLECTIONS = "/api/v1/collections/"
DOCUMENTS = "/api/v1/documents/"
SEARCH = "/api/v1/search/"
MEMORY = "/api/v1/memory/"


@pytest.fixture
def client() -> APIClient:
    member = MembershipFactory()
    CollectionFactory(workspace=member.workspace, slug="notes")
    return client_of(member)


def post(client: Client, url: str, body: bytes, content_type: str = "application/json") -> Any:
    return client.generic("POST", url, body, content_type=content_type)


def assert_shaped(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    body: dict[str, Any] = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert body["errors"]
    for fault in body["errors"]:
        assert set(fault) == {"code", "detail", "attr"}
    assert (body["code"], body["detail"]) == (
        body["errors"][0]["code"],
        body["errors"][0]["detail"],
    )
    return body


def test_every_fault_of_a_request_is_told_at_once(client: APIClient) -> None:
    body = assert_shaped(client.get(SEARCH, {"k": 0, "mode": "magic"}), 400)
    assert body["type"] == "validation_error"
    assert {fault["attr"] for fault in body["errors"]} == {"q", "k", "mode"}


def test_a_wrong_choice_is_told_those_that_there_are(client: APIClient) -> None:
    body = assert_shaped(client.get(SEARCH, {"q": "key", "mode": "{magic}"}), 400)
    assert (body["code"], body["errors"][0]["attr"]) == ("invalid_choice", "mode")
    assert "“{magic}”" in body["detail"]
    assert "hybrid, lexical, vector, graph" in body["detail"]


def test_a_list_that_is_too_long_is_refused_before_its_entries_are_looked_at(
    client: APIClient,
) -> None:
    document = {"collection": "notes", "key": "k", "text": "words", "access": [[]] * 40_000}
    body = assert_shaped(post(client, DOCUMENTS, json.dumps(document).encode()), 400)
    (fault,) = body["errors"]
    assert (fault["attr"], fault["code"]) == ("access", "max_length")
    assert "100" in fault["detail"]


def test_of_many_unknown_names_some_are_told(client: APIClient) -> None:
    names = {f"k{number}": 1 for number in range(20_000)}
    body = assert_shaped(post(client, SEARCH, json.dumps(names).encode()), 400)
    assert len(body["errors"]) == 20


def test_a_method_that_is_not_taken_is_told_those_that_are(client: APIClient) -> None:
    for method in ("PUT", "OPTIONS"):
        answer = client.generic(method, f"{COLLECTIONS}notes/")
        body = assert_shaped(answer, 405)
        assert body["detail"] == f"This address takes {answer.headers['Allow']}."
        assert method not in answer.headers["Allow"]


@pytest.mark.parametrize("said", ["application/x-www-form-urlencoded", ""])
def test_a_body_of_another_type_is_told_which_to_send(client: APIClient, said: str) -> None:
    body = assert_shaped(post(client, COLLECTIONS, b'{"name": "x"}', said), 415)
    assert said in body["detail"]
    assert "Send application/json" in body["detail"]
    assert "Content-Type" in body["detail"]


def test_what_is_not_there_is_named(client: APIClient) -> None:
    for address, name in (
        (f"{COLLECTIONS}nope/", "collection “nope”"),
        (f"{DOCUMENTS}7777/", "document “7777”"),
        ("/api/v1/runs/7777/items/", "ingestion run “7777”"),
    ):
        body = assert_shaped(client.get(address), 404)
        assert body["detail"] == f"There is no {name}, or you may not see it."
        assert (body["type"], body["errors"][0]["attr"]) == ("client_error", None)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'"text"',
        b"\xff\xfe",
        b'{"q": "\xc3\x28"}',
        b'{"q": "a", "k": NaN}',
        b'{"q": "a", "k": Infinity}',
        b'{"q": "a", "k": 1e999}',
        b'{"q": "a", "k": ' + b"9" * 5000 + b"}",
        b'{"q": "\\ud800"}',
        b'{"q": "\\u0000"}',
        b'{"\\u0000": 1}',
        b'{"q":' + b"[" * 100_000,
        b'{"q":' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"q": [' + b"1," * 60_000 + b"1]}",
    ],
    ids=lambda body: repr(body[:30]),
)
def test_json_that_cannot_be_is_refused(client: APIClient, body: bytes) -> None:
    assert_shaped(post(client, SEARCH, body), 400)


def test_json_that_is_too_large_is_refused_before_it_is_parsed(client: APIClient) -> None:
    body = assert_shaped(post(client, SEARCH, b'{"q": "' + b"x" * MAX_JSON_BYTES), 413)
    assert body["code"] == "too_large"


BOUNDARY = "multipart/form-data; boundary=b"


def part(disposition: bytes, body: bytes = b"x") -> bytes:
    return b"--b\r\nContent-Disposition: form-data; " + disposition + b"\r\n\r\n" + body + b"\r\n"


NOTES = part(b'name="collection"', b"notes")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", BOUNDARY),
        (b"--b--", "multipart/form-data"),
        (b"garbage", BOUNDARY),
        (b"--b\r\n\r\n", BOUNDARY),
        (NOTES, BOUNDARY),
        (NOTES + part(b'name="files"; filename=""') + b"--b--", BOUNDARY),
        (NOTES + part(b'name="files\xff"; filename="a"') + b"--b--", BOUNDARY),
        (NOTES + part(b'name="files\x00"; filename="a"') + b"--b--", BOUNDARY),
        (part(b'name="collection"', b"\xff\x00") + b"--b--", BOUNDARY),
        (b"".join(part(b'name="f%d"' % n) for n in range(3000)) + b"--b--", BOUNDARY),
        (b"".join(part(b'name="files"; filename="a"') for _ in range(1200)) + b"--b--", BOUNDARY),
        (NOTES + part(b'name="metadata"', b"[" * 200_000) + b"--b--", BOUNDARY),
        (
            b"--b\r\nContent-Disposition: form-data; name=a\r\n"
            b"Content-Transfer-Encoding: base64\r\n\r\n!!!\r\n--b--",
            BOUNDARY,
        ),
    ],
)
def test_broken_forms_are_refused(client: APIClient, body: bytes, content_type: str) -> None:
    assert_shaped(post(client, DOCUMENTS, body, content_type), 400)


def test_form_fields_that_are_too_large_are_refused(client: APIClient) -> None:
    form = part(b'name="metadata"', b"x" * 3_000_000) + b"--b--"
    assert_shaped(post(client, DOCUMENTS, form, BOUNDARY), 413)


@pytest.mark.parametrize(
    "name", [b"\xff\xfe.txt", b"a\x00b.txt", b"a/../../b.txt", b"n" * 5000 + b".txt", b"\x1f.txt"]
)
def test_strange_names_of_files_do_no_harm(client: APIClient, name: bytes) -> None:
    form = NOTES + part(b'name="files"; filename="' + name + b'"', b"A text.") + b"--b--"
    answer = post(client, DOCUMENTS, form, BOUNDARY)
    assert answer.status_code in (202, 400)


def test_an_answer_of_another_type_than_there_is_is_not_given(client: APIClient) -> None:
    assert_shaped(client.get(COLLECTIONS, HTTP_ACCEPT="text/csv"), 406)


@pytest.mark.parametrize("url", [SEARCH, f"{MEMORY}search/", f"{MEMORY}facts/", COLLECTIONS])
def test_a_head_is_a_get_without_the_answer(client: APIClient, url: str) -> None:
    for parameters in ({}, {"q": "words"}, {"query": "words"}, {"page_size": "1"}):
        head, get = client.head(url, parameters), client.get(url, parameters)
        assert (head.status_code, head.content) == (get.status_code, b"")
        assert get.status_code in (200, 400)


@pytest.mark.parametrize(
    "credentials", [b"a\x00:b", b"a:b\x00", b"\xff\xfe:\xff", b"nobody", b"", b":" * 9000]
)
def test_strange_credentials_are_not_accepted(credentials: bytes) -> None:
    header = "Basic " + b64encode(credentials).decode()
    assert_shaped(APIClient().get(COLLECTIONS, HTTP_AUTHORIZATION=header), 401)


@pytest.mark.parametrize("header", ["Basic", "Basic a b", "Basic ===", "Bearer x", "\u00ff", ""])
def test_strange_authorization_is_not_accepted(header: str) -> None:
    assert_shaped(APIClient().get(COLLECTIONS, HTTP_AUTHORIZATION=header), 401)


@pytest.mark.parametrize("url", [COLLECTIONS, "/", "/admin/"])
@pytest.mark.parametrize(
    "cookie", ['sessionid="aaaaaaaaaaaa\\000"', 'csrftoken="\\000"', "sessionid=\xff\xff"]
)
def test_strange_cookies_are_nobody(url: str, cookie: str) -> None:
    answer = APIClient().get(url, HTTP_COOKIE=cookie)
    assert answer.status_code == (401 if url == COLLECTIONS else 302)


@pytest.mark.parametrize("slug", ["no such", "\u00ff", "x" * 5000, "../..", "'; --"])
def test_strange_workspaces_are_not_found(client: APIClient, slug: str) -> None:
    assert_shaped(client.get(COLLECTIONS, headers={"X-Workspace": slug}), 404)
