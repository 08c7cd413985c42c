"""Chats: what lies between retrieval and the first word, and a hundred answers at once.

    python -m bench.chat [--asked 100] [--streams 100] [--words 100] [--pace 100]

Starts the real web server on documents that are made here, with a model server in this process that
answers at once, and removes what it made. Beside a hundred streams through the site it reads a
hundred from the model itself, so that the ratio says what the way through the site costs. Then one
answer after another by a model of `pace` words a second, as one person hears them.
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "chat"])

import numpy as np
import psutil
from django.conf import settings
from django.contrib.auth import get_user_model
from rich.console import Console
from rich.table import Table

from accounts.api_keys import create_key
from accounts.models import Membership, Role
from accounts.services import get_or_create_workspace
from bench.search import sources
from documents.models import Collection
from documents.services import default_space, delete_collection, ingest_inline
from inference.tests.stub_server import delta, event

NAME = "benchmark-chat"
MUST_TAKE_MS = 50.0
QUESTION_WORDS = 10
#: Answers that are heard one after another at the pace of a person's model.
PACED = 10
ADDRESS = "/api/v1/chat/"
MODEL = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer. Seconds from the request to the first word, to the last, and to the end;
    milliseconds that the search took by itself."""

    first: float
    last_word: float
    last: float
    words: int
    retrieval_ms: float = 0.0

    @property
    def pace(self) -> float:
        """Words a second, from the first to the last."""
        return self.words / (self.last_word - self.first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("asked", "streams", "words", "pace"):
        parser.add_argument(f"--{name}", type=int, default=100)
    options = parser.parse_args()
    with (
        documents() as (key, questions),
        socket.create_server(("127.0.0.1", 0)) as model,
        web_server(model.getsockname()[1]) as (port, process),
    ):
        table = asyncio.run(measured(options, model, port, key, questions, process))
    Console().print(table)


async def measured(
    options: argparse.Namespace,
    model: socket.socket,
    port: int,
    key: str,
    questions: Sequence[str],
    process: psutil.Process,
) -> Table:
    """Both measurements, as a table."""
    table = Table("measured", "p50", "p95", title="Chats")
    async with model_server(model, options.words):
        await until_ready(port, key, questions[0])
        for name, kept in (("kept in a conversation", {}), ("not kept", {"history": []})):
            heard = []
            for number in range(options.asked):
                body = {"message": questions[number % len(questions)], **kept}
                heard.append(await listen(port, ADDRESS, body, key))
            beyond = [each.first * 1000 - each.retrieval_ms for each in heard]
            row(table, f"first word beyond retrieval, ms, {name}", beyond)
        table.add_row("it must take, ms", f"{MUST_TAKE_MS:.0f}", "")
        small = [await request(port, key) for _ in range(options.asked)]
        row(table, "beside it, a request that only lists models, ms", small)
        bodies = [{"message": each, "history": []} for each in questions[: options.streams]]
        through, seconds, used = await at_once(port, ADDRESS, bodies, key, process)
        plain = [{"messages": [], "stream": True}] * options.streams
        direct, direct_seconds, _ = await at_once(model.getsockname()[1], MODEL, plain, "", process)
    async with model_server(model, options.words, pause=1 / options.pace):
        heard, alone = [], []
        for number in range(PACED):
            body = {"message": questions[number % len(questions)], "history": []}
            heard.append(await listen(port, ADDRESS, body, key))
            alone.append(await listen(model.getsockname()[1], MODEL, plain[0], ""))
    beyond = [
        (each.first - direct.first) * 1000 - each.retrieval_ms
        for each, direct in zip(heard, alone, strict=True)
    ]
    paced = f"at {options.pace} words a second"
    row(
        table,
        f"{paced}: first word beyond retrieval and model, ms",
        beyond,
    )
    row(
        table,
        f"{paced}: share of the model’s own pace",
        [each.pace / direct.pace for each, direct in zip(heard, alone, strict=True)],
    )
    row(table, f"first word of {options.streams} at once, s", [each.first for each in through])
    words = sum(each.words for each in through)
    row(table, "last word, s", [each.last for each in through])
    table.add_row("words a second", f"{words / seconds:,.0f}", "")
    table.add_row("of what the model says directly", f"{direct_seconds / seconds:.3f}", "")
    table.add_row("processor seconds of the site", f"{used:.2f}", "")
    table.add_row("and for each answer, ms", f"{used * 1000 / options.streams:.1f}", "")
    assert all(each.words == options.words for each in [*through, *direct]), "words were lost"
    return table


def row(table: Table, name: str, values: Sequence[float]) -> None:
    p50, p95 = np.percentile(values, [50, 95])
    table.add_row(name, f"{p50:,.2f}", f"{p95:,.2f}")


async def at_once(
    port: int, path: str, bodies: Sequence[Any], key: str, process: psutil.Process
) -> tuple[list[Heard], float, float]:
    """All answers, the seconds that they took together, and the processor's for the site."""
    began, before = perf_counter(), processor_seconds(process)
    heard = await asyncio.gather(*(listen(port, path, body, key) for body in bodies))
    return heard, perf_counter() - began, processor_seconds(process) - before


def processor_seconds(process: psutil.Process) -> float:
    every = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in every)


