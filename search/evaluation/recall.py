"""Whether filtered vector search finds what an exact scan finds, and how fast, by selectivity."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from common.copy import copy_rows
from common.errors import Conflict, NotFound
from documents.ingestion.loading import COLUMNS
from documents.languages import configuration_oids
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.services import add_space, build_space_index, default_space, drop_space
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
#: Standard deviation of the noise on a unit vector, all dimensions together: a perturbed vector
#: has a cosine of about 0.86 to its source, as two passages on one subject have.
NOISE = 0.6
BATCH = 10_000
MOST_SOURCES = 5000


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
    on_progress: Callable[[str, int, int], Any] = lambda what, done, total: None,
) -> list[Case]:
    """Perturb the site's own vectors to `chunks` of them, and search them through filters.

    Raises NotFound where the site has no vectors to start from.
    """
    sources, texts = _sources()
    chance = np.random.default_rng(7)
    questions = [parse_query(text[:500]) for text in chance.permutation(texts)[:queries]]
    with _filled(sources, chunks, chance, on_progress) as workspace:
        return [
            _measure(name, scope, questions, k)
            for name, scope in _progressing(_scopes(workspace), on_progress)
        ]


def _sources() -> tuple[NDArray[np.float32], list[str]]:
    """Vectors of the default space, and texts of the same chunks to ask for."""
    space = default_space()
    rows = list(
        Chunk.objects.filter(space=space, embedding__isnull=False)
        .exclude(text="")
        .order_by("content_sha256")  # as good as at random, and the same every time
        .values_list("embedding", "text")[:MOST_SOURCES]
    )
    if len(rows) < 2:
        raise NotFound(
            f"Space {space.name} holds no vectors to start from. Ingest some documents first, such"
            " as with `manage.py demo`."
        )
    vectors = np.array([vector for vector, _ in rows], dtype=np.float32)
    return vectors, [text for _, text in rows]


@contextmanager
def _filled(
    sources: NDArray[np.float32],
    count: int,
    chance: np.random.Generator,
    on_progress: Callable[[str, int, int], Any],
) -> Iterator[Workspace]:
    if EmbeddingSpace.objects.filter(name=NAME).exists():
        raise Conflict(
            f"Space {NAME} is there: another measurement runs, or one was killed. Remove its"
            f" workspace and run `manage.py spaces drop {NAME}`."
        )
    default = default_space()
    space, _ = add_space(name=NAME, embedder=default.embedder)
    workspace = get_or_create_workspace(slug=NAME)
    try:
        tenants = ["small", *(f"tenant-{number}" for number in range(TENANTS))]
        documents = {tenant: _document(workspace, space, tenant) for tenant in tenants}
        for start in range(0, count, BATCH):
            _load(documents, sources, range(start, min(start + BATCH, count)), chance)
            on_progress("load", min(start + BATCH, count), count)
        on_progress("build the index of", count, count)
        build_space_index(space=space)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE documents_chunk")
        yield workspace
    finally:
        Chunk.objects.filter(workspace=workspace)._raw_delete("default")
        Workspace.objects.filter(pk=workspace.pk).delete()
        drop_space(space=space)


@transaction.atomic
def _load(
    documents: dict[str, Document],
    sources: NDArray[np.float32],
    numbers: range,
    chance: np.random.Generator,
) -> None:
    origin = chance.integers(0, len(sources), len(numbers))
    noise = chance.normal(size=(len(numbers), sources.shape[1])) * NOISE / sources.shape[1] ** 0.5
    vectors = sources[origin] + noise.astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # Nothing else may ask the connection while it copies, so this is asked before.
    english = configuration_oids()["english"]
    copy_rows("documents_chunk", COLUMNS, _rows(documents, numbers, vectors, chance, english))


def _rows(
    documents: dict[str, Document],
    numbers: range,
    vectors: NDArray[np.float32],
    chance: np.random.Generator,
    english: int,
) -> Iterator[Sequence[Any]]:
    for number, vector, lot in zip(numbers, vectors, chance.random(len(numbers)), strict=True):
        tenant = "small" if number < SMALL_TENANT else f"tenant-{number % TENANTS}"
        document = documents[tenant]
        text = f"passage {number} of {tenant}"
        shares = {f"share-{share:g}": True for share in SHARES if lot < share}
        yield (
            *(document.workspace_id, document.collection_id, document.pk),
            *(document.collection.space_id, number, "", text, ""),
            *([], "", 5, 100 * number, 100 * number + len(text), None, "text/plain"),
            *(Jsonb(shares), None, english, vector, f"{number:064d}"),
        )


def _document(workspace: Workspace, space: EmbeddingSpace, tenant: str) -> Document:
    """A tenant's collection, with one document for all its chunks."""
    collection = Collection.objects.create(
        workspace=workspace, slug=tenant, name=tenant, space=space, statistics_stale=True
    )
    return Document.objects.create(
        workspace=workspace,
        collection=collection,
        key=tenant,
        title=tenant,
        status=Document.Status.READY,
    )


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
    scopes: list[tuple[str, Scope]], on_progress: Callable[[str, int, int], Any]
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
