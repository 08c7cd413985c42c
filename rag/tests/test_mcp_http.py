"""The Model Context Protocol over HTTP: the SDK's own client against a running site."""

import json
import shlex
import sys
import traceback
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection
from subprocess import run
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND, ResourceTemplateReference
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from accounts.models import Membership
from documents.ingestion.items import Item
from documents.services import store_items
from documents.tests.factories import PASSWORD, CollectionFactory, MembershipFactory
from rag.mcp.resources import PAGE_SIZE
from rag.tests.conftest import SiteProcess, commit
from rag.tests.mcp_world import (
    GOOD,
    LONG,
    ODD_KEY,
    VACATION,
    World,
    blocks_of_how_to,
    secret_of,
    text_of,
    with_client,
)
from rag.tools import TOOLS

pytestmark = pytest.mark.django_db


def test_every_tool_is_listed_with_its_schema_and_whether_it_writes(
    site: SiteProcess, secret: str
) -> None:
    async def use(client: Client) -> Any:
        return await client.list_tools()

    listed = with_client(site.url, secret, use)
    assert [tool.name for tool in listed.tools] == list(TOOLS)
    for tool in listed.tools:
        assert tool.input_schema == dict(TOOLS[tool.name].parameters)
        assert tool.annotations.read_only_hint is not TOOLS[tool.name].writes


def test_every_tool_answers_and_says_what_is_wrong_with_bad_arguments(
    site: SiteProcess, secret: str
) -> None:
    assert set(GOOD) == set(TOOLS)

    async def use(client: Client) -> None:
        for name, (arguments, expected) in GOOD.items():
            good = await client.call_tool(name, arguments)
            assert not good.is_error, (name, text_of(good))
            assert expected in text_of(good), (name, text_of(good))
            bad = await client.call_tool(name, {**arguments, "nonsense": 1})
            assert bad.is_error, name
            assert text_of(bad).startswith("Error: "), name

    with_client(site.url, secret, use)


@pytest.mark.parametrize("mode", ["legacy", LATEST_MODERN_VERSION])
def test_clients_of_before_and_after_the_handshake_are_served(
    site: SiteProcess, secret: str, mode: str
) -> None:
    async def use(client: Client) -> str:
        return text_of(await client.call_tool("get_document", {"id": "vacation.md"}))

    assert VACATION in with_client(site.url, secret, use, mode=mode)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_each_version_of_the_handshake_is_agreed_upon(
    site: SiteProcess, secret: str, version: str
) -> None:
    status, answer = post(
        site,
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": version,
                "capabilities": {},
                "clientInfo": {"name": "old", "version": "0"},
            },
        },
        secret,
    )
    assert status == 200
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["serverInfo"]["name"] == "ragsite"
    assert "hybrid_query" in answer["result"]["instructions"]
    assert set(answer["result"]["capabilities"]) == {"tools", "resources", "completions"}


def test_what_is_no_tool_and_no_method_is_an_error_of_the_protocol(
    site: SiteProcess, secret: str
) -> None:
    async def use(client: Client) -> None:
        with pytest.raises(MCPError, match="no tool “no_such_tool”") as unknown:
            await client.call_tool("no_such_tool", {})
        assert unknown.value.code == INVALID_PARAMS
        with pytest.raises(MCPError) as prompts:
            await client.list_prompts()
        assert prompts.value.code == METHOD_NOT_FOUND

    with_client(site.url, secret, use)


def test_resources_are_collections_and_documents_read_by_their_addresses(
    site: SiteProcess, secret: str
) -> None:
    async def use(client: Client) -> None:
        listed = {entry.name: entry for entry in (await client.list_resources()).resources}
        assert {"handbook", "vacation.md", ODD_KEY, "long.txt"} <= set(listed)
        for key, text in (("vacation.md", VACATION), (ODD_KEY, "Odd keys"), ("long.txt", LONG)):
            (content,) = (await client.read_resource(listed[key].uri)).contents
            assert content.text.startswith(text)
            assert content.meta["key"] == key
        (handbook,) = (await client.read_resource(listed["handbook"].uri)).contents
        assert json.loads(handbook.text)["collection"] == "handbook"
        with pytest.raises(MCPError, match="or you may not see it"):
            await client.read_resource("ragsite://handbook/missing.md")
        with pytest.raises(MCPError, match="no resource of this site"):
            await client.read_resource("file:///etc/passwd")
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.name for template in templates] == ["document", "collection"]

    with_client(site.url, secret, use)


