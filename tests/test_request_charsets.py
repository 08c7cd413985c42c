"""A set of characters that cannot be, in the header Content-Type, as a web server hands it on."""

from io import BytesIO
from typing import Any

import pytest
from django.test import RequestFactory

from ragsite.requests import AsyncRequest, readable_content_type
from ragsite.wsgi import application

UNREADABLE = {
    "NUL": "application/json; charset*=utf-8''%00",
    "no set of the header's own": "application/json; charset*=bogus''utf-8",
    "not for text": "application/json; charset=hex",
    "nothing can be read by it": "application/json; charset=undefined",
    "another form of addresses": "application/json; charset=utf-16",
    "names": "application/json; charset=idna",
}
READABLE = [
    "",
    "application/json",
    "application/json; charset=utf-8",
    "text/plain; charset=Latin-1",
    "text/plain; charset=",
    "multipart/form-data; boundary=x",
]


@pytest.mark.django_db
@pytest.mark.parametrize("name", UNREADABLE)
def test_no_character_set_makes_a_server_error(name: str) -> None:
    told: list[str] = []

    def begin(status: str, headers: Any) -> None:
        told.append(status)

    request = RequestFactory().get("/api/v1/search/?q=%41", headers={"Content-Type": ""})
    environ = {**request.META, "CONTENT_TYPE": UNREADABLE[name]}
    answer = application(environ, begin)
    body = b"".join(answer)
    answer.close()
    assert told == ["401 Unauthorized"]
    assert b"not_authenticated" in body


@pytest.mark.parametrize("name", UNREADABLE)
def test_nor_does_it_on_an_asynchronous_server(name: str) -> None:
    headers = [(b"content-type", UNREADABLE[name].encode()), (b"accept", b"*/*")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"q=%41",
        "headers": headers,
    }
    request = AsyncRequest(scope, BytesIO())
    assert request.GET["q"] == "A"
    assert request.content_type == "application/json"
    assert request.headers["Accept"] == "*/*"


@pytest.mark.parametrize("content_type", READABLE)
def test_what_can_be_read_stays(content_type: str) -> None:
    assert readable_content_type(content_type) == content_type
