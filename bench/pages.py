"""How long the site takes to make its pages, with 10,000 passages in the workspace.

    python -m bench.pages [PASSAGES]

Each page is asked for through Django's test client: middleware, view, database and template, and no
network. Documents of Zipf-distributed words, with the hashing embedder's vectors, are made for it
and removed afterwards, so no figure holds a model's time.
"""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["LOG_LEVEL"] = "WARNING"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
for variable in ("EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import numpy as np
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from rich.live import Live
from rich.table import Table

from accounts.models import Membership, Role
from accounts.services import get_or_create_workspace
from bench.search import VOCABULARY, sentence, word
from documents.ingestion.sources import Source, text_source
from documents.models import Chunk, Collection, Document
from documents.services import add_space, delete_collection, drop_space, ingest_inline
from rag.models import Conversation, Message

PASSAGES = 10_000
NAME = "benchmark-pages"
SECTIONS = 20
QUESTIONS = 25
WORDS = 5
#: Of each page the best of so many is taken: what disturbs a machine makes nothing faster.
ROUNDS = 2
#: Milliseconds that a page may take, at the 95th percentile of its addresses.
MOST_MS = 100

Addresses = Sequence[str]


@dataclass(frozen=True, slots=True)
class Speed:
    """A page: milliseconds over its addresses, kilobytes of its HTML, and statements it sends."""

    page: str
    p50_ms: float
    p95_ms: float
    kilobytes: float
    statements: int


def main(passages: int) -> int:
    with site(passages) as (client, collection), Live(table := new_table()):
        speeds = [shown(table, measured(client, *page)) for page in pages(collection)]
    return 1 if any(speed.p95_ms >= MOST_MS for speed in speeds) else 0


@contextmanager
def site(passages: int) -> Iterator[tuple[Client, Collection]]:
    """A workspace with so many passages, and a browser in which its owner is logged in."""
    space, _ = add_space(name=NAME)
    workspace = get_or_create_workspace(slug=NAME)
    user = get_user_model().objects.create_superuser(username=NAME)
    Membership.objects.create(workspace=workspace, user=user, role=Role.OWNER)
    collection = Collection.objects.create(
        workspace=workspace, slug="papers", name="Papers", space=space, graph=Collection.Graph.RULES
    )
    try:
        fill(collection, passages)
        # As a web worker does once it has loaded everything.
        gc.collect()
        gc.freeze()
        client = Client(HTTP_HOST="localhost")
        client.force_login(user)
        yield client, collection
    finally:
        delete_collection(collection=collection)
        workspace.delete()
        user.delete()
        drop_space(space=space)


def fill(collection: Collection, passages: int) -> None:
    """Short sections share a passage, so documents come until there are enough."""
    random, made = np.random.default_rng(1), 0
    while (there := Chunk.objects.filter(collection=collection).count()) < passages:
        number = -(-(passages - there) // SECTIONS)
        ingest_inline(collection=collection, sources=sources(made, number, random))
        made += number


def sources(first: int, number: int, random: np.random.Generator) -> Iterator[Source]:
    """Documents of twenty sections each, with what facets count."""
    for each in range(first, first + number):
        parts = [
            f"## {sentence(random)}\n\n" + " ".join(sentence(random) for _ in range(4))
            for _ in range(SECTIONS)
        ]
        yield text_source(
            f"folder-{each % 7}/{each}.md",
            f"# {sentence(random)}\n\n" + "\n\n".join(parts),
            file_name=f"{each}.md",
            language=("en", "de", "fr")[each % 3],
            metadata={
                "author": f"Author {each % 40}",
                "topic": f"topic {each % 6}",
                "date": f"{2010 + each % 15}-05-31",
            },
        )


def pages(collection: Collection) -> Iterator[tuple[str, Addresses]]:
    """The pages, each with addresses that stand for what people ask of it."""
    asked = [query.replace(" ", "+") for query in questions(collection)]
    picked = "filter=author=%22Author+3%22;language=en"
    documents = Document.objects.filter(collection=collection).order_by("id")[:QUESTIONS]
    opened = [
        f"/documents/papers/{pk}/?chunk={Chunk.objects.filter(document=pk)[7].pk}"
        for pk in documents.values_list("pk", flat=True)
    ]
    yield "search", [f"/?q={query}" for query in asked]
    yield "search, by words", [f"/?q={query}&mode=lexical" for query in asked]
    yield "search, by meaning", [f"/?q={query}&mode=vector" for query in asked]
    yield "search, with the graph", [f"/?q={query}&mode=graph" for query in asked]
    yield "search, newest first", [f"/?q={query}&sort=newest" for query in asked]
    yield "search, passages", [f"/?q={query}&group=0" for query in asked]
    yield "search, a facet picked", [f"/?q={query}&filter=author=%22Author+3%22" for query in asked]
    yield "search, two facets picked", [f"/?q={query}&{picked}" for query in asked]
    yield "search, explained", [f"/?q={query}&explain=1" for query in asked]
    yield "start", ["/"]
    yield "document", opened
    yield "documents", ["/documents/", "/documents/papers/"]
    yield "conversation", [f"/chat/{conversation(collection).pk}/"]
    for name in ("chat", "runs", "graph", "memory", "pipelines", "dashboard", "keys", "saved"):
        yield name, [f"/{name}/"]
    yield "dashboard, of a month", ["/dashboard/?range=30d"]
    yield "quality", ["/dashboard/quality/", "/dashboard/quality/papers/"]
    for model in ("documents/chunk", "documents/document", "search/searchlog"):
        yield f"admin: {model}", [f"/admin/{model}/"]


def questions(collection: Collection) -> list[str]:
    """The longest words of passages, at every so manyth: those that are rare here, as the words of
    a question are once the stop words are gone. All beyond the vocabulary are one word, which
    stands in most passages."""
    everywhere = word(VOCABULARY)
    texts = (
        Chunk.objects.filter(collection=collection).order_by("id").values_list("text", flat=True)
    )
    every = max(1, texts.count() // QUESTIONS)
    return [
        " ".join(
            sorted({*text.lower().replace(".", "").split()} - {everywhere}, key=_length)[-WORDS:]
        )
        for text in texts[::every][:QUESTIONS]
    ]


def _length(term: str) -> tuple[int, str]:
    """Words of one length by letters, so that every run asks the same."""
    return len(term), term


def conversation(collection: Collection) -> Conversation:
    """One of twenty questions with their answers."""
    owner = Membership.objects.get(workspace=collection.workspace).user
    made = Conversation.objects.create(workspace=collection.workspace, user=owner, title="Otters")
    for number in range(20):
        for role in (Message.Role.USER, Message.Role.ASSISTANT):
            Message.objects.create(
                workspace=made.workspace,
                conversation=made,
                role=role,
                content=f"Words {number}. " * 40,
            )
    return made


def measured(client: Client, page: str, addresses: Addresses) -> Speed:
    """The first round is not counted: it compiles templates and fills caches."""
    asked = list(addresses) * (1 if len(addresses) > 1 else 5)
    client.get(asked[0])
    statements: list[str] = []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        statements.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(noted):
        weight = len(client.get(asked[0]).content)
    times = np.min([[_milliseconds(client, each) for each in asked] for _ in range(ROUNDS)], axis=0)
    p50, p95 = np.percentile(times, [50, 95])
    return Speed(page, float(p50), float(p95), weight / 1000, len(statements))


def _milliseconds(client: Client, address: str) -> float:
    started = perf_counter()
    response = client.get(address)
    spent = (perf_counter() - started) * 1000
    if response.status_code != 200:
        raise SystemExit(f"{address} answered {response.status_code}.")
    return spent


def new_table() -> Table:
    return Table("page", "p50 ms", "p95 ms", "kB of HTML", "statements")


def shown(table: Table, speed: Speed) -> Speed:
    """The same, once it stands in the table."""
    mark = "" if speed.p95_ms < MOST_MS else f" (may take {MOST_MS})"
    table.add_row(
        speed.page,
        f"{speed.p50_ms:.0f}",
        f"{speed.p95_ms:.0f}{mark}",
        f"{speed.kilobytes:.0f}",
        str(speed.statements),
    )
    return speed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else PASSAGES))