def test_templates_are_completed(site: SiteProcess, secret: str) -> None:
    async def use(client: Client) -> None:
        template = (await client.list_resource_templates()).resource_templates[0]
        reference = ResourceTemplateReference(uri=template.uri_template)
        found = await client.complete(reference, {"name": "collection", "value": "hand"})
        assert found.completion.values == ["handbook"]
        found = await client.complete(
            reference, {"name": "key", "value": "vac"}, {"collection": "handbook"}
        )
        assert found.completion.values == ["vacation.md"]

    with_client(site.url, secret, use)


def test_a_key_lists_and_does_only_what_its_scopes_allow(site: SiteProcess, world: World) -> None:
    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "similarity_search" in names
        assert not names & {"index_document", "set_fact", "get_fact", "graph_upsert"}
        for name in ("index_document", "set_fact", "get_fact"):
            refused = await client.call_tool(name, GOOD[name][0])
            assert refused.is_error
            assert "scope" in text_of(refused), name

    with_client(site.url, secret_of(world.alice, "read"), use)


def test_clients_are_told_why_they_may_not_ask(site: SiteProcess, world: World) -> None:
    async def use(client: Client) -> None:
        await client.list_tools()

    for secret, cure in (
        ("rs_nonsense", "no API key of this site"),
        (secret_of(world.alice, "chat"), "lacks the scope “read”"),
    ):
        for mode in ("legacy", LATEST_MODERN_VERSION):
            with pytest.raises(ExceptionGroup) as refused:
                with_client(site.url, secret, use, mode=mode)
            told = refused.value.split(MCPError)[0]
            assert told is not None
            assert cure in "".join(traceback.format_exception(told))


def test_lists_of_documents_come_in_pages_that_hold_each_once(site: SiteProcess) -> None:
    keys = {f"{number}.txt" for number in range(2 * PAGE_SIZE + 5)}

    def many() -> Membership:
        member = MembershipFactory()
        collection = CollectionFactory(workspace=member.workspace, slug="many")
        store_items(collection=collection, items=[Item(key, f"File {key}.") for key in keys])
        return member

    async def use(client: Client) -> None:
        pages = [await client.list_resources()]
        while pages[-1].next_cursor:
            pages.append(await client.list_resources(cursor=pages[-1].next_cursor))
        assert [len(page.resources) for page in pages] == [PAGE_SIZE + 1, PAGE_SIZE, 5]
        listed = [entry.name for page in pages for entry in page.resources]
        assert sorted(listed) == sorted({*keys, "many"})
        with pytest.raises(MCPError, match="not a valid cursor"):
            await client.list_resources(cursor="nonsense")

    with_client(site.url, secret_of(commit(many)), use)


