"""Clients of a site's API: each asks for one kind of thing, at a rate of its own."""

import http.client
import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any
from urllib.parse import quote

#: Documents, users and nodes that there come to be: the site is to hold as much at the end as soon
#: after the beginning, or what grows with it would look like a leak.
THINGS = 150
SECONDS = 60
WORDS = [
    *("harbour", "lantern", "orchard", "copper", "glacier", "saddle", "violin", "thunder"),
    *("meadow", "anchor", "walnut", "compass", "bridge", "feather", "granite", "mirror"),
    *("barrel", "candle", "falcon", "ribbon"),
]
#: How a connection looks that the server closed between two requests.
CLOSED = BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask, and the name under which it is counted."""

    kind: str
    method: str
    path: str
    body: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """When it was asked, in seconds since the beginning; status 0 where none came."""

    kind: str
    at: float
    milliseconds: float
    status: int
    told: str = ""


def sentence(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=12)).capitalize() + "."


def search(random: Random) -> Request:
    words = quote(" ".join(random.sample(WORDS, 3)))
    return Request("search", "GET", f"/api/v1/search/?q={words}&facet=*")


def chat(random: Random) -> Request:
    question = f"Where is the {random.choice(WORDS)} by the {random.choice(WORDS)}?"
    return Request("chat", "POST", "/api/v1/chat/", {"message": question, "conversation": None})


def ingest(random: Random) -> Request:
    """A document, each time with another text."""
    text = "\n\n".join(sentence(random) * 6 for _ in range(random.randint(1, 12)))
    body = {"collection": "notes", "key": f"note-{random.randrange(THINGS)}.txt", "text": text}
    return Request("ingest", "POST", "/api/v1/documents/", body)


def memory(random: Random) -> Request:
    user = f"?user_id=person-{random.randrange(THINGS // 10)}"
    said = f"My {random.choice(WORDS)} is the {random.choice(WORDS)}."
    which = random.random()
    if which < 0.4:
        return Request("memory", "POST", f"/api/v1/memory/contexts/{user}", {"user_message": said})
    if which < 0.6:
        path = f"/api/v1/memory/facts/{random.choice(WORDS)}/{user}"
        return Request("memory", "PUT", path, {"value": random.choice(WORDS)})
    body = {"messages": [{"role": "user", "content": f"What is my {random.choice(WORDS)}?"}]}
    return Request("memory", "POST", f"/api/v1/memory/inject/{user}", body)


def all_nodes() -> Request:
    """Those that `graph` asks about."""
    nodes = [{"id": f"src:load:{number}", "name": "New"} for number in range(THINGS)]
    return Request("graph", "POST", "/api/v1/graph/bulk/", {"nodes": nodes})


def graph(random: Random) -> Request:
    ends = [f"src:load:{random.randrange(THINGS)}" for _ in range(4)]
    if random.random() < 0.5:
        return Request("graph", "GET", f"/api/v1/graph/neighbors/?id={quote(ends[0])}")
    nodes = [{"id": end, "name": f"The {random.choice(WORDS)}"} for end in ends]
    edges = [{"source": ends[0], "rel": "NEAR", "target": end} for end in ends[1:]]
    return Request("graph", "POST", "/api/v1/graph/bulk/", {"nodes": nodes, "edges": edges})


#: Requests a second of one client of each kind.
RATES: dict[Callable[[Random], Request], float] = {
    search: 3.0,
    chat: 0.5,
    ingest: 0.5,
    memory: 1.0,
    graph: 1.0,
}


class Client(Thread):
    """Asks one kind until `enough`, over one connection as programs do, at random intervals that
    do not wait for the answers' sake: what is late is asked at once."""

    def __init__(
        self,
        make: Callable[[Random], Request],
        *,
        rate: float,
        seed: int,
        port: int,
        key: str,
        enough: Event,
        began: float,
    ) -> None:
        super().__init__(name=f"{make.__name__}-{seed}", daemon=True)
        self.answers: list[Answer] = []
        self._make, self._rate, self._random = make, rate, Random(seed)
        self._port, self._enough, self._began = port, enough, began
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def run(self) -> None:
        due = monotonic()
        while not self._enough.wait(max(0.0, due - monotonic())):
            due = max(due + self._random.expovariate(self._rate), monotonic() - 1)
            self.answers.append(self._ask(self._make(self._random)))
        self._connection.close()

    def ask_once(self, request: Request | None = None) -> Answer:
        """One answer, without beginning."""
        try:
            return self._ask(request or self._make(self._random))
        finally:
            self._connection.close()

    def _ask(self, request: Request) -> Answer:
        began = monotonic()
        body = None if request.body is None else json.dumps(request.body)
        try:
            status, told = self._answered(request, body)
        except CLOSED:  # by the server, because it was idle: every client asks again then
            self._connection.close()
            status, told = self._answered_anew(request, body)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            status, told = 0, repr(error)
        return Answer(
            request.kind,
            began - self._began,
            (monotonic() - began) * 1000,
            status,
            told if status == 0 or status >= 400 else "",
        )

    def _answered_anew(self, request: Request, body: str | None) -> tuple[int, str]:
        try:
            return self._answered(request, body)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return 0, repr(error)

    def _answered(self, request: Request, body: str | None) -> tuple[int, str]:
        self._connection.request(request.method, request.path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.read().decode(errors="replace")[:500]
