"""Ingestion against the least that it could cost, in one run.

    python -m bench.ingestion [--chunks 8000] [--items 5000] [--rounds 3] [--documents PATH]

1. Documents with the hashing embedder's vectors, from their texts to ready, against a bare binary
   COPY of the same rows into the same table with the same indexes, in turns.
2. A program's items with vectors of their own, in batches of a thousand, against a bare binary COPY
   of the rows that they become into a table with the same columns and indexes.
3. The bundled model over documents: which share of the wall time is inside the model; and a second
   run over the unchanged documents. They are made here unless a file of JSON lines with `_id` and
   `text` is named.

Removes what it made.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDERS"] = '{"hashing": {"BACKEND": "inference.backends.hashing.HashingEmbedder"}}'
for variable in ("EMBEDDER_BACKEND", "EMBEDDER_OPTIONS"):
    os.environ.pop(variable, None)  # the bundled model

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "ingest"])

import numpy as np
from django.db import connection

from accounts.services import get_or_create_workspace
from bench.search import sentence
from documents.ingestion.items import Item
from documents.ingestion.loader import CHUNK_COLUMNS
from documents.ingestion.sources import Source, discover, text_source
from documents.models import Chunk, Collection, Document, IngestionRun
from documents.services import (
    add_space,
    build_space_index,
    delete_collection,
    delete_items,
    drop_space,
    ingest_inline,
    store_items,
)

NAME = "benchmark-ingestion"
MODEL_DOCUMENTS = 300
ITEMS = 5000
BATCH = 1000
CHUNKS = 8000
ROUNDS = 3
MUST_LOAD = 0.8
MUST_BE_MODEL = 0.9
MUST_SKIP = 50
_NAMES = ", ".join(f'"{name}"' for name, _ in CHUNK_COLUMNS)


def main() -> None:
    options = _options()
    copy_ratio = load_rate(options.chunks, options.rounds)
    store_ratio = store_rate(options.items, options.rounds)
    share, faster = model_share(options.documents)
    missed = [
        text
        for reached, text in (
            (copy_ratio >= MUST_LOAD, f"ready chunks {copy_ratio:.2f} of a bare COPY's"),
            (store_ratio >= MUST_LOAD, f"stored items {store_ratio:.2f} of a bare COPY's"),
            (share >= MUST_BE_MODEL, f"{share:.0%} of the time inside the model"),
            (faster >= MUST_SKIP, f"an unchanged run {faster:.0f} times as fast"),
        )
        if not reached
    ]
    if missed:
        raise SystemExit(f"below what must be reached: {', '.join(missed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--documents", type=Path, help="JSON lines with _id and text")
    return parser.parse_args()


def load_rate(chunks: int, rounds: int) -> float:
    """Ready chunks a second through the product, as a share of the bare COPY's."""
    sources = list(_made(chunks))
    with _collection("hashing") as collection:  # tokenizer, language model, plans
        _ingest(collection, sources[:100])
    ingested, copied = [], []
    for _ in range(rounds):
        with _collection("hashing") as collection:
            _vacuum()
            run, seconds = _ingest(collection, sources)
            ingested.append(run.chunks / seconds)
            rows = _copied_out(collection)
            Chunk.objects.filter(collection=collection).delete()
            _vacuum()
            copied.append(run.chunks / _copied_in(rows))
            print(
                f"{run.chunks:,} chunks of {len(sources):,} documents: {ingested[-1]:,.0f} ready a"
                f" second, bare COPY {copied[-1]:,.0f}; seconds a stage {run.timings}",
                flush=True,
            )
    ratio = median(a / b for a, b in zip(ingested, copied, strict=True))
    print(f"ingestion / bare COPY: {ratio:.2f} (median of {rounds})")
    return ratio


