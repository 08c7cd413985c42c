"""Speed and recall on a synthetic corpus made of the site's own chunks. Begin with `measure_speed`
and `measure_recall`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext, override_settings
from numpy.typing import NDArray
from psycopg.types.json import Jsonb
from rich.box import SIMPLE
from rich.table import Table

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from common.errors import Conflict, NotFound
from common.sql import copy_rows, fetch_rows
from documents import lexical_index
from documents.ingestion.loader import CHUNK_COLUMNS
from documents.languages import configuration_oids
from documents.models import Chunk, Collection, Document, EmbeddingSpace
from documents.services import add_space, build_space_index, default_space, drop_space
from search.evaluation.evaluate import Progress, ignore_progress
from search.query import Query, QueryError, parse_query
from search.query_options import site_scope
from search.ranked_results import DEPTH
from search.results import Mode, Scope
from search.retrieval.arms import Retrieved, retrieve
from search.retrieval.statements import scope_size_statement
from search.services import search
from search.snippets import sentences

#: Standard deviation of the noise on a unit vector, all dimensions together: a perturbed vector
#: has a cosine of about 0.86 to its source, as two passages on one subject have.
NOISE = 0.6
LOAD_BATCH = 10_000
MAX_SOURCES = 5000


@dataclass(frozen=True, slots=True)
class SourceChunks:
    """Chunks of one space to start from; the rows of `vectors` (chunks, dimensions)
    are those of `chunks`.
    """

    space: EmbeddingSpace
    chunks: tuple[Chunk, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SyntheticPassage:
    """A synthetic chunk; `collection` is a slug."""

    collection: str
    text: str
    context: str = ""
    language: str = "english"
    metadata: Mapping[str, Any] = field(default_factory=dict)


#: Returns the passages of a batch, given their numbers and the rows of the source chunks.
PassageWriter = Callable[[range, NDArray[np.int64]], Iterator[SyntheticPassage]]


def site_chunks(space: EmbeddingSpace | None = None) -> SourceChunks:
    """Chunks of `space`, or of the default one: at most MAX_SOURCES and always the same.

    Raises NotFound where there are fewer than two.
    """
    space = space or default_space()
    chunks = tuple(
        Chunk.objects.filter(space=space, embedding__isnull=False)
        .exclude(text="")
        .order_by("content_sha256")  # as good as at random, and the same every time
        .only("text", "context", "heading_path", "language", "embedding")[:MAX_SOURCES]
    )
    if len(chunks) < 2:
        raise NotFound(
            f"Space {space.name} holds no vectors to start from. Ingest some documents first, such"
            " as with `manage.py demo`."
        )
    vectors = np.array([chunk.embedding for chunk in chunks], dtype=np.float32)
    return SourceChunks(space, chunks, vectors)


@contextmanager
def filled_workspace(
    material: SourceChunks,
    *,
    name: str,
    collections: Sequence[str],
    count: int,
    write: PassageWriter,
    chance: np.random.Generator,
    on_progress: Progress = ignore_progress,
) -> Iterator[Workspace]:
    """A workspace and a space, both called `name`, with `count` synthetic chunks in `collections`:
    indexed and vacuumed. Removed at the end, also after errors.

    Raises Conflict where they exist already.
    """
    if EmbeddingSpace.objects.filter(name=name).exists():
        raise Conflict(
            f"Space {name} is there: another measurement runs, or one was killed. Remove its"
            f" workspace and run `manage.py spaces drop {name}`."
        )
    space, _ = add_space(name=name, embedder=material.space.embedder)
    workspace = get_or_create_workspace(slug=name)
    try:
        # One document for all chunks of a collection.
        documents = {
            slug: Document.objects.create(
                workspace=workspace,
                collection=Collection.objects.create(
                    workspace=workspace, slug=slug, name=slug, space=space
                ),
                key=slug,
                title=slug,
                status=Document.Status.READY,
            )
            for slug in collections
        }
        for start in range(0, count, LOAD_BATCH):
            numbers = range(start, min(start + LOAD_BATCH, count))
            _load_batch(material, documents, numbers, write, chance)
            on_progress("load", numbers.stop, count)
        on_progress("count and index", count, count)
        for document in documents.values():
            lexical_index.index_pending(document.collection_id)
        build_space_index(space=space)
        _vacuum()
        yield workspace
    finally:
        Chunk.objects.filter(workspace=workspace)._raw_delete("default")
        Workspace.objects.filter(pk=workspace.pk).delete()
        drop_space(space=space)
        _vacuum()


@transaction.atomic
def _load_batch(
    material: SourceChunks,
    documents: Mapping[str, Document],
    numbers: range,
    write: PassageWriter,
    chance: np.random.Generator,
) -> None:
    origins = chance.integers(0, len(material.vectors), len(numbers))
    vectors = perturb(material.vectors[origins], chance)
    # Nothing else may ask the connection while it copies, so this is asked before.
    oids = configuration_oids()
    passages = zip(numbers, vectors, write(numbers, origins), strict=True)

    def rows() -> Iterator[Sequence[Any]]:
        for number, vector, passage in passages:
            document, start = documents[passage.collection], 10_000 * number
            yield (
                *(document.workspace_id, document.collection_id, document.pk),
                *(document.collection.space_id, number, "", passage.text, passage.context),
                *([], "", len(passage.text.split()), start, start + len(passage.text), None, None),
                *("text/plain", Jsonb(dict(passage.metadata)), None, oids[passage.language]),
                *(vector, f"{number:064d}", True),
            )

    copy_rows("documents_chunk", CHUNK_COLUMNS, rows())


def perturb(vectors: NDArray[np.float32], chance: np.random.Generator) -> NDArray[np.float32]:
    """The same directions with noise, as unit vectors."""
    scale = NOISE / vectors.shape[1] ** 0.5
    noise = (chance.normal(size=vectors.shape) * scale).astype(np.float32)
    moved: NDArray[np.float32] = vectors + noise
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    return moved


def _vacuum() -> None:
    """Refreshes planner statistics, as autovacuum would do later."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE documents_chunk, documents_posting, documents_lexeme")


