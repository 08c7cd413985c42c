"""Indexes of embedding spaces: what each finds of the truly nearest, its time and its size.

    python -m bench.spaces [corpus.jsonl] [--count 6000]

Embeds texts with the bundled model, gives the same vectors to a space of each kind, and searches
them as the site does. Texts are made here unless a JSON-lines file is named, with `title` and
`text`; then the questions are those of `queries.jsonl` beside it, else first sentences of texts
that are not in the spaces. Removes what it made, also on Ctrl-C.
"""

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["RAGSITE_EXACT_SCAN_CHUNKS"] = "-1"  # no scope is too small for its index
for variable in ("EMBEDDER_BACKEND", "EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)  # the bundled model

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import numpy as np
from django.db import connection

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from bench.embedding import _made, _read
from documents.ingestion.vector_indexes import index_states
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.services import add_space, build_space_index, delete_collection, drop_space
from inference.model_registry import embedders
from inference.vectors import check_vectors
from search.query import parse_query
from search.results import Scope
from search.retrieval.arms import Retrieved, retrieve

SLUG = "benchmark-spaces"
KINDS: dict[str, dict[str, Any]] = {
    "exact": {"index_type": "none"},
    "hnsw full": {"index_type": "hnsw", "precision": "full"},
    "hnsw half": {"index_type": "hnsw", "precision": "half"},
    "hnsw binary": {"index_type": "hnsw", "precision": "binary"},
    "ivfflat full": {"index_type": "ivfflat", "precision": "full"},
}
#: How many chunks an arm lists: a short list, and the one that the site's searches ask for.
DEPTHS = (10, 200)
NEAREST = 10
MADE = 2500  # below about 2,000, PostgreSQL rather sorts all rows than read 1,000 by their bits
READ = 6000
HELD_OUT = 200
WARM_UP = 20

HALF_MAY_LOSE = 0.005
HALF_MAY_WEIGH = 0.6
BINARY_MUST_FIND = 0.97


@dataclass(slots=True)
class Shelf:
    """A space with all vectors, and what was measured of it, by depth."""

    name: str
    space: EmbeddingSpace
    build_seconds: float = 0.0
    index_bytes: int = 0
    times: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})
    recalls: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})

    def recall(self, depth: int) -> float:
        """Mean over the questions."""
        return float(np.mean(self.recalls[depth]))


def main() -> None:
    options = _options()
    texts, questions = _material(options.path, options.count)
    vectors = _embedded(texts)
    with _throw_away_collection() as collection:
        shelves = [_shelf(collection, name, texts, vectors) for name in KINDS]
        _vacuum()
        for shelf in shelves:
            _build(shelf)
        _check_plans(collection, shelves, questions[0])
        _measure(collection, shelves, questions)
    _print_table(shelves, len(texts), len(questions))
    _check_figures({shelf.name: shelf for shelf in shelves})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", help="JSON lines with title and text")
    parser.add_argument(
        "--count", type=int, help=f"texts at most: {READ:,} of a file, {MADE:,} that are made"
    )
    return parser.parse_args()


def _material(path: Path | None, count: int | None) -> tuple[list[str], list[str]]:
    """Texts and questions."""
    count = count or (READ if path else MADE)
    texts = _read(path) if path else _made(count + HELD_OUT)
    asked = path.with_name("queries.jsonl") if path else None
    if asked and asked.exists():
        with asked.open(encoding="utf-8") as lines:
            return texts[:count], [json.loads(line)["text"] for line in lines]
    held_out = texts[count : count + HELD_OUT] or texts[-HELD_OUT:]
    kept = texts[: len(texts) - len(held_out)][:count]
    return kept, [text.split(". ")[0] for text in held_out]


def _embedded(texts: Sequence[str]) -> Any:
    started = perf_counter()
    embedder = embedders["default"]
    vectors = check_vectors(embedder.embed_documents(texts), dimensions=embedder.dimensions)
    print(f"embedded {len(texts):,} texts in {perf_counter() - started:.0f} s")
    return vectors


# --- the spaces ----------------------------------------------------------------------------------


@contextmanager
def _throw_away_collection() -> Iterator[Collection]:
    _remove()  # what a killed run left
    try:
        workspace = get_or_create_workspace(slug=SLUG)
        space = EmbeddingSpace.objects.earliest("pk")  # each search names its own
        yield Collection.objects.create(workspace=workspace, slug=SLUG, space=space)
    finally:
        _remove()


def _remove() -> None:
    for workspace in Workspace.objects.filter(slug=SLUG):
        for collection in workspace.collections.all():
            delete_collection(collection=collection)
        workspace.delete()
    for space in EmbeddingSpace.objects.filter(name__startswith=SLUG):
        drop_space(space=space)