def store_rate(count: int, rounds: int) -> float:
    """Items a second that a program stores with their vectors, as a share of the bare COPY's."""
    random = np.random.default_rng(2)
    texts = [" ".join(sentence(random) for _ in range(9)) for _ in range(count)]
    ratios = []
    for _ in range(rounds):
        with _collection("hashing") as collection, _bare_table() as table:
            Collection.objects.filter(pk=collection.pk).update(graph=Collection.Graph.RULES)
            vectors = random.normal(size=(count, collection.space.dimensions))
            items = [Item(f"item {n}", texts[n], vectors[n], {"number": n}) for n in range(count)]
            store_items(collection=collection, items=[Item("warm", texts[0], vectors[0])])
            delete_items(collection=collection, keys=["warm"])
            _vacuum()
            stored, copied = [], []
            for first in range(0, count, BATCH):  # in turns: other work on the host slows both
                started = perf_counter()
                store_items(collection=collection, items=items[first : first + BATCH])
                stored.append(perf_counter() - started)
                copied.append(_copied_in(_copied_out(collection, skipped=first), table))
        ratios.append(sum(copied) / sum(stored))
        print(
            f"{count:,} items of {np.mean([len(text) for text in texts]):.0f} characters:"
            f" {count / sum(stored):,.0f} stored a second, bare COPY {count / sum(copied):,.0f},"
            f" {ratios[-1]:.2f} of it; seconds a batch, the first and the last:"
            f" {stored[0]:.2f} and {stored[-1]:.2f}, bare {copied[0]:.2f} and {copied[-1]:.2f}",
            flush=True,
        )
    print(f"stored items / bare COPY: {median(ratios):.2f} (median of {rounds})")
    return median(ratios)


@contextmanager
def _bare_table() -> Iterator[str]:
    """Empty, with the columns and indexes of the chunks, vectors' included, and nothing else."""
    table = "benchmark_ingestion_bare"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {table}")
        cursor.execute(f"CREATE TABLE {table} (LIKE documents_chunk INCLUDING ALL)")
    try:
        yield table
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE {table}")


def model_share(path: Path | None) -> tuple[float, float]:
    """Share of the wall time inside the model, and how much faster an unchanged run is."""
    sources = list(_read(path) if path else _made(MODEL_DOCUMENTS * 3))
    with TemporaryDirectory() as folder, _collection("default") as collection:
        for source in sources:
            (Path(folder) / f"{source.key}.txt").write_bytes(source.read())
        first, seconds = _ingest(collection, discover([Path(folder)]))
        again, seconds_again = _ingest(collection, discover([Path(folder)]))
    assert again.skipped == first.ready, "a second run must find everything unchanged"
    share = first.timings["embed"] / seconds
    print(
        f"{first.ready:,} documents, {first.chunks:,} chunks in {seconds:.1f} s: {share:.0%} of it"
        f" inside the model; seconds a stage {first.timings}; unchanged {seconds_again:.2f} s,"
        f" {seconds / seconds_again:.0f} times as fast"
    )
    return share, seconds / seconds_again


def _ingest(
    collection: Collection, sources: Sequence[Source] | Iterator[object]
) -> tuple[IngestionRun, float]:
    started = perf_counter()
    run = ingest_inline(collection=collection, sources=sources)
    return run, perf_counter() - started


def _copied_out(collection: Collection, *, skipped: int = 0) -> bytes:
    statement = (
        f"COPY (SELECT {_NAMES} FROM documents_chunk WHERE collection_id = {int(collection.pk)}"
        f" ORDER BY id OFFSET {skipped}) TO STDOUT (FORMAT BINARY)"
    )
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        return b"".join(bytes(part) for part in copy)


def _copied_in(rows: bytes, table: str = "documents_chunk") -> float:
    started = perf_counter()
    statement = f"COPY {table} ({_NAMES}) FROM STDIN (FORMAT BINARY)"
    with connection.cursor() as cursor, cursor.cursor.copy(statement) as copy:
        copy.write(rows)
    return perf_counter() - started


def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_chunk, documents_document")


@contextmanager
def _collection(embedder: str) -> Iterator[Collection]:
    """Empty, in a space of its own with an index, as a site has them."""
    space, _ = add_space(name=f"{NAME}-{embedder}", embedder=embedder)
    build_space_index(space=space)
    # Reading for the graph comes behind “ready”: it is no part of loading.
    graph = Collection.Graph.OFF if embedder == "hashing" else Collection.Graph.RULES
    collection = Collection.objects.create(
        graph=graph, workspace=get_or_create_workspace(slug=NAME), slug=NAME, name=NAME, space=space
    )
    try:
        yield collection
    finally:
        delete_collection(collection=collection)
        collection.workspace.delete()
        drop_space(space=space)
        Document.objects.filter(collection=collection.pk).delete()


def _made(chunks: int) -> Iterator[Source]:
    """Texts of 1 to 8 chunks."""
    random = np.random.default_rng(1)
    made = 0
    while made < chunks:
        size = int(random.integers(1, 9))
        made += size
        text = " ".join(sentence(random) for _ in range(14 * size))
        yield text_source(str(made), text, language="en")


def _read(path: Path) -> Iterator[Source]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield text_source(str(record["_id"]), f"{record.get('title', '')}\n\n{record['text']}")


if __name__ == "__main__":
    sys.exit(main())
