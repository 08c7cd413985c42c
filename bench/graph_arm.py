"""The graph arm of a search, over a million edges and a million mentions.

    python -m bench.graph_arm [--nodes 200000] [--edges 1000000] [--passages 100000]

Makes the graph of `bench.graph` and passages that name its nodes, with the same power law, then
asks from ten passages at a time, as a search does from its best hits. Removes what it made.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

from bench.graph import EDGES, NODES, Made, build, draw, freeze, node_id, remove  # sets Django up

# isort: split

import numpy as np
from django.db import connection
from psycopg.types.json import Jsonb
from rich.console import Console

from accounts.services import get_or_create_workspace
from common.sql import copy_rows
from documents.languages import configuration_oids
from documents.models import Chunk, Collection, Document
from documents.services import create_collection, delete_collection
from graph.models import Mention, Node
from graph.retrieval import rank_passages
from graph.scopes import GraphScope
from search.query_options import site_scope
from search.retrieval.statements import scope_conditions

NAME = "benchmark-graph-arm"
PASSAGES, NAMED, DOCUMENTS = 100_000, 10, 10_000
QUESTIONS, SEEDS = 200, 10
MUST_ANSWER = 60.0
#: Most things are named in a handful of passages, the first of each 200,000 in 1 of 60.
SKEW = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--edges", type=int, default=EDGES)
    parser.add_argument("--passages", type=int, default=PASSAGES)
    options = parser.parse_args()
    workspace = get_or_create_workspace(slug=NAME)
    console = Console()
    collection = None
    try:
        remove(workspace.pk)
        made = draw(GraphScope(workspace.pk), options.nodes, options.edges)
        build(made, console)
        collection = create_collection(workspace=workspace, name=NAME, graph="off")
        chunk_ids = fill(collection, options.passages)
        mentions = name(made, chunk_ids)
        freeze()
        reached = ask(made, collection, chunk_ids, mentions, console)
    finally:
        if collection is not None:
            delete_collection(collection=collection)
        remove(workspace.pk)
        workspace.delete()
    if not reached:
        sys.exit(1)


def fill(collection: Collection, count: int) -> Sequence[int]:
    """Passages in documents of ten; their ids. Without vectors: the arm reads none."""
    documents = [
        Document(
            workspace_id=collection.workspace_id,
            collection=collection,
            key=f"document-{number}",
            status=Document.Status.READY,
        )
        for number in range(min(DOCUMENTS, count))
    ]
    Document.objects.bulk_create(documents, batch_size=5000)
    english = configuration_oids()["english"]
    columns = (
        ("workspace_id", "int8"),
        ("collection_id", "int8"),
        ("document_id", "int8"),
        ("space_id", "int8"),
        ("ordinal", "int4"),
        ("key", "varchar"),
        ("text", "text"),
        ("context", "text"),
        ("heading_path", "text[]"),
        ("summary", "text"),
        ("token_count", "int4"),
        ("start", "int8"),
        ("end", "int8"),
        ("media_type", "varchar"),
        ("metadata", "jsonb"),
        ("language", "oid"),
        ("content_sha256", "varchar"),
        ("is_current", "bool"),
    )

    def rows() -> Iterator[tuple[Any, ...]]:
        for number in range(count):
            document = documents[number % len(documents)]
            text = f"Passage {number} says what is so and what is not."
            yield (
                *(collection.workspace_id, collection.pk, document.pk, collection.space_id),
                *(number // len(documents), "", text, "", [], "", 10, 0, len(text)),
                *("text/plain", Jsonb({}), english, f"{number:064d}", True),
            )

    copy_rows("documents_chunk", columns, rows())
    ids = Chunk.objects.filter(collection=collection).order_by("id").values_list("id", flat=True)
    return list(ids)


def name(made: Made, chunk_ids: Sequence[int]) -> int:
    """Ten things a passage; how many mentions that is."""
    chance = np.random.default_rng(11)
    known = dict(Node.objects.filter(workspace=made.scope.workspace_id).values_list("key", "pk"))
    pks = np.array([known[node_id(number)] for number in range(made.nodes)])
    shuffled = chance.permutation(pks)
    places = (made.nodes * chance.random((len(chunk_ids), NAMED)) ** SKEW).astype(np.int64)
    pairs = {
        (chunk, int(node))
        for chunk, row in zip(chunk_ids, shuffled[places], strict=True)
        for node in row
    }
    columns = (
        ("workspace_id", "int8"),
        ("chunk_id", "int8"),
        ("node_id", "int8"),
        ("kind", "int2"),
        ("count", "int4"),
        ("start", "int4"),
        ("end", "int4"),
    )
    workspace, kind = made.scope.workspace_id, int(Mention.Kind.TEXT)
    copy_rows(
        "graph_mention",
        columns,
        ((workspace, chunk, node, kind, 1, 0, 5) for chunk, node in sorted(pairs)),
    )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE graph_mention, documents_chunk, documents_document")
    return len(pairs)


def ask(
    made: Made,
    collection: Collection,
    chunk_ids: Sequence[int],
    mentions: int,
    console: Console,
) -> bool:
    """From ten passages each; whether fast enough."""
    chance = np.random.default_rng(13)
    within, parameters = scope_conditions(
        site_scope(workspace=collection.workspace, collections=[collection.slug])
    )
    times, listed = [], []
    for _ in range(QUESTIONS):
        seeds = {int(pk): 1 / (1 + n) for n, pk in enumerate(chance.choice(chunk_ids, SEEDS))}
        asked = f"What has thing {chance.integers(made.nodes)} to do with the others?"
        started = perf_counter()
        ranked = rank_passages(
            question=asked,
            workspace_id=made.scope.workspace_id,
            seeds=seeds,
            within=within,
            parameters=parameters,
            limit=100,
        )
        times.append((perf_counter() - started) * 1000)
        listed.append(len(ranked.scores))
    p50, p95 = np.percentile(times, [50, 95])
    console.print(
        f"graph arm over {made.edges:,} edges and {mentions:,} mentions of {made.nodes:,} nodes in"
        f" {len(chunk_ids):,} passages: p50 {p50:.1f} ms, p95 {p95:.1f} ms,"
        f" {np.mean(listed):.0f} passages listed; must be p95 < {MUST_ANSWER:g} ms"
    )
    return bool(p95 < MUST_ANSWER)


if __name__ == "__main__":
    main()
