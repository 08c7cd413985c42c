"""What is typed, and what programs make up, the whole way: queries through the database, places in
lists, messages of the Model Context Protocol, definitions of pipelines.

Readers by themselves are tested where they lie; filters in `search/tests/test_filters_sql.py`.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.tests.keys import make_key
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from rag.pipelines.definition import PipelineError
from rag.pipelines.validation import parse_definition, templates
from tests.access.doors_tools import METHODS, TOOLS
from tests.kit import client_of
from tests.test_access_walk import no_log

few = hypothesis_settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PIECES = [
    *('"', "“", "-", "--", "*", "a*", "-a", "&", "|", "!", "<->", "<2>", ":*", ":ABCD", "(", ")"),
    *("'", "\\", "%", "_", "$", "{", "}", "[", "/", "OR", "AND", "NOT", "a", "warden", "keys", " "),
    *(
        "\u202e",
        "\u2066",
        "\u200d",
        "\u0301",
        "\u0301" * 300,
        "👩‍👩‍👧",
        "🇩🇪",
        "中",
        "東京*",
        "ß",
        "İ",
    ),
    *(
        "\x00",
        "\ufeff",
        "\ufffd",
        "\U0010ffff",
        "\u2028",
        "\n",
        "\t",
        "1",
        "1.5",
        "a@b.org",
        "e\u0301",
    ),
    *("http://x/?a=b", "co-op", "C++", "a" * 2500, "a b " * 300, "../x", "<b>", "'; --", "%s"),
]
queries = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), min_size=1, max_size=14)
characters = st.characters(codec=None)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(characters, max_size=9)
junk = st.recursive(
    scalars | st.just(10**400),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture
def client(db: None) -> APIClient:
    member = MembershipFactory()
    collection = CollectionFactory(workspace=member.workspace, slug="notes")
    for key, text in (("a.md", "The warden keeps the keys."), ("b.md", "東京 und größe: C++ 1.5")):
        ChunkFactory(document=DocumentFactory(collection=collection, key=key), text=text)
    return client_of(member)


@hypothesis_settings(few, max_examples=60)
@given(pieces=queries, mode=st.sampled_from(["lexical", "lexical", "hybrid", "vector", "graph"]))
def test_any_query_is_searched_for_or_refused(
    client: APIClient, pieces: list[str], mode: str
) -> None:
    answer: Any = client.post(
        "/api/v1/search/?workspace=", {"q": "".join(pieces), "mode": mode}, format="json"
    )
    assert answer.status_code in (200, 400), answer.content
    if answer.status_code == 400:
        assert {fault["attr"] for fault in answer.json()["errors"]} <= {"q", None}


LISTS = [
    *("collections/", "documents/", "runs/", "changes/", "conversations/", "traces/", "keys/"),
    *("memory/contexts/", "memory/facts/", "memory/conversations/", "memory/facts/a/history/"),
    *("graph/nodes/", "graph/edges/", "graph/neighbors/?id=doc:notes:a.md", "spaces/"),
    *("graph/mentions/?id=doc:notes:a.md", "evaluations/", "saved-searches/"),
]
positions = st.sampled_from(
    [
        "",
        "1",
        "-1",
        "9" * 30,
        "2024-02-30",
        "٣",
        "a\0",
        "0001-01-01T00:00:00+23:59",
        "null",
        "x" * 300,
    ]
) | st.text(characters, max_size=9)
cursors = st.builds(
    lambda position, offset, back: b64encode(
        f"o={offset}&r={back}&p={quote(position, errors='surrogatepass')}".encode()
    ).decode(),
    positions,
    st.sampled_from(["0", "1", "-1", "9" * 25, "x", ""]),
    st.sampled_from(["0", "1", "2", "x"]),
) | st.binary(max_size=20).map(lambda some: b64encode(some).decode())
places = cursors | positions.map(
    lambda some: b64encode(json.dumps([some, some]).encode("utf-8", "replace")).decode()
)


@pytest.mark.parametrize("address", LISTS)
@hypothesis_settings(few, max_examples=6)
@given(cursor=places)
def test_any_place_in_a_list_is_found_or_refused(
    client: APIClient, address: str, cursor: str
) -> None:
    joint = "&" if "?" in address else "?"
    answer: Any = client.get(f"/api/v1/{address}{joint}cursor={quote(cursor)}")
    assert answer.status_code in (200, 400, 404), answer.content


# --- the Model Context Protocol ------------------------------------------------------------------

calls = st.builds(
    lambda name, arguments: ("tools/call", {"name": name, "arguments": arguments}),
    st.sampled_from(sorted(TOOLS)) | st.text(max_size=5),
    st.dictionaries(st.sampled_from(["query", "id", "key", "nodes", "text"]), junk, max_size=2)
    | junk,
)
known = st.tuples(st.sampled_from([*METHODS, "notifications/cancelled", "tools/call"]), junk)
messages = st.builds(
    lambda asked, more, left_out: {
        name: value
        for name, value in {
            "jsonrpc": "2.0", "id": 1, "method": asked[0], "params": asked[1], **more
        }.items()
        if name != left_out
    },
    calls | known | st.tuples(junk, junk),
    st.dictionaries(st.sampled_from(["id", "jsonrpc", "result", "error"]), junk, max_size=1),
    st.sampled_from(["", "", "", "id", "jsonrpc", "method", "params"]),
)  # fmt: skip
bodies = (messages | junk).map(lambda message: json.dumps(message).encode()) | st.sampled_from(
    [
        b"",
        b"[]",
        b"[[",
        b"\xff",
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b"null",
        b'{"id": 1e400}',
        b" " * 99,
    ]
)


@pytest.fixture
def protocol(transactional_db: None) -> Iterator[Client]:
    """Another thread answers, which sees what is committed."""
    _, secret = make_key(MembershipFactory())
    headers = {
        "Authorization": f"Bearer {secret}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    with no_log():
        yield Client(headers=headers)


@hypothesis_settings(few, max_examples=40)
@example(b"")
@given(body=bodies)
def test_any_message_of_the_protocol_is_answered(protocol: Client, body: bytes) -> None:
    answer = protocol.generic(
        "POST", "/mcp", body, content_type="application/json", CONTENT_TYPE="application/json"
    )
    assert answer.status_code in (200, 202, 400, 406), answer.content
    if answer.status_code != 202:
        told = answer.json()
        assert told["jsonrpc"] == "2.0"
        assert told.get("error", {}).get("code") != -32603, (body, told)


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/json-rpc", "/"])
def test_messages_of_another_type_are_refused_in_the_one_shape(
    protocol: Client, content_type: str
) -> None:
    answer = protocol.post("/mcp", b"{}", content_type=content_type)
    assert answer.status_code == 415
    assert answer.json()["code"] == "unsupported_media_type"
    assert "Send application/json" in answer.json()["error"]["message"]


# --- pipelines -----------------------------------------------------------------------------------


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of everything in some JSON."""
    yield path
    listed = dict(enumerate(value)) if isinstance(value, list) else value
    for name, each in listed.items() if isinstance(listed, dict) else ():
        yield from spots(each, (*path, name))


def put(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """`value` with `other` at a place of it."""
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], other)
    return copy


@hypothesis_settings(few, max_examples=200)
@given(
    name=st.sampled_from(sorted(templates())),
    at=st.lists(st.integers(0, 10_000), max_size=3),
    other=junk | st.sampled_from([10**400, -(10**400), 1e308, "a.b == ", "{{x}}", "x" * 20_000]),
)
def test_a_pipeline_with_anything_in_it_is_read_or_refused(
    name: str, at: list[int], other: Any
) -> None:
    definition = templates()[name].to_json()
    for number in at:
        there = list(spots(definition))
        definition = put(definition, there[number % len(there)], other)
    try:
        parse_definition(definition)
    except PipelineError as error:
        refusal = error
    else:
        return
    assert refusal.faults
    str(refusal).encode()
