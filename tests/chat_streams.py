"""A model server that speaks when it is told to, and clients that listen to a site's chat."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from inference.tests.stub_server import delta, event

#: Far beyond what anything takes, so that only what never comes fails.
DEADLINE = 60.0


@dataclass
class Talk:
    """One request to the model, on its way."""

    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Model:
    """An OpenAI-compatible server. Requests are told apart by their number of tokens."""

    def __init__(self) -> None:
        self.talks: dict[int, Talk] = {}
        self._came = asyncio.Condition()

    @asynccontextmanager
    async def serving(self, listening: socket.socket) -> AsyncIterator["Model"]:
        server = await asyncio.start_server(self._talk, sock=listening.dup())
        try:
            yield self
        finally:
            server.close()
            for talk in self.talks.values():
                talk.writer.close()

    async def is_asked(self, numbers: Iterable[int]) -> None:
        """Return when all these requests are there, and wait for a word."""
        wanted = set(numbers)
        async with asyncio.timeout(DEADLINE), self._came:
            await self._came.wait_for(lambda: wanted <= self.talks.keys())

    async def say(self, number: int, text: str) -> None:
        talk = self.talks[number]
        talk.writer.write(event(delta(text)))
        await talk.writer.drain()

    async def finish(self, number: int) -> None:
        talk = self.talks[number]
        talk.writer.write(event(delta(finish="stop")) + event("[DONE]"))
        await talk.writer.drain()
        talk.writer.close()

    async def is_left(self, numbers: Iterable[int]) -> None:
        """Return when nobody waits for these any more."""
        async with asyncio.timeout(DEADLINE):
            for number in numbers:
                await self.talks[number].gone.wait()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split(maxsplit=1)[0])
        asked = json.loads(await reader.readexactly(length))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        await writer.drain()
        talk = Talk(writer)
        async with self._came:
            self.talks[asked.get("max_tokens") or asked["max_completion_tokens"]] = talk
            self._came.notify_all()
        try:
            await reader.read()
        except ConnectionError:
            pass
        finally:
            talk.gone.set()


class Listener:
    """A client of the chat: what it is told, as it comes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.status = 0
        self.events: list[tuple[str, str, Any]] = []  # name, id, data
        self._came = asyncio.Condition()
        self._listening: asyncio.Task[None] | None = None

    @property
    def tokens(self) -> list[str]:
        return [data["text"] for name, _, data in self.events if name == "token"]

    async def ask(self, port: int, key: str, message: str) -> None:
        """Return when the answer begins."""
        body = json.dumps({"message": message, "max_tokens": self.number, "history": []}).encode()
        reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._writer.write(
            b"POST /api/v1/chat/ HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
            % (key.encode(), len(body), body)
        )
        self.status = int((await reader.readline()).split()[1])
        await reader.readuntil(b"\r\n\r\n")
        if self.status == 200:
            self._listening = asyncio.create_task(self._listen(reader))

    async def hears(self, condition: Callable[["Listener"], bool]) -> None:
        """Return when it has heard so much that `condition` holds."""
        async with asyncio.timeout(DEADLINE), self._came:
            await self._came.wait_for(lambda: condition(self))

    async def hears_out(self) -> None:
        """Return at the end of the stream."""
        assert self._listening
        async with asyncio.timeout(DEADLINE):
            await self._listening

    def leave(self) -> None:
        """Close the connection."""
        assert self._listening
        self._listening.cancel()
        self._writer.close()

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        text = b""
        while size := int(await reader.readline(), 16):
            text += (await reader.readexactly(size + 2))[:-2]
            *blocks, text = text.split(b"\n\n")
            self.events += map(parsed, filter(is_event, blocks))
            async with self._came:
                self._came.notify_all()


def is_event(block: bytes) -> bool:
    return block.startswith(b"event:")


def parsed(block: bytes) -> tuple[str, str, Any]:
    fields = dict(line.split(": ", 1) for line in block.decode().splitlines())
    return fields["event"], fields["id"], json.loads(fields["data"])
