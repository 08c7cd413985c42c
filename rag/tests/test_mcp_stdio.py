"""`manage.py mcp`: the SDK's own client starts it, as desktop clients do."""

import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from django.core.management import CommandError, call_command
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types.version import LATEST_MODERN_VERSION

from accounts.api_keys import revoke_key
from accounts.tests.keys import make_key
from rag.tests.conftest import ROOT, commit
from rag.tests.mcp_world import (
    GOOD,
    LONG,
    ODD_KEY,
    VACATION,
    World,
    blocks_of_how_to,
    secret_of,
    text_of,
)
from rag.tools import TOOLS

T = TypeVar("T")
pytestmark = pytest.mark.django_db


def with_client(
    environment: dict[str, str], use: Callable[[Client], Awaitable[T]], *arguments: str, **how: Any
) -> T:
    """What `use(client)` gives, the client having started the command as the how-to tells."""
    (told,) = [block for block in blocks_of_how_to("json") if '"command"' in block]
    entry = json.loads(told)["mcpServers"]["ragsite"]
    assert entry["command"] == "/path/to/ragsite/.venv/bin/python"
    assert list(entry["env"]) == ["RAGSITE_API_KEY"]
    script, *rest = entry["args"]
    script = script.replace("/path/to/ragsite", str(ROOT))
    server = StdioServerParameters(
        command=sys.executable, args=[script, *rest, *arguments], env=environment
    )

    async def run() -> T:
        async with Client(server, **how) as client:
            return await use(client)

    return anyio.run(run)


def test_every_tool_and_resource_is_there_and_a_revoked_key_ends_it(
    site_environment: dict[str, str], world: World
) -> None:
    key, secret = commit(lambda: make_key(world.alice))

    async def use(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        for name, (arguments, expected) in GOOD.items():
            good = await client.call_tool(name, arguments)
            assert not good.is_error, (name, text_of(good))
            assert expected in text_of(good)
        bad = await client.call_tool("hybrid_query", {"nonsense": 1})
        assert bad.is_error
        assert text_of(bad).startswith("Error: ")
        with pytest.raises(MCPError, match="no tool “no_such_tool”"):
            await client.call_tool("no_such_tool", {})
        listed = {entry.name: entry.uri for entry in (await client.list_resources()).resources}
        for name, text in (("vacation.md", VACATION), (ODD_KEY, "Odd keys"), ("long.txt", LONG)):
            (content,) = (await client.read_resource(listed[name])).contents
            assert content.text.startswith(text)
        await anyio.to_thread.run_sync(lambda: commit(lambda: revoke_key(key=key)))
        with pytest.raises(MCPError, match="was revoked"):
            await client.call_tool("list_collections", {})

    with_client({**site_environment, "RAGSITE_API_KEY": secret}, use)


@pytest.mark.nightly
def test_the_key_may_come_from_a_file_and_the_protocol_be_the_new_one(
    site_environment: dict[str, str], world: World, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text(f"{secret_of(world.bob)}\n")
    answers: dict[int, str] = {}

    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "index_document" not in names

        async def ask(number: int, key: str) -> None:
            answers[number] = text_of(await client.call_tool("get_document", {"id": key}))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, number, "vacation.md" if number % 2 else ODD_KEY)

    with_client(site_environment, use, "--key-file", str(file), mode=LATEST_MODERN_VERSION)
    assert len(answers) == 20
    for number, answer in answers.items():
        assert (VACATION if number % 2 else "Odd keys") in answer


def test_without_a_key_that_opens_something_it_says_so(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for secret, options, cure in (
        ("", {}, "put it into RAGSITE_API_KEY"),
        ("rs_nonsense", {}, "Make a new one"),
        (secret_of(world.alice, "chat"), {}, "“read”"),
        ("", {"key_file": tmp_path / "missing"}, "cannot be read"),
    ):
        monkeypatch.setenv("RAGSITE_API_KEY", secret)
        with pytest.raises(CommandError, match=cure) as refused:
            commit(partial(call_command, "mcp", **options))
        assert refused.value.returncode == 2


@pytest.mark.nightly
def test_without_its_database_it_says_so_where_no_client_takes_it_for_a_message(
    site_environment: dict[str, str], world: World
) -> None:
    ended = subprocess.run(
        [sys.executable, "manage.py", "mcp"],
        cwd=ROOT,
        env={
            **site_environment,
            "RAGSITE_API_KEY": secret_of(world.bob),
            "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "RAGSITE_DATABASE_START_SECONDS": "0",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "The database cannot be reached" in ended.stderr
    assert "Traceback" not in ended.stderr


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}


def started(environment: dict[str, str]) -> "subprocess.Popen[str]":
    """The command, with pipes to it."""
    return subprocess.Popen(
        [sys.executable, "manage.py", "mcp"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_nothing_but_messages_is_written_and_it_ends_with_its_client(
    site_environment: dict[str, str], world: World
) -> None:
    environment = {**site_environment, "RAGSITE_API_KEY": secret_of(world.bob)}
    messages = [
        HELLO,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    process = started({**environment, "LOG_LEVEL": "DEBUG"})
    assert process.stdin
    assert process.stdout
    assert process.stderr
    with process.stdin, process.stdout, process.stderr:
        for message in messages:
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.write("this is no message\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert {answer.get("id") for answer in answers} >= {1}
        process.stdin.close()
        for line in process.stdout:
            assert json.loads(line)["jsonrpc"] == "2.0"
        assert process.wait(timeout=30) == 0
        assert "Traceback" not in process.stderr.read()


@pytest.mark.nightly
def test_it_ends_at_an_interrupt_though_its_input_is_open(
    site_environment: dict[str, str], world: World
) -> None:
    process = started({**site_environment, "RAGSITE_API_KEY": secret_of(world.bob)})
    assert process.stdin
    assert process.stdout
    assert process.stderr
    with process.stdin, process.stdout, process.stderr:
        process.stdin.write(json.dumps(HELLO) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == -signal.SIGINT
        assert "Traceback" not in process.stderr.read()
