"""Many chats at once against the real web server, its real pool and a model on a socket."""

import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg.conninfo import make_conninfo

from accounts.api_keys import create_key
from rag.tests.asking import reader
from tests.chat_streams import Listener, Model
from tests.plugin import database_url_of_tests, empty_tables, wait_until

#: There is a database; its rows come from `site`.
pytestmark = [pytest.mark.django_db, pytest.mark.nightly]

ROOT = Path(__file__).resolve().parent.parent
STREAMS = 100
ROUNDS = 25
WORKERS = 2
#: Of each worker: far fewer than streams, so that one which waits for a model cannot hold any.
CONNECTIONS = 2
#: Clients that leave, again and again.
LEAVING, TIMES = 15, 4
NAME = "test-chat-streams"
QUESTION = "When does the firm leave Mill Street?"


@dataclass
class Site:
    """A running web server, and the socket on which its model is to listen."""

    process: subprocess.Popen[bytes]
    port: int
    key: str
    database: str
    model: socket.socket

    def listeners(self, *numbers: int) -> list[Listener]:
        return [Listener(number) for number in numbers]

    def sessions(self) -> list[str]:
        """States of the web server's database connections."""
        with psycopg.connect(self.database) as asking:
            asked = asking.execute(
                "SELECT state FROM pg_stat_activity"
                " WHERE application_name = %s AND datname = current_database()",
                [NAME],
            )
            return [row[0] for row in asked]

    def threads(self) -> int:
        """Of all its processes."""
        pids = [self.process.pid, *children(self.process.pid)]
        return sum(len([*Path(f"/proc/{pid}/task").iterdir()]) for pid in pids)

    def get(self, path: str) -> Any:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        client.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
        answer = client.getresponse()
        assert answer.status == 200
        return json.loads(answer.read())


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(scope="module")
def key(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """Of a reader of two documents, all of which is committed."""
    with django_db_blocker.unblock():
        context, _ = reader()
        _, key = create_key(
            user=context.user, workspace=context.workspace, name="Streams", scopes=["read", "chat"]
        )
        yield key
        empty_tables()


@pytest.fixture(scope="module")
def running(key: str) -> Iterator[list[Site]]:
    """Servers, of which the last one runs."""
    with socket.create_server(("127.0.0.1", 0)) as model:
        sites = [started(key, model)]
        yield sites
        sites[-1].process.terminate()
        sites[-1].process.wait(timeout=30)


@pytest.fixture
def site(running: list[Site]) -> Site:
    """One that answers: another where a test has stopped it."""
    if running[-1].process.poll() is not None:
        running.append(started(running[-1].key, running[-1].model))
    wait_until(lambda: running[-1].get("/api/v1/models/"), what="the site answers")
    return running[-1]


def started(key: str, model: socket.socket) -> Site:
    described = connection.settings_dict
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    options = {"base_url": f"http://127.0.0.1:{model.getsockname()[1]}", "model": "stub"}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "ragsite.wsgi:application"),
            *("--config=python:ragsite.gunicorn", f"--workers={WORKERS}"),
            f"--bind=fd://{listening.fileno()}",
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database_url_of_tests(application_name=NAME),
            "RAGSITE_DATABASE_POOL_SIZE": str(CONNECTIONS),
            "CHAT_BACKEND": "inference.backends.chat_openai.OpenAIChat",
            "CHAT_OPTIONS": json.dumps(options),
        },
        pass_fds=[listening.fileno()],
    )
    port = listening.getsockname()[1]
    listening.close()
    database = make_conninfo(
        dbname=described["NAME"],
        host=described["HOST"],
        port=described["PORT"],
        user=described["USER"],
        password=described["PASSWORD"],
    )
    return Site(process, port, key, database, model)


async def asked(site: Site, model: Model, *numbers: int) -> list[Listener]:
    """Listeners whose answers have begun, each of which waits for the model."""
    listeners = site.listeners(*numbers)
    await asyncio.gather(*(each.ask(site.port, site.key, QUESTION) for each in listeners))
    assert {each.status for each in listeners} == {200}
    await model.is_asked(numbers)
    return listeners


def test_a_hundred_chats_lose_and_mix_no_word_and_hold_no_connection(site: Site) -> None:
    async def chat() -> None:
        numbers = range(1000, 1000 + STREAMS)
        async with Model().serving(site.model) as model:
            listeners = await asked(site, model, *numbers)
            # All hundred wait for the model, with four connections there are.
            sessions = await asyncio.to_thread(site.sessions)
            assert len(sessions) <= WORKERS * CONNECTIONS
            assert set(sessions) <= {"idle"}
            for _ in range(WORKERS * CONNECTIONS * 2):  # and none of those is taken
                assert (await asyncio.to_thread(site.get, "/api/v1/search/?q=mill"))["hits"]
            await talk(model, listeners)
            await asyncio.gather(*(each.hears_out() for each in listeners))
        for each in listeners:
            assert "".join(each.tokens) == "".join(word(each.number, n) for n in range(ROUNDS))
            names = [name for name, _, _ in each.events]
            assert (names[:2], names[-1]) == (["metadata", "retrieval"], "done")
            counted = [int(id.partition("-")[2]) for _, id, _ in each.events]
            assert counted == list(range(1, len(names) + 1))
        assert len({each.events[0][1].partition("-")[0] for each in listeners}) == STREAMS

    asyncio.run(chat())


async def talk(model: Model, listeners: list[Listener]) -> None:
    """A word to each, in an order that changes, when all have heard the one before."""
    order = random.Random(8)
    for number in range(ROUNDS):
        for each in order.sample(listeners, len(listeners)):
            await model.say(each.number, word(each.number, number))
        for each in listeners:
            # The last word may wait for what follows it, which could make a citation of it.
            await each.hears(lambda each, heard=number: len("".join(each.tokens)) >= heard * 10)
    for each in listeners:
        await model.finish(each.number)


def word(stream: int, number: int) -> str:
    """The last one ends a question: what states nothing is not compared with the passages."""
    return f"w{stream}x{number:03d}{'?' if number == ROUNDS - 1 else ' '}"


def test_clients_that_leave_end_the_work_and_free_its_threads(site: Site) -> None:
    before = site.threads()

    async def chat() -> None:
        async with Model().serving(site.model) as model:
            for first in range(2000, 2000 + TIMES * LEAVING, LEAVING):
                listeners = await asked(site, model, *range(first, first + LEAVING))
                for each in listeners:
                    await model.say(each.number, "They leave ")
                for each in listeners:
                    await each.hears(lambda each: bool(each.tokens))
                    each.leave()
                await model.is_left(each.number for each in listeners)

    asyncio.run(chat())
    # Each worker keeps the threads of requests for the next ones; those of answers go.
    wait_until(
        lambda: site.threads() <= before + WORKERS * LEAVING,
        what="the threads of answers have gone",
    )
    assert set(site.sessions()) <= {"idle"}


def test_a_server_that_is_told_to_stop_ends_its_streams(site: Site) -> None:
    async def chat() -> None:
        async with Model().serving(site.model) as model:
            numbers = range(3000, 3020)
            listeners = await asked(site, model, *numbers)
            site.process.send_signal(signal.SIGTERM)
            for each in listeners:
                await each.hears_out()
                name, _, data = each.events[-1]
                assert (name, data["code"]) == ("error", "server_stopping")
            await model.is_left(numbers)

    asyncio.run(chat())
    assert site.process.wait(timeout=30) == 0
