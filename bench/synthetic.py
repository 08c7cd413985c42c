"""Speed and recall on a synthetic corpus made of the site's own chunks. Begin with `measure_speed`
and `measure_recall`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
from search.evaluation.evaluate import Progress, ignore_progress, latencies
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

#: Collection, text, context, language and metadata of a synthetic chunk.
SyntheticPassage = tuple[str, str, str, str, dict[str, Any]]
#: Returns the passages of a batch, given their numbers and the chunks that they are made of.
PassageWriter = Callable[[range, Sequence[Chunk]], Iterator[SyntheticPassage]]


def site_chunks(space: EmbeddingSpace | None = None) -> list[Chunk]:
    """Chunks of `space`, or of the default one: at most MAX_SOURCES and always the same.

    Raises NotFound where there are fewer than two.
    """
    space = space or default_space()
    chunks = list(
        Chunk.objects.filter(space=space, embedding__isnull=False)
        .exclude(text="")
        .select_related("space")
        .defer("search_vector", "metadata")
        .order_by("content_sha256")[:MAX_SOURCES]  # as good as at random, and the same every time
    )
    if len(chunks) < 2:
        raise NotFound(
            f"Space {space.name} holds no vectors to start from. Ingest some documents first, such"
            " as with `manage.py demo`."
        )
    return chunks


@contextmanager
def filled_workspace(
    sources: Sequence[Chunk],
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
    space, _ = add_space(name=name, embedder=sources[0].space.embedder)
    workspace = get_or_create_workspace(slug=name)
    try:
        # One document for all chunks of a collection.
        documents = {}
        for slug in collections:
            collection = Collection.objects.create(
                workspace=workspace, slug=slug, name=slug, space=space
            )
            documents[slug] = Document.objects.create(
                workspace=workspace,
                collection=collection,
                key=slug,
                title=slug,
                status=Document.Status.READY,
            )
        for start in range(0, count, LOAD_BATCH):
            numbers = range(start, min(start + LOAD_BATCH, count))
            origins = [sources[at] for at in chance.integers(0, len(sources), len(numbers))]
            embeddings = np.array([chunk.embedding for chunk in origins], dtype=np.float32)
            vectors = perturb(embeddings, chance)
            passages = list(zip(numbers, vectors, write(numbers, origins), strict=True))
            _load(documents, passages)
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
def _load(documents: dict[str, Document], passages: Sequence[Any]) -> None:
    # Nothing else may ask the connection while it copies, so this is asked before.
    oids = configuration_oids()
    rows: list[Sequence[Any]] = []
    for number, vector, (slug, text, context, language, metadata) in passages:
        document, start = documents[slug], 10_000 * number
        rows.append(
            (
                *(document.workspace_id, document.collection_id, document.pk),
                *(document.collection.space_id, number, "", text, context),
                *([], "", len(text.split()), start, start + len(text), None, None),
                *("text/plain", Jsonb(metadata), None, oids[language]),
                *(vector, f"{number:064d}", True),
            )
        )
    copy_rows("documents_chunk", CHUNK_COLUMNS, rows)


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
    sources: Sequence[Chunk], collections: Sequence[str], chance: np.random.Generator
) -> PassageWriter:
    """Passages of sentences drawn from all chunks in the language of their origin, under its
    context, in each of `collections` in turn.
    """
    pools = _sentences_by_language(sources)

    def write(numbers: range, origins: Sequence[Chunk]) -> Iterator[SyntheticPassage]:
        for number, chunk in zip(numbers, origins, strict=True):
            pool = pools[chunk.language]
            drawn = chance.integers(0, len(pool), SENTENCES_A_CHUNK)
            text = " ".join(pool[place] for place in drawn)
            yield collections[number % len(collections)], text, chunk.context, chunk.language, {}

    return write


def _sentences_by_language(chunks: Iterable[Chunk]) -> dict[str, list[str]]:
    pools: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        spans = sentences(chunk.text) or [(0, len(chunk.text))]
        pools[chunk.language] += [chunk.text[start:end] for start, end in spans]
    return pools


def make_questions(sources: Sequence[Chunk], count: int, chance: np.random.Generator) -> list[str]:
    """`count` shuffled questions: beginnings of sentences, headings, and common words alone."""
    headings = [chunk.heading_path[-1] for chunk in sources if chunk.heading_path]
    of_sentences = [text for pool in _sentences_by_language(sources).values() for text in pool]
    with connection.cursor() as cursor:
        cursor.execute(_FREQUENT_SQL, [[chunk.pk for chunk in sources], COMMON_LEXEMES])
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

#: What is measured of a size and mode, as `bench.site speed --json` prints it.
Report = dict[str, Any]


def measure_speed(
    *,
    sizes: Iterable[int] = SIZES,
    queries: int = 60,
    k: int = 10,
    space: EmbeddingSpace | None = None,
    on_progress: Progress = ignore_progress,
) -> Report:
    """Fills a temporary workspace from chunks of `space`, or of the default one, and searches it
    in every mode. `speeds` are reports by size and mode, `growth` is None for one size only;
    `is_held`: all limits are kept.

    The same questions are asked at every size. Raises NotFound where the space is empty.
    """
    sources = site_chunks(space)
    questions = make_questions(sources, queries, np.random.default_rng(7))
    speeds: list[Report] = []
    for size in sorted(set(sizes)):
        chance = np.random.default_rng(size)
        with filled_workspace(
            sources,
            name=SPEED_WORKSPACE,
            collections=SPEED_COLLECTIONS,
            count=size,
            write=passage_writer(sources, SPEED_COLLECTIONS, chance),
            chance=chance,
            on_progress=on_progress,
        ) as workspace:
            scope = site_scope(workspace=workspace)
            for mode in SPEED_MODES:
                times = _times(size, mode, scope, questions, k, on_progress)
                spreads = [latencies(column.tolist()) for column in times.T]
                per_second = round(1000 / float(times[:, 2].mean()), 1)
                speeds.append(speed_report(size, mode, *spreads, per_second=per_second))
    growth = growth_report([speed for speed in speeds if speed["mode"] == "lexical"])
    limits = [*speeds, *([growth] if growth else [])]
    return {"speeds": speeds, "growth": growth, "is_held": all(each["is_held"] for each in limits)}


def speed_report(
    chunks: int, mode: Mode, bare: Report, service: Report, page: Report, *, per_second: float
) -> Report:
    """One mode at one size: milliseconds of the arms' SQL alone (`bare`), `search` without
    snippets (`service`), with them (`page`); and the throughput of sequential searches with
    snippets. `bound_ms` is the largest allowed p50 of the service.
    """
    p50, of_sql = service["p50_ms"], bare["p50_ms"]
    bound = max(MAX_SLOWDOWN * of_sql, of_sql + MAX_EXTRA_MS)
    return {
        "chunks": chunks,
        "mode": mode,
        "bare": bare,
        "service": service,
        "page": page,
        "per_second": per_second,
        "times_bare": round(p50 / of_sql, 3),
        "bound_ms": round(bound, 2),
        "is_held": p50 <= bound,
    }


def growth_report(speeds: Sequence[Report]) -> Report | None:
    """How much slower search is at the largest size than at the smallest."""
    if len(speeds) < 2:
        return None
    first, last = speeds[0], speeds[-1]
    times = round(last["bare"]["p95_ms"] / first["bare"]["p95_ms"], 2)
    sizes = {"smallest": first["chunks"], "largest": last["chunks"]}
    return {**sizes, "times": times, "bound": MAX_GROWTH, "is_held": times <= MAX_GROWTH}


def _times(
    size: int,
    mode: Mode,
    scope: Scope,
    questions: Sequence[str],
    k: int,
    on_progress: Progress,
) -> NDArray[np.float64]:
    """Milliseconds by question of the SQL, the service and the page, with caches warm and without
    reranking. They are timed in turns, so that load on the machine affects all alike.
    """
    times = np.full((len(questions), 3), np.inf)
    statements = []
    for question in questions:
        search(question, scope=scope, mode=mode, k=k, rerank=False)
        statements.append(bare_statements(question, scope, mode))
    for number in range(ROUNDS):
        for place, question in enumerate(questions):
            spent = [statements[place]()]
            for snippets in (False, True):
                started = perf_counter()
                search(question, scope=scope, mode=mode, k=k, rerank=False, snippets=snippets)
                spent.append(_since(started))
            times[place] = np.minimum(times[place], spent)
            done = number * len(questions) + place + 1
            on_progress(f"search {size:,} chunks, {mode}", done, ROUNDS * len(questions))
    return times


def bare_statements(question: str, scope: Scope, mode: Mode) -> Callable[[], float]:
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


def measure_recall(
    *,
    chunks: int = 100_000,
    queries: int = 50,
    k: int = 10,
    on_progress: Progress = ignore_progress,
) -> list[Report]:
    """Perturbs the site's own vectors to `chunks` of them and compares filtered vector search with
    an exact scan. Each report is of one filter: how many chunks it matches, and how well search
    finds them; `complete`: every question got min(k, matching) hits.

    Raises NotFound where the site has no vectors.
    """
    sources = site_chunks()
    chance = np.random.default_rng(7)
    texts = [chunk.text for chunk in sources]
    questions = [parse_query(text[:500]) for text in chance.permutation(texts)[:queries]]

    def write(numbers: range, origins: Sequence[Chunk]) -> Iterator[SyntheticPassage]:
        """Chunks of many large tenants and a small one, randomly marked for metadata filters."""
        for number, lot in zip(numbers, chance.random(len(numbers)), strict=True):
            tenant = "small" if number < SMALL_TENANT else f"tenant-{number % TENANTS}"
            shares = {f"share-{share:g}": True for share in SHARES if lot < share}
            yield tenant, f"a passage of {tenant}", "", "english", shares

    cases: dict[str, dict[str, Any]] = {
        f"{share:.2%} by metadata": {"metadata": {f"share-{share:g}": True}} for share in SHARES
    }
    cases["collection small"] = {"collections": ["small"]}
    cases["collection tenant-7"] = {"collections": ["tenant-7"]}
    cases["collection tenant-7, 10% by metadata"] = {
        "collections": ["tenant-7"],
        "metadata": {"share-0.1": True},
    }
    cases["everything, no filter"] = {}
    with filled_workspace(
        sources,
        name=RECALL_WORKSPACE,
        collections=["small", *(f"tenant-{number}" for number in range(TENANTS))],
        count=chunks,
        write=write,
        chance=chance,
        on_progress=on_progress,
    ) as workspace:
        reports = []
        for number, (name, narrowed) in enumerate(cases.items(), start=1):
            on_progress(f"search {name}", number, len(cases))
            scope = site_scope(workspace=workspace, **narrowed)
            reports.append({"name": name, **_recall(scope, questions, k)})
        return reports


def _recall(scope: Scope, questions: Sequence[Query], k: int) -> Report:
    def ask() -> list[Retrieved]:
        return [retrieve(each, scope=scope, mode="vector", depth=DEPTH) for each in questions]

    def nearest(result: Retrieved) -> set[int]:
        return {hit.chunk_id for hit in result.candidates if hit.ranks.get("vector", k + 1) <= k}

    results = ask()
    with override_settings(EXACT_SCAN_CHUNKS=10**12):
        truths = [nearest(result) for result in ask()]
    found = [nearest(result) for result in results]
    shares = [
        len(truth & each) / len(truth) if truth else 1.0
        for each, truth in zip(found, truths, strict=True)
    ]
    with connection.cursor() as cursor:
        cursor.execute(*scope_size_statement(scope, at_most=10**9))
        matching = int(cursor.fetchone()[0])
    fewest = min(map(len, found))
    times = latencies([result.timings["database"] for result in results])
    return {
        "matching": matching,
        "method": "/".join(sorted({arm.method for result in results for arm in result.arms})),
        "fewest": fewest,
        "recall": float(np.mean(shares)),
        **{name: round(value, 1) for name, value in times.items()},
        "complete": fewest >= min(k, matching),
    }


def speed_table(measured: Report) -> Table:
    """A row per size and mode; exceeded limits are red."""
    table = Table("mode", title="searches, milliseconds p50/p95", box=SIMPLE, pad_edge=False)
    for name in ("chunks", "SQL alone", "service", "p50 ×", "with snippets", "a second"):
        table.add_column(name, justify="right", no_wrap=name != "with snippets")
    for speed in measured["speeds"]:
        bare, service, page = (
            f"{speed[kind]['p50_ms']:.3g}/{speed[kind]['p95_ms']:.3g}"
            for kind in ("bare", "service", "page")
        )
        bound = speed["bound_ms"] / speed["bare"]["p50_ms"]
        table.add_row(
            speed["mode"],
            f"{speed['chunks']:,}",
            bare,
            service,
            f"{speed['times_bare']:.2f} {'≤' if speed['is_held'] else '>'} {bound:.2f}",
            page,
            f"{speed['per_second']:,.0f}",
            style=None if speed["is_held"] else "red",
        )
    return table


def growth_sentence(growth: Report) -> str:
    """How lexical search grew, and whether that is within its limit."""
    held = "" if growth["is_held"] else ", which is exceeded"
    return (
        f"Search by words, SQL alone: p95 at {growth['largest']:,} chunks is {growth['times']:.2f}"
        f" times that at {growth['smallest']:,}; at most {MAX_GROWTH:g}{held}."
    )


def recall_table(reports: Sequence[Report], *, k: int) -> Table:
    """A row per filter; where hits are missing, their number is marked."""
    table = Table(title=f"vector search against an exact scan, the first {k}")
    for heading in ("filter", "chunks it keeps", "method", "hits, fewest", f"recall@{k}"):
        table.add_column(heading, justify="left" if heading in ("filter", "method") else "right")
    for heading in ("p50 ms", "p95 ms"):
        table.add_column(heading, justify="right")
    for case in reports:
        table.add_row(
            case["name"],
            f"{case['matching']:,}",
            case["method"],
            str(case["fewest"]) if case["complete"] else f"{case['fewest']} (too few)",
            f"{case['recall']:.3f}",
            f"{case['p50_ms']:.1f}",
            f"{case['p95_ms']:.1f}",
        )
    return table