SENTENCES_A_CHUNK = 7
#: Most words of a sentence that are used as a question.
MAX_QUESTION_WORDS = 12
#: One question in four is a heading, where there are any, and one has nothing but common words.
QUESTION_SHARE = 4
#: Number of most common lexemes, and how many of them a question has.
COMMON_LEXEMES = 20
COMMON_WORDS = range(2, 6)

_FREQUENT_SQL = """
    SELECT lexeme FROM documents_chunk, unnest(tsvector_to_array(search_vector)) AS lexeme
    WHERE id = ANY(%s) AND lexeme ~ '^[[:alpha:]]{2,}$'
    GROUP BY lexeme ORDER BY count(*) DESC, lexeme LIMIT %s
"""


def passage_writer(
    material: SourceChunks, collections: Sequence[str], chance: np.random.Generator
) -> PassageWriter:
    """Passages of sentences drawn from all chunks in the language of their origin, under its
    context, in each of `collections` in turn.
    """
    pools = _sentences_by_language(material.chunks)

    def write(numbers: range, origins: NDArray[np.int64]) -> Iterator[SyntheticPassage]:
        for number, origin in zip(numbers, origins, strict=True):
            chunk = material.chunks[origin]
            pool = pools[chunk.language]
            drawn = chance.integers(0, len(pool), SENTENCES_A_CHUNK)
            yield SyntheticPassage(
                collection=collections[number % len(collections)],
                text=" ".join(pool[place] for place in drawn),
                context=chunk.context,
                language=chunk.language,
            )

    return write


def _sentences_by_language(chunks: Iterable[Chunk]) -> dict[str, list[str]]:
    pools: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        spans = sentences(chunk.text) or [(0, len(chunk.text))]
        pools[chunk.language] += [chunk.text[start:end] for start, end in spans]
    return pools