def _shelf(collection: Collection, name: str, texts: Sequence[str], vectors: Any) -> Shelf:
    """All in one collection, as while chunks move from space to space, so that PostgreSQL's
    guess of a space's rows is right."""
    workspace = collection.workspace
    space, _ = add_space(name=f"{SLUG}-{name.replace(' ', '-')}", **KINDS[name])
    document = Document.objects.create(workspace=workspace, collection=collection, key=name)
    rows = (
        Chunk(
            workspace=workspace,
            collection=collection,
            document=document,
            space=space,
            ordinal=ordinal,
            text=text,
            start=0,
            end=len(text),
            embedding=vector,
        )
        for ordinal, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    )
    Chunk.objects.bulk_create(rows, batch_size=500)
    return Shelf(name, space)


def _vacuum() -> None:
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_chunk")


def _build(shelf: Shelf) -> None:
    if shelf.space.index_type == "none":
        return
    started = perf_counter()
    build_space_index(space=shelf.space)
    shelf.build_seconds = perf_counter() - started
    shelf.index_bytes = index_states([shelf.space])[shelf.space.pk].bytes


# --- asking --------------------------------------------------------------------------------------


def _ask(collection: Collection, shelf: Shelf, question: str, depth: int) -> Retrieved:
    Collection.objects.filter(pk=collection.pk).update(space=shelf.space)
    scope = Scope(collection.workspace_id, (collection.pk,))
    found = retrieve(parse_query(question), scope=scope, mode="vector", depth=depth)
    wanted = "exact" if shelf.space.index_type == "none" else "ann"
    if found.arms[0].method != wanted:
        raise SystemExit(f"{shelf.name}, depth {depth}: the scan was {found.arms[0].method}")
    return found


def _check_plans(collection: Collection, shelves: Sequence[Shelf], question: str) -> None:
    """Exits where PostgreSQL's planner, left to itself, does not take the index."""
    for shelf in shelves:
        for depth in DEPTHS:
            with _plans() as plans:
                _ask(collection, shelf, question, depth)
            name, exact = shelf.space.sql.index_name, shelf.space.index_type == "none"
            if (name in plans[0]) == exact:
                plan = re.sub(r"'\[.*?\]'", "'[…]'", plans[0])
                raise SystemExit(f"{shelf.name}, depth {depth}, another plan:\n{plan}")
    print("PostgreSQL takes every index by itself, at each depth")


@contextmanager
def _plans() -> Iterator[list[str]]:
    """The plans of searches, each made under the settings that the search sets itself."""
    plans: list[str] = []

    def explain(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if sql.startswith("WITH"):
            execute(f"EXPLAIN {sql}", params, many, context)
            plans.append("\n".join(line for (line,) in context["cursor"].fetchall()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield plans


def _measure(collection: Collection, shelves: Sequence[Shelf], questions: Sequence[str]) -> None:
    """In turns, so that a busy moment falls on all alike. The first shelf is the exact one."""
    for question, shelf in product(questions[:WARM_UP], shelves):
        _ask(collection, shelf, question, max(DEPTHS))
    for question in questions:
        for depth in DEPTHS:
            answers = [_ask(collection, shelf, question, depth) for shelf in shelves]
            farthest = min(_nearest(answers[0]))
            for shelf, found in zip(shelves, answers, strict=True):
                shelf.times[depth].append(found.timings["database"])
                # By similarity: of two texts that are equally near, either is right.
                right = [similarity >= farthest for similarity in _nearest(found)]
                shelf.recalls[depth].append(sum(right) / NEAREST)


def _nearest(found: Retrieved) -> list[float]:
    """Similarities of the best."""
    return sorted(
        (entry.arm_score("similarity") or 0.0 for entry in found.candidates), reverse=True
    )[:NEAREST]


# --- telling -------------------------------------------------------------------------------------


def _print_table(shelves: Sequence[Shelf], texts: int, questions: int) -> None:
    print(f"{texts:,} texts, {questions:,} questions; recall@{NEAREST}, ms p50 / p95 by depth")
    print(f"{'':12}" + "".join(f"{f'depth {depth}':>28}" for depth in DEPTHS) + "     index  built")
    for shelf in shelves:
        columns = (
            f"{shelf.recall(depth):10.4f}{_spread(shelf.times[depth]):>18}" for depth in DEPTHS
        )
        size = f"{shelf.index_bytes / 2**20:7.1f} MB {shelf.build_seconds:4.1f} s"
        print(f"{shelf.name:12}{''.join(columns)}{size if shelf.index_bytes else ''}")


def _spread(times: list[float]) -> str:
    return "{:.1f} / {:.1f}".format(*np.percentile(times, [50, 95]))


def _check_figures(shelves: dict[str, Shelf]) -> None:
    full, half, binary = (shelves[f"hnsw {name}"] for name in ("full", "half", "binary"))
    faults = []
    if (share := half.index_bytes / full.index_bytes) > HALF_MAY_WEIGH:
        faults.append(f"half weighs {share:.2f} of full")
    for depth in DEPTHS:
        if (loss := full.recall(depth) - half.recall(depth)) > HALF_MAY_LOSE:
            faults.append(f"half loses {loss:.4f} at depth {depth}")
        if (found := binary.recall(depth)) < BINARY_MUST_FIND:
            faults.append(f"binary finds {found:.4f} at depth {depth}")
    if faults:
        raise SystemExit("missed: " + "; ".join(faults))


if __name__ == "__main__":
    main()
