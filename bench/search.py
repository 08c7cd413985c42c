"""Searching: the service against the bare SQL of its own plan, in one run.

`python -m bench.search [CHUNKS]` makes a collection of that many chunks (default 10,000) of
Zipf-distributed words with the hashing embedder's vectors, and removes it afterwards.
"""

import os
import sys
from time import perf_counter

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import numpy as np
from django.db import connection

from accounts.services import get_or_create_workspace
from documents.ingestion.sources import text_source
from documents.models import Collection
from documents.services import delete_collection, get_or_create_collection, ingest_inline
from inference.handler import embedders
from search.query import parse_query
from search.results import MODES, Scope
from search.retrieval.facts import scope_facts
from search.retrieval.spaces import space_queries
from search.retrieval.statement import build_statement
from search.services import DEPTH, search, site_scope

QUERIES = 100
WORDS_A_CHUNK = 120
VOCABULARY = 30_000


def main(chunks: int) -> None:
    workspace = get_or_create_workspace(slug="benchmark")
    collection = get_or_create_collection(workspace=workspace, slug="search")
    random = np.random.default_rng(1)
    try:
        fill(collection, chunks, random)
        scope = site_scope(workspace=workspace)
        queries = [" ".join(words(random, 6)) for _ in range(QUERIES)]
        print(f"{chunks:,} chunks, {QUERIES} questions of six words; milliseconds p50 / p95")
        for mode in MODES:
            report(mode, scope, queries)
    finally:
        delete_collection(collection=collection)


def words(random: np.random.Generator, count: int) -> list[str]:
    return [f"word{min(rank, VOCABULARY)}" for rank in random.zipf(1.3, count)]


def fill(collection: Collection, chunks: int, random: np.random.Generator) -> None:
    started = perf_counter()
    texts = (" ".join(words(random, WORDS_A_CHUNK)) for _ in range(chunks))
    sources = (text_source(str(number), text, language="en") for number, text in enumerate(texts))
    run = ingest_inline(collection=collection, sources=sources)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_chunk")
    seconds = perf_counter() - started
    print(
        f"ingested {run.chunks:,} chunks in {seconds:.1f} s: {run.chunks / seconds:,.0f} a second"
    )


def report(mode: str, scope: Scope, queries: list[str]) -> None:
    bare = [bare_milliseconds(query, scope, mode) for query in queries]
    ranked = [
        milliseconds(lambda query=query: search(query, scope=scope, mode=mode, snippets=False))
        for query in queries
    ]
    shown = [
        milliseconds(lambda query=query: search(query, scope=scope, mode=mode)) for query in queries
    ]
    ratio = np.median(ranked) / np.median(bare)
    print(
        f"{mode:8} bare SQL {spread(bare)}   service {spread(ranked)} ({ratio:.2f}x)"
        f"   with snippets {spread(shown)}"
    )


def bare_milliseconds(query: str, scope: Scope, mode: str) -> float:
    """The statement alone: its plan, its vector and its parameters are there already."""
    parsed, facts = parse_query(query), scope_facts(scope)
    spaces = space_queries(parsed, scope, facts, depth=DEPTH).queries if mode != "lexical" else ()
    statement = build_statement(
        parsed, scope=scope, depth=DEPTH, lexical=mode != "vector", spaces=spaces
    )

    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement.sql, statement.parameters)
            cursor.fetchall()

    return milliseconds(run)


def milliseconds(work: object) -> float:
    started = perf_counter()
    work()  # type: ignore[operator]
    return (perf_counter() - started) * 1000


def spread(times: list[float]) -> str:
    return "{:.1f} / {:.1f}".format(*np.percentile(times, [50, 95]))


if __name__ == "__main__":
    embedders["default"].embed_query("load")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