def make_questions(material: SourceChunks, count: int, chance: np.random.Generator) -> list[str]:
    """`count` shuffled questions: beginnings of sentences, headings, and common words alone."""
    headings = [chunk.heading_path[-1] for chunk in material.chunks if chunk.heading_path]
    of_sentences = [
        text for pool in _sentences_by_language(material.chunks).values() for text in pool
    ]
    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT_SQL, [[chunk.pk for chunk in material.chunks], COMMON_LEXEMES])
        lexemes = [lexeme for (lexeme,) in cursor.fetchall()]
    asked = [
        " ".join(chance.permutation(lexemes)[: chance.choice(COMMON_WORDS)])
        for _ in range(count // QUESTION_SHARE)
    ]
    asked += _sample_texts(headings, count // QUESTION_SHARE, chance)
    asked += _sample_texts(of_sentences, count - len(asked), chance)
    return [str(question) for question in chance.permutation(asked)]


def _sample_texts(texts: Sequence[str], count: int, chance: np.random.Generator) -> list[str]:
    """Beginnings of at most `count` different texts without query operators."""
    beginnings = dict.fromkeys(" ".join(text.split()[:MAX_QUESTION_WORDS]) for text in texts)
    plain = []
    for text in beginnings:
        with suppress(QueryError):
            query = parse_query(text)
            if not (query.phrases or query.excluded):
                plain.append(text)
    return [plain[place] for place in chance.permutation(len(plain))[:count]]


#: A workspace and a space that exist only while this runs.
SPEED_WORKSPACE = "benchmark"
SPEED_COLLECTIONS = tuple(f"collection-{number}" for number in range(5))
SIZES = (6_000, 100_000)
#: The best of these rounds counts: disturbances only slow things down.
ROUNDS = 2

#: Those that one statement answers; what the graph adds is measured by `bench.graph`.
SPEED_MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

#: Limit of the service's duration: this factor of the bare SQL, or this many milliseconds more.
MAX_SLOWDOWN = 1.25
MAX_EXTRA_MS = 2.0
#: Search by words in the largest size may take this times the smallest one's, at the 95th
#: percentile of the bare SQL.
MAX_GROWTH = 3.0

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of one kind of work over all questions."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Speed:
    """One mode at one size: the arms' SQL alone (`bare`), `search` without snippets (`service`),
    with them (`page`).

    `per_second` is the throughput of sequential searches with snippets.
    """

    chunks: int
    mode: Mode
    bare: Spread
    service: Spread
    page: Spread
    per_second: float

    @property
    def times_bare(self) -> float:
        """p50 of the service divided by p50 of its SQL."""
        return self.service.p50_ms / self.bare.p50_ms

    @property
    def bound_ms(self) -> float:
        """Largest allowed p50 of the service."""
        return max(MAX_SLOWDOWN * self.bare.p50_ms, self.bare.p50_ms + MAX_EXTRA_MS)

    @property
    def within_limit(self) -> bool:
        return self.service.p50_ms <= self.bound_ms


@dataclass(frozen=True, slots=True)
class Growth:
    """How much slower lexical search is at the largest size than at the smallest."""

    smallest: int
    largest: int
    times: float

    @property
    def within_limit(self) -> bool:
        return self.times <= MAX_GROWTH


@dataclass(frozen=True, slots=True)
class Benchmark:
    """All measurements; `growth` is None where there was one size only."""

    speeds: tuple[Speed, ...]
    growth: Growth | None

    @property
    def within_limit(self) -> bool:
        """Whether all limits are kept."""
        return all(each.within_limit for each in (*self.speeds, self.growth) if each is not None)


def measure_speed(
    *,
    sizes: Iterable[int] = SIZES,
    queries: int = 60,
    k: int = 10,
    space: EmbeddingSpace | None = None,
    on_progress: Progress = ignore_progress,
) -> Benchmark:
    """Fills a temporary workspace from chunks of `space`, or of the default one, and searches it
    in every mode.

    The same questions are asked at every size. Raises NotFound where the space is empty.
    """
    material = site_chunks(space)
    questions = make_questions(material, queries, np.random.default_rng(7))
    speeds: list[Speed] = []
    for size in sorted(set(sizes)):
        chance = np.random.default_rng(size)
        with filled_workspace(
            material,
            name=SPEED_WORKSPACE,
            collections=SPEED_COLLECTIONS,
            count=size,
            write=passage_writer(material, SPEED_COLLECTIONS, chance),
            chance=chance,
            on_progress=on_progress,
        ) as workspace:
            scope = site_scope(workspace=workspace)
            for mode in SPEED_MODES:
                speeds.append(_speed(size, mode, scope, questions, k, on_progress))
    growth = None
    lexical = [speed for speed in speeds if speed.mode == "lexical"]
    if len(lexical) > 1:
        first, last = lexical[0], lexical[-1]
        times = round(last.bare.p95_ms / first.bare.p95_ms, 2)
        growth = Growth(first.chunks, last.chunks, times)
    return Benchmark(tuple(speeds), growth)


def _speed(
    size: int,
    mode: Mode,
    scope: Scope,
    questions: Sequence[str],
    k: int,
    on_progress: Progress,
) -> Speed:
    """Times the three kinds of work in turns, so that load on the machine affects all alike."""
    work = [_work(question, scope, mode, k) for question in questions]
    times = np.full((len(work), 3), np.inf)
    for number in range(ROUNDS):
        for place, kinds in enumerate(work):
            for kind, run in enumerate(kinds):
                started = perf_counter()
                milliseconds = run()
                # What the work returns, or else what it took.
                if not isinstance(milliseconds, float):
                    milliseconds = _since(started)
                times[place, kind] = min(times[place, kind], milliseconds)
            done = number * len(work) + place + 1
            on_progress(f"search {size:,} chunks, {mode}", done, ROUNDS * len(work))
    bare, service, page = (
        Spread(*(round(float(each), 2) for each in np.percentile(column, [50, 95])))
        for column in times.T
    )
    return Speed(size, mode, bare, service, page, round(1000 / float(times[:, 2].mean()), 1))


def _work(question: str, scope: Scope, mode: Mode, k: int) -> tuple[Work, Work, Work]:
    """The SQL, the service and the page for a question, with caches warm. No reranking."""

    def page(*, snippets: bool = True) -> Any:
        return search(question, scope=scope, mode=mode, k=k, rerank=False, snippets=snippets)

    page()
    return bare_statements(question, scope, mode), lambda: page(snippets=False), page


def bare_statements(question: str, scope: Scope, mode: Mode) -> Work:
    """Sends the SQL statements of a search alone, under their settings, and reads the rows.

    The returned function returns the milliseconds that the statements took, without the
    settings.
    """
    with CaptureQueriesContext(connection) as captured:
        retrieve(parse_query(question), scope=scope, mode=mode, depth=DEPTH)
    sent = [query["sql"].strip() for query in captured.captured_queries]
    settings = [sql for sql in sent if sql.startswith("SET LOCAL")]
    statements = [sql for sql in sent if sql.startswith(("SELECT", "WITH"))]

    def run() -> float:
        with transaction.atomic():
            with connection.cursor() as cursor:
                for sql in settings:
                    cursor.execute(sql)
            started = perf_counter()
            for sql in statements:
                fetch_rows(connection, sql)
            return _since(started)

    return run


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000


#: A workspace and a space that exist only while this runs.
RECALL_WORKSPACE = "recall-measurement"
TENANTS = 50
SMALL_TENANT = 20
#: Shares of all chunks that a metadata filter keeps.
SHARES = (0.0002, 0.001, 0.01, 0.1, 0.3, 1.0)


@dataclass(frozen=True, slots=True)
class RecallCase:
    """One filter: how many chunks it matches, and how well search finds them."""

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
    on_progress: Progress = ignore_progress,
) -> list[RecallCase]:
    """Perturbs the site's own vectors to `chunks` of them and compares filtered vector search with
    an exact scan.

    Raises NotFound where the site has no vectors.
    """
    material = site_chunks()
    chance = np.random.default_rng(7)
    texts = [chunk.text for chunk in material.chunks]
    questions = [parse_query(text[:500]) for text in chance.permutation(texts)[:queries]]

    def write(numbers: range, origins: NDArray[np.int64]) -> Iterator[SyntheticPassage]:
        """Chunks of many large tenants and a small one, randomly marked for metadata filters."""
        for number, lot in zip(numbers, chance.random(len(numbers)), strict=True):
            tenant = "small" if number < SMALL_TENANT else f"tenant-{number % TENANTS}"
            shares = {f"share-{share:g}": True for share in SHARES if lot < share}
            yield SyntheticPassage(
                collection=tenant, text=f"a passage of {tenant}", metadata=shares
            )

    with filled_workspace(
        material,
        name=RECALL_WORKSPACE,
        collections=["small", *(f"tenant-{number}" for number in range(TENANTS))],
        count=chunks,
        write=write,
        chance=chance,
        on_progress=on_progress,
    ) as workspace:
        scopes, cases = _scopes(workspace), []
        for number, (name, scope) in enumerate(scopes, start=1):
            on_progress(f"search {name}", number, len(scopes))
            cases.append(_measure_case(name, scope, questions, k))
        return cases


def _scopes(workspace: Workspace) -> list[tuple[str, Scope]]:
    scopes = [
        (f"{share:.2%} by metadata", site_scope(workspace=workspace, metadata=_share_filter(share)))
        for share in SHARES
    ]
    scopes += [
        (f"collection {slug}", site_scope(workspace=workspace, collections=[slug]))
        for slug in ("small", "tenant-7")
    ]
    scopes.append(
        (
            "collection tenant-7, 10% by metadata",
            site_scope(workspace=workspace, collections=["tenant-7"], metadata=_share_filter(0.1)),
        )
    )
    return [*scopes, ("everything, no filter", site_scope(workspace=workspace))]


def _share_filter(share: float) -> dict[str, Any]:
    return {f"share-{share:g}": True}


def _measure_case(name: str, scope: Scope, questions: Sequence[Query], k: int) -> RecallCase:
    found = [_vector_search(question, scope) for question in questions]
    with override_settings(EXACT_SCAN_CHUNKS=10**12):
        exact = [_vector_search(question, scope) for question in questions]
    shares = []
    for each, true in zip(found, exact, strict=True):
        truth = _nearest(true, k)
        shares.append(len(truth & _nearest(each, k)) / len(truth) if truth else 1.0)
    with connection.cursor() as cursor:
        cursor.execute(*scope_size_statement(scope, at_most=10**9))
        matching = int(cursor.fetchone()[0])
    times = [result.timings["database"] for result in found]
    return RecallCase(
        name=name,
        matching=matching,
        method="/".join(sorted({arm.method for result in found for arm in result.arms})),
        fewest=min(len(_nearest(result, k)) for result in found),
        recall=float(np.mean(shares)),
        p50_ms=round(float(np.percentile(times, 50)), 1),
        p95_ms=round(float(np.percentile(times, 95)), 1),
    )


def _vector_search(question: Query, scope: Scope) -> Retrieved:
    return retrieve(question, scope=scope, mode="vector", depth=DEPTH)


def _nearest(result: Retrieved, k: int) -> set[int]:
    return {entry.chunk_id for entry in result.candidates if entry.ranks.get("vector", k + 1) <= k}


def speed_table(measured: Benchmark) -> Table:
    """A row per size and mode; exceeded limits are red."""
    table = Table("mode", title="searches, milliseconds p50/p95", box=SIMPLE, pad_edge=False)
    for name in ("chunks", "SQL alone", "service", "p50 ×", "with snippets", "a second"):
        table.add_column(name, justify="right", no_wrap=name != "with snippets")
    for speed in measured.speeds:
        bound = speed.bound_ms / speed.bare.p50_ms
        table.add_row(
            speed.mode,
            f"{speed.chunks:,}",
            _format_spread(speed.bare),
            _format_spread(speed.service),
            f"{speed.times_bare:.2f} {'≤' if speed.within_limit else '>'} {bound:.2f}",
            _format_spread(speed.page),
            f"{speed.per_second:,.0f}",
            style=None if speed.within_limit else "red",
        )
    return table


def growth_sentence(growth: Growth) -> str:
    """How lexical search grew, and whether that is within its limit."""
    held = "" if growth.within_limit else ", which is exceeded"
    return (
        f"Search by words, SQL alone: p95 at {growth.largest:,} chunks is {growth.times:.2f} times"
        f" that at {growth.smallest:,}; at most {MAX_GROWTH:g}{held}."
    )


def _format_spread(spread: Spread) -> str:
    return f"{spread.p50_ms:.3g}/{spread.p95_ms:.3g}"