def test_the_examples_of_the_how_to_work(
    site: SiteProcess, secret: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (line,) = blocks_of_how_to("sh")
    command = shlex.split(line)
    assert command[:5] == ["claude", "mcp", "add", "--transport", "http"]
    (told,) = [block for block in blocks_of_how_to("json") if '"url"' in block]
    entry = json.loads(told)["mcpServers"]["ragsite"]
    assert entry["url"] == command[6] == "http://localhost:8000/mcp"
    assert entry["type"] == "http"
    assert command[7:] == ["--header", f"Authorization: {entry['headers']['Authorization']}"]
    assert entry["headers"] == {"Authorization": "Bearer rs_…"}

    (program,) = blocks_of_how_to("python")
    program = program.replace("http://localhost:8000", site.url).replace("rs_…", secret)
    run([sys.executable, "-c", program], check=True, timeout=60)
    assert VACATION in capfd.readouterr().out


# --- HTTP itself ----------------------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}


def request(
    site: SiteProcess,
    body: Any,
    secret: str = "",
    *,
    method: str = "POST",
    path: str = "/mcp",
    **headers: str,
) -> Any:
    """A bare request; raises HTTPError."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"Authorization": f"Bearer {secret}"} if secret else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    asked = Request(f"{site.url}{path}", data=data, headers=sent, method=method)
    return urlopen(asked, timeout=30)


def post(site: SiteProcess, body: Any, secret: str, **headers: str) -> tuple[int, Any]:
    """Status and JSON of the answer to a bare request."""
    try:
        with request(site, body, secret, **headers) as answer:
            status, text = answer.status, answer.read()
    except HTTPError as error:
        status, text = error.status, error.read()
    return status, json.loads(text) if text else None


def test_a_request_without_a_session_is_answered(site: SiteProcess, secret: str) -> None:
    for path in ("/mcp", "/mcp/"):
        with request(site, PING, secret, path=path) as answer:
            assert json.load(answer) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json, text/event-stream", "application/json"),
        ("application/json", "application/json"),
        ("text/event-stream, */*", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
        (None, "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream;q=0.9", "text/event-stream"),
        ("text/*", "text/event-stream"),
        ("application/json;q=0, text/event-stream", "text/event-stream"),
        ("application/json;q=0.1, text/event-stream;q=1", "application/json"),
        ("APPLICATION/JSON; charset=utf-8", "application/json"),
        ("application/*", "application/json"),
    ],
)
def test_each_accept_header_is_answered_in_a_form_that_it_names(
    site: SiteProcess, secret: str, accept: str | None, kind: str
) -> None:
    connection = HTTPConnection(urlsplit(site.url).netloc, timeout=30)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {secret}"}
    headers |= {} if accept is None else {"Accept": accept}
    with closing(connection):
        connection.request("POST", "/mcp", json.dumps(PING), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    assert (answer.status, answer.headers.get_content_type()) == (200, kind)
    if kind == "text/event-stream":
        assert text.startswith("event: message\ndata: {")
        assert text.endswith("}\n\n")
        text = text.partition("data: ")[2]
    assert json.loads(text) == {"jsonrpc": "2.0", "id": 7, "result": {}}


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "text/event-stream;q=0", ",,"])
def test_who_accepts_neither_json_nor_events_is_refused(
    site: SiteProcess, secret: str, accept: str
) -> None:
    assert post(site, PING, secret, Accept=accept)[0] == 406


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "text/event-stream"])
@pytest.mark.parametrize(
    "note",
    [
        {"method": "notifications/initialized"},
        {"method": "notifications/cancelled", "params": {"requestId": 5, "reason": "late"}},
        {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 5}},
        {"method": "notifications/unheard-of"},
        {"id": 4, "result": {}},
        {"id": 4, "error": {"code": 1, "message": "no"}},
    ],
    ids=lambda note: note.get("method", "-".join(note)),
)
def test_a_notification_or_an_answer_is_accepted_and_not_answered(
    site: SiteProcess, secret: str, note: dict[str, Any], accept: str
) -> None:
    assert post(site, {"jsonrpc": "2.0", **note}, secret, Accept=accept) == (202, None)


@pytest.mark.parametrize("id", [0, -1, 10**30, "", "a-1", "ü\u2028😀"], ids=repr)
def test_an_id_comes_back_as_it_was_sent(site: SiteProcess, secret: str, id: Any) -> None:
    assert post(site, {**PING, "id": id}, secret)[1]["id"] == id


@pytest.mark.parametrize("id", [None, 1.5, True, {"a": 1}, [1]], ids=repr)
def test_a_request_whose_id_cannot_be_answered_is_refused(
    site: SiteProcess, secret: str, id: Any
) -> None:
    status, answer = post(site, {**PING, "id": id}, secret)
    assert (status, answer["error"]["code"], answer["code"]) == (400, -32600, "invalid_id")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2099-01-01",
        "capabilities": {},
        "clientInfo": {"name": "new", "version": "9"},
    },
}


@pytest.mark.parametrize("version", ["", "2099-01-01", "nonsense", "2025-06-18"])
def test_the_handshake_of_an_unknown_version_agrees_on_a_known_one(
    site: SiteProcess, secret: str, version: str
) -> None:
    status, answer = post(site, INITIALIZE, secret, MCP_Protocol_Version=version)
    assert status == 200
    assert answer["result"]["protocolVersion"] in HANDSHAKE_PROTOCOL_VERSIONS


@pytest.mark.parametrize("version", ["", *HANDSHAKE_PROTOCOL_VERSIONS])
def test_each_version_in_the_header_is_served(site: SiteProcess, secret: str, version: str) -> None:
    assert post(site, PING, secret, MCP_Protocol_Version=version)[0] == 200


@pytest.mark.parametrize("version", ["2099-01-01", "nonsense"])
def test_an_unknown_version_behind_the_handshake_is_refused(
    site: SiteProcess, secret: str, version: str
) -> None:
    status, answer = post(site, PING, secret, MCP_Protocol_Version=version)
    assert (status, answer["id"]) == (400, 7)


@pytest.mark.parametrize("session", ["", "abc", "x" * 4000])
def test_the_session_of_another_server_does_no_harm(
    site: SiteProcess, secret: str, session: str
) -> None:
    with request(site, PING, secret, Mcp_Session_Id=session) as answer:
        assert answer.status == 200
        assert "Mcp-Session-Id" not in answer.headers


@pytest.mark.parametrize(
    "kind", ["application/json;charset=utf-8", "Application/JSON", "application/json; charset=x"]
)
def test_json_is_read_however_its_type_is_written(
    site: SiteProcess, secret: str, kind: str
) -> None:
    marked = b"\xef\xbb\xbf" + json.dumps(PING).encode()
    for body in (PING, marked):
        assert post(site, body, secret, Content_Type=kind)[0] == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/json-rpc", "application/x-ndjson"])
def test_a_body_of_another_type_is_refused(site: SiteProcess, secret: str, kind: str) -> None:
    assert post(site, PING, secret, Content_Type=kind)[0] == 415


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'\xef\xbb\xbf \n[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        (b'{"id": 1}', -32602),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'"ping"', -32602),
        (b"", -32700),
        (b'{"a":' * 100_000, -32700),
        (b'{"jsonrpc": "2.0", "id": "\xff", "method": "ping"}', -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16"), -32700),
    ],
    ids=[
        *("torn", "batch", "batch behind a mark", "no-message", "old", "params", "text"),
        *("nothing", "deep", "latin-1", "utf-16"),
    ],
)
def test_what_is_no_message_is_refused_as_the_protocol_says(
    site: SiteProcess, secret: str, body: bytes, code: int
) -> None:
    status, answer = post(site, body, secret)
    assert status == 400
    assert answer["error"]["code"] == code
    assert answer["id"] is None


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_is_no_stream_to_get_and_no_session_to_delete(
    site: SiteProcess, secret: str, method: str
) -> None:
    with pytest.raises(HTTPError) as refused:
        request(site, PING, secret, method=method, Accept="text/event-stream")
    assert (refused.value.status, refused.value.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("secret", ["", "rs_nonsense"])
def test_who_has_no_key_is_told_how_to_log_in(site: SiteProcess, secret: str) -> None:
    with pytest.raises(HTTPError) as refused:
        request(site, PING, secret)
    assert refused.value.status == 401
    assert "Bearer" in refused.value.headers["WWW-Authenticate"]


def test_pages_of_other_sites_may_not_ask(site: SiteProcess, secret: str) -> None:
    assert post(site, PING, secret, Origin="https://evil.example")[0] == 403
    for other in ("null", "file://", "http://[::1", "http://127.0.0.1.evil.example"):
        assert post(site, PING, secret, Origin=other)[0] == 403
    for own in (site.url, "http://localhost:3000", "https://[::1]", "HTTP://LOCALHOST"):
        assert post(site, PING, secret, Origin=own)[0] == 200
    with pytest.raises(HTTPError) as refused:
        request(site, PING, secret, Host="evil.example")
    assert refused.value.status == 400


def test_a_client_that_does_not_hang_up_keeps_nobody_waiting(
    site: SiteProcess, secret: str
) -> None:
    with closing(HTTPConnection(urlsplit(site.url).netloc, timeout=30)) as connection:
        connection.request("GET", "/login/", headers={"Connection": "close"})
        answer = connection.getresponse()  # and the connection stays open on this side
        began = monotonic()
        assert post(site, PING, secret)[0] == 200
        assert monotonic() - began < 1.5
    assert answer.status == 200


def test_more_than_fits_is_refused(site: SiteProcess, secret: str) -> None:
    status, answer = post(site, b" " * (4 * 1024 * 1024 + 1), secret)
    assert status == 413
    assert answer["code"] == "too_large"


def test_a_password_does_as_well(site: SiteProcess, world: World) -> None:
    login = b64encode(f"{world.bob.user.username}:{PASSWORD}".encode()).decode()
    status, answer = post(site, PING, "", Authorization=f"Basic {login}")
    assert (status, answer["result"]) == (200, {})