async def listen(port: int, path: str, body: Any, key: str) -> Heard:
    """Ask, and read the events to their end."""
    began, first, last_word, words, retrieval = perf_counter(), 0.0, 0.0, 0, 0.0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = json.dumps(body).encode()
    writer.write(
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Authorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
        % (path.encode(), key.encode(), len(sent), sent)
    )
    status = int((await reader.readline()).split()[1])
    assert status == 200, (status, await reader.read())
    while line := await reader.readline():
        if line.startswith(b"event: retrieval"):
            await reader.readline()
            retrieval = json.loads((await reader.readline())[6:])["elapsed_ms"]
        if came := line.count(b"~"):
            words += came
            last_word = perf_counter() - began
            first = first or last_word
    writer.close()
    return Heard(first, last_word, perf_counter() - began, words, retrieval)


async def request(port: int, key: str) -> float:
    """Milliseconds of a request that asks the database who it is, and next to nothing else."""
    began = perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /api/v1/models/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer %s\r\n\r\n" % key.encode()
    )
    assert b" 200 " in await reader.readline()
    await reader.read()
    writer.close()
    return (perf_counter() - began) * 1000


@asynccontextmanager
async def model_server(
    listening: socket.socket, words: int, pause: float = 0.0
) -> AsyncIterator[None]:
    """It says its words as fast as they are read, or one in `pause` seconds, in one
    question that cites a passage, of which no support is asked. No word comes twice: an answer that
    repeats itself is stopped."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.partition("content-length:")[2].split(maxsplit=1)[0]))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for number in range(words):
            writer.write(event(delta(f"~{number} ")))
            await writer.drain()
            await asyncio.sleep(pause)
        writer.write(event(delta("? [1]")) + event(delta(finish="stop")) + event("[DONE]"))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, sock=listening.dup(), backlog=512)
    yield
    server.close()


async def until_ready(port: int, key: str, question: str) -> None:
    """The first answers load what later ones need."""
    for _ in range(10):
        await listen(port, ADDRESS, {"message": question}, key)


@contextmanager
def web_server(model_port: int) -> Iterator[tuple[int, psutil.Process]]:
    options = {"base_url": f"http://127.0.0.1:{model_port}", "model": "stub"}
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "ragsite.wsgi:application"),
                *("--config=python:ragsite.gunicorn", f"--bind=fd://{listening.fileno()}"),
                "--log-level=warning",
            ],
            cwd=settings.BASE_DIR,
            env={
                **os.environ,
                "CHAT_BACKEND": "inference.backends.chat_openai.OpenAIChat",
                "CHAT_OPTIONS": json.dumps(options),
            },
            pass_fds=[listening.fileno()],
        )
        port = listening.getsockname()[1]
    try:
        yield port, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def documents() -> Iterator[tuple[str, list[str]]]:
    """A key, and questions in words of its documents."""
    workspace = get_or_create_workspace(slug=NAME)
    user = get_user_model().objects.create_user(username=NAME)
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    collection = Collection.objects.create(
        workspace=workspace, slug=NAME, name=NAME, space=default_space()
    )
    try:
        texts = list(sources(np.random.default_rng(1)))
        ingest_inline(collection=collection, sources=texts)
        _, key = create_key(user=user, workspace=workspace, name=NAME, scopes=["read", "chat"])
        said = [source.read().decode().split() for source in texts]
        yield key, [" ".join(words[:QUESTION_WORDS]) + "?" for words in said]
    finally:
        delete_collection(collection=collection)
        user.delete()
        workspace.delete()


if __name__ == "__main__":
    main()
