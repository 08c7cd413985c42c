"""Whether filtered vector search finds what an exact scan finds, and how fast, by selectivity."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection
from numpy.typing import NDArray

from accounts.models import Workspace
from search.evaluation.material import (
    Passage,
    Writer,
    filled_workspace,
    site_material,
)
from search.evaluation.progress import Progress, nobody_watches
from search.query import Query, parse_query
from search.results import Scope
from search.retrieval.arms import Retrieved, retrieve
from search.retrieval.statement import scope_size_statement
from search.services import DEPTH, site_scope

#: A workspace and a space that exist only while this runs.
NAME = "recall-measurement"
TENANTS = 50
SMALL_TENANT = 20
#: Shares of all chunks that a metadata filter keeps.
SHARES = (0.0002, 0.001, 0.01, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """One filter: how many chunks it keeps, and what came of searching through it."""

    name: str
    matching: int
    method: str
    fewest: int
    recall: float
    p50_ms: float
    p95_ms: float

    def is_complete(self, k: int) -> bool:
        """Whether every question got min(k, matching) hits."""
        return self.fewest >= min(k, self.matching)


def measure_recall(
    *,
    chunks: int = 100_000,
    queries: int = 50,
    k: int = 10,
    on_progress: Progress = nobody_watches,
) -> list[Case]:
    """Perturb the site's own vectors to `chunks` of them, and search them through filters.

    Raises NotFound where the site has no vectors to start from.
    """
    material = site_material()
    chance = np.random.default_rng(7)
    texts = [chunk.text for chunk in material.chunks]
    questions = [parse_query(text[:500]) for text in chance.permutation(texts)[:queries]]
    with filled_workspace(
        material,
        name=NAME,
        collections=["small", *(f"tenant-{number}" for number in range(TENANTS))],
        count=chunks,
        write=_writer(chance),
        chance=chance,
        on_progress=on_progress,
    ) as workspace:
        return [
            _measure(name, scope, questions, k)
            for name, scope in _progressing(_scopes(workspace), on_progress)
        ]


def _writer(chance: np.random.Generator) -> Writer:
    """Chunks of many tenants and of a small one, by chance marked for metadata filters."""

    def write(numbers: range, origins: NDArray[np.int64]) -> Iterator[Passage]:
        for number, lot in zip(numbers, chance.random(len(numbers)), strict=True):
            tenant = "small" if number < SMALL_TENANT else f"tenant-{number % TENANTS}"
            shares = {f"share-{share:g}": True for share in SHARES if lot < share}
            yield Passage(collection=tenant, text=f"a passage of {tenant}", metadata=shares)

    return write


def _scopes(workspace: Workspace) -> list[tuple[str, Scope]]:
    scopes = [
        (f"{share:.2%} by metadata", site_scope(workspace=workspace, metadata=_kept(share)))
        for share in SHARES
    ]
    scopes += [
        (f"collection {slug}", site_scope(workspace=workspace, collections=[slug]))
        for slug in ("small", "tenant-7")
    ]
    scopes.append(
        (
            "collection tenant-7, 10% by metadata",
            site_scope(workspace=workspace, collections=["tenant-7"], metadata=_kept(0.1)),
        )
    )
    return [*scopes, ("everything, no filter", site_scope(workspace=workspace))]


def _kept(share: float) -> dict[str, Any]:
    return {f"share-{share:g}": True}


def _progressing(
    scopes: list[tuple[str, Scope]], on_progress: Progress
) -> Iterator[tuple[str, Scope]]:
    for number, (name, scope) in enumerate(scopes, start=1):
        on_progress(f"search {name}", number, len(scopes))
        yield name, scope


def _measure(name: str, scope: Scope, questions: Sequence[Query], k: int) -> Case:
    found = [_vector_search(question, scope) for question in questions]
    with _exactly():
        exact = [_vector_search(question, scope) for question in questions]
    times = [result.timings["database"] for result in found]
    return Case(
        name=name,
        matching=_matching(scope),
        method="/".join(sorted({arm.method for result in found for arm in result.arms})),
        fewest=min(len(_nearest(result, k)) for result in found),
        recall=float(np.mean([_share_found(*pair, k) for pair in zip(found, exact, strict=True)])),
        p50_ms=round(float(np.percentile(times, 50)), 1),
        p95_ms=round(float(np.percentile(times, 95)), 1),
    )


def _vector_search(question: Query, scope: Scope) -> Retrieved:
    return retrieve(question, scope=scope, mode="vector", depth=DEPTH)


@contextmanager
def _exactly() -> Iterator[None]:
    limit = settings.EXACT_SCAN_CHUNKS
    settings.EXACT_SCAN_CHUNKS = 10**12
    try:
        yield
    finally:
        settings.EXACT_SCAN_CHUNKS = limit


def _nearest(result: Retrieved, k: int) -> set[int]:
    return {entry.chunk_id for entry in result.candidates if entry.ranks.get("vector", k + 1) <= k}


def _share_found(found: Retrieved, exact: Retrieved, k: int) -> float:
    truth = _nearest(exact, k)
    return len(truth & _nearest(found, k)) / len(truth) if truth else 1.0


def _matching(scope: Scope) -> int:
    statement = scope_size_statement(scope, at_most=10**9)
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.parameters)
        return int(cursor.fetchone()[0])
