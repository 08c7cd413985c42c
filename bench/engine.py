"""The search engine beside a bare psycopg design: one run, one PostgreSQL, the same passages.

    python -m bench.engine [--sizes 5000,100000] [--million] [--clients 8] [--corpus DIR]
                           [--long] [--keep NAME] [--json FILE] [--write-docs] [--profile]

Passages are recombined from the sentences of this documentation, or of a BEIR-style folder. Vectors
are generated and given to both designs, so no model runs. Every size gets a database of its own and
a process of its own. docs/reference/performance.md explains each row of the table.
"""

import argparse
import cProfile
import json
import os
import platform
import pstats
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial
from itertools import cycle, islice, product, zip_longest
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest import mock

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.given.GivenVectors"
os.environ["EMBEDDER_OPTIONS"] = '{"dimensions": 384}'
os.environ["RAGSITE_REDIS_DB"] = "14"  # cached rows of the site have the same ids as ours
for variable in ("DATABASE_URL", "DATABASE_REPLICA_URL", "REDIS_URL", "EMBEDDERS", "RERANKERS"):
    os.environ[variable] = ""  # the embedded servers, whatever .env says

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "evaluate"])

import numpy as np
import psycopg
from django.db import connection
from numpy.typing import NDArray

from bench import engine_report
from bench.engine_designs import MODES, Bare, Condition, Design, K, Mode, Ragsite
from bench.passages import BATCH, Corpus, Query, Vectors, metadata, read_corpus

SIZES, MILLION = "5000,100000", 1_000_000
SMALL = 5_000
ROUNDS = 2
SMALL_WRITES = 50
#: Passages that are in no segment yet, while searches beside writing are measured: of the
#: collection that is searched, and of another.
OWN_PENDING, OTHERS_PENDING = 200, 10_000
BM25_QUERIES = 40
SECONDS_OF_LOAD = 4.0
WEB_PROCESSES = 2  # `workers` of ragsite/gunicorn.py
#: The product's BM25 (docs/decisions/0002): how often a word of the title counts, and what the
#: length of a passage is.
FREQUENCY = "cardinality(word.positions) + cardinality(array_positions(word.weights, 'A'))"
LENGTH = "length(chunk.search_vector)"
K1, B = 1.2, 0.75

#: Searches by name of the design.
Calls = dict[str, list[Callable[[], list[int]]]]

#: Conditions that match 0.02, 2 and 30 % of the passages, by the column that they are on.
CONDITIONS: dict[str, Callable[[int], Condition]] = {
    "tenant": lambda number: ("tenant", number % 5000),
    "topic": lambda number: ("topic", number % 50),
    "recent": lambda number: ("recent", 1),
}


# --- measuring ----------------------------------------------------------------------------------


def measure_size(size: int, options: argparse.Namespace) -> dict[str, Any]:
    """Both designs with so many passages: figures by design and name. Fills the database unless it
    is a kept one."""
    corpus = read_corpus(options.corpus, is_long=options.long)
    vectors = corpus.vectors(size)
    queries = corpus.queries(200 if size <= SMALL else 100 if size < MILLION else 40, vectors)
    with database(f"{options.keep or 'bench_engine'}_{size}", keep=bool(options.keep)):
        designs: tuple[Design, ...] = (Ragsite(), Bare())
        try:
            return _measured(designs, corpus, vectors, queries, options)
        finally:
            for design in designs:
                design.close()


def _measured(
    designs: Sequence[Design],
    corpus: Corpus,
    vectors: Vectors,
    queries: Sequence[Query],
    options: argparse.Namespace,
) -> dict[str, Any]:
    size = len(vectors)
    figures = load(designs, corpus, vectors)
    say(f"{size:,} passages: searching")
    best_words = exact_bm25([query.text for query in queries[:BM25_QUERIES]], size)
    nearness = [vectors @ query.vector for query in queries]
    columns = metadata(np.arange(size))

    def searches(mode: Mode, conditions: Sequence[Condition | None] = ()) -> Calls:
        asked = list(zip_longest(queries, conditions))
        return {
            design.name: [partial(design.search, query, mode, each) for query, each in asked]
            for design in designs
        }

    for mode in MODES:
        for name, hits in timed(figures, mode, searches(mode)).items():
            if mode == "lexical":
                figures[name]["overlap"] = mean(map(share_of_best, best_words, hits))
            if mode == "vector":
                figures[name]["recall"] = mean(map(share_of_best, nearness, hits))
    for condition, condition_of in CONDITIONS.items():
        conditions = [condition_of(query.number) for query in queries]
        matches = [columns[column] == value for column, value in conditions]
        possible = sum(min(K, int(each.sum())) for each in matches)
        scores = [np.where(*pair, -np.inf) for pair in zip(matches, nearness, strict=True)]
        for name, hits in timed(figures, condition, searches("hybrid", conditions)).items():
            figures[name][f"{condition}_hits"] = sum(map(len, hits)) / possible
        for name, calls in searches("vector", conditions).items():
            nearest = (call() for call in calls)
            figures[name][f"{condition}_recall"] = mean(map(share_of_best, scores, nearest))
    for name, calls in searches("hybrid").items():
        figures[name] |= time_split(calls)
    measure_load(figures, designs, queries, options.clients)
    for design in designs:
        figures[design.name] |= {
            "megabytes": megabytes(design.tables),
            "small": small_writes(design, corpus, vectors),
        }
    batches = range(-(-size // BATCH) + 1, -(-(size + OTHERS_PENDING) // BATCH) + 1)
    others = [passage for batch in batches for passage in corpus.passages(batch)]
    with ExitStack() as writing:
        for design in designs:
            writing.enter_context(design.beside_writing(others[:OWN_PENDING], others, vectors))
        for mode in ("lexical", "hybrid"):
            timed(figures, f"{mode}_beside", searches(mode))
    if options.profile:
        profile(list(islice(cycle(searches("hybrid")[Ragsite.name]), 200)))
    return {"passages": size, "queries": len(queries), "clients": options.clients, **figures}


@contextmanager
def database(name: str, *, keep: bool) -> Iterator[None]:
    """A migrated database of this name as Django's default. It is dropped unless it is kept."""
    before = connection.settings_dict["NAME"]
    connection.settings_dict["TEST"]["NAME"] = name
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False, keepdb=keep)
    try:
        yield
    finally:
        if not keep:
            connection.creation.destroy_test_db(before, verbosity=0)


def load(designs: Sequence[Design], corpus: Corpus, vectors: Vectors) -> dict[str, dict[str, Any]]:
    """Store all passages, in the same batches in turns, each committed; items a second by design.
    From a million on the vector index is built at the end, which counts too. A kept database has
    them in the comment of a table, beside what it was filled from."""
    texts = [len(corpus.documents), len(corpus.pool), corpus.is_long]
    with connection.cursor() as cursor:
        cursor.execute("SELECT obj_description('bare_passage'::regclass)")
        if comment := cursor.fetchone()[0]:
            kept = json.loads(comment)
            if kept["texts"] != texts:
                raise SystemExit("The kept database was filled from other texts. Drop it.")
            return {name: {"items": items} for name, items in kept["rates"].items()}
        seconds = dict.fromkeys((design.name for design in designs), 0.0)
        bulk = {design.name: ExitStack() for design in designs}
        if len(vectors) >= MILLION:
            for design in designs:
                bulk[design.name].enter_context(design.without_vector_index())
        for start in range(0, len(vectors), BATCH):
            part = vectors[start : start + BATCH]
            passages = corpus.passages(start // BATCH)[: len(part)]
            for design in designs:
                started = perf_counter()
                design.store(passages, part)
                seconds[design.name] += perf_counter() - started
        for design in designs:
            started = perf_counter()
            bulk[design.name].close()
            seconds[design.name] += perf_counter() - started
            say(f"{design.name}: {len(vectors):,} stored in {seconds[design.name]:.0f} s")
            design.settle()
        cursor.execute("VACUUM ANALYZE")
        rates = {name: len(vectors) / spent for name, spent in seconds.items()}
        comment = json.dumps({"texts": texts, "rates": rates})
        cursor.execute(f"COMMENT ON TABLE bare_passage IS '{comment}'")
    return {name: {"items": items} for name, items in rates.items()}


def exact_bm25(texts: Sequence[str], size: int) -> list[NDArray[np.float64]]:
    """The BM25 score of every passage for each text, computed from all tsvectors of the product;
    minus infinity where no word is in common."""
    with connection.cursor() as cursor:
        queries = []
        for text in texts:
            cursor.execute(
                "SELECT lexeme, cardinality(positions)"
                " FROM unnest(to_tsvector('english', ragsite_words(%s)))",
                [text],
            )
            queries.append(dict(cursor.fetchall()))
        cursor.execute(
            f"""
            SELECT word.lexeme,
                   string_agg(int4send(document.key::int) || int4send({FREQUENCY})
                              || int4send({LENGTH}), ''::bytea)
            FROM documents_chunk AS chunk
            JOIN documents_document AS document ON document.id = chunk.document_id,
                 unnest(chunk.search_vector) AS word
            WHERE word.lexeme = ANY(%s)
            GROUP BY word.lexeme""",
            [sorted({lexeme for query in queries for lexeme in query})],
        )
        postings = {
            lexeme: np.frombuffer(packed, ">i4").reshape(-1, 3).T for lexeme, packed in cursor
        }
        cursor.execute(f"SELECT avg({LENGTH})::float8 FROM documents_chunk AS chunk")
        average = cursor.fetchone()[0]
    scores = np.zeros((len(texts), size))
    for row, query in zip(scores, queries, strict=True):
        for lexeme in query.keys() & postings.keys():
            numbers, frequency, length = postings[lexeme]
            idf = np.log(1 + (size - len(numbers) + 0.5) / (len(numbers) + 0.5))
            saturated = frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / average))
            row[numbers] += query[lexeme] * idf * saturated
    return list(np.where(scores > 0, scores, -np.inf))


def share_of_best(scores: NDArray[Any], found: Sequence[int]) -> float:
    """How many of the K best are among `found`; of equal scores either is right."""
    possible = min(K, int(np.isfinite(scores).sum()))
    if not possible:
        return 1.0
    worst = np.partition(scores, -possible)[-possible]
    return float((scores[list(found)] >= worst - 1e-5 * abs(worst)).sum()) / possible


def timed(figures: dict[str, Any], name: str, calls: Calls) -> dict[str, list[list[int]]]:
    """Call one after another, the designs in turns and in two rounds; p50 and p95 in milliseconds
    are put into the figures of each design. Of each call the better round counts: the other was
    cold, or somebody else used the machine. Returns the results by design."""
    times = {design: np.full((ROUNDS, len(mine)), np.inf) for design, mine in calls.items()}
    results: dict[str, list[list[int]]] = {design: [] for design in calls}
    for number in range(ROUNDS):
        for place, turn in enumerate(zip(*calls.values(), strict=True)):
            for design, call in zip(calls, turn, strict=True):
                started = perf_counter()
                found = call()
                times[design][number, place] = (perf_counter() - started) * 1000
                if number == 0:
                    results[design].append(found)
    for design, spent in times.items():
        p50, p95 = np.percentile(spent.min(axis=0), [50, 95])
        figures[design] |= {f"{name}_p50": float(p50), f"{name}_p95": float(p95)}
    return results


def time_split(calls: Sequence[Callable[[], Any]]) -> dict[str, float]:
    """Mean milliseconds of a call, those spent waiting for PostgreSQL, how often that was, and CPU
    time of this process and its backends. All exchanges pass through psycopg's `wait`: Django's
    statements, others and commits."""
    wait, waits, backends = psycopg.Connection.wait, [], set()

    def counted(self: psycopg.Connection[Any], *args: Any) -> Any:
        started = perf_counter()
        try:
            return wait(self, *args)
        finally:
            waits.append(perf_counter() - started)
            backends.add(self.info.backend_pid)

    def cpu_seconds() -> float:
        schedules = [Path(f"/proc/{pid}/schedstat") for pid in backends]  # Linux only
        nanoseconds = [int(each.read_text().split()[0]) for each in schedules if each.exists()]
        return process_time() + sum(nanoseconds) / 1e9

    with mock.patch.object(psycopg.Connection, "wait", counted):
        calls[0]()
        waits.clear()
        cpu, started = cpu_seconds(), perf_counter()
        for call in calls:
            call()
        total, cpu = perf_counter() - started, cpu_seconds() - cpu
    spent = {"total": total, "database": sum(waits), "cpu": cpu}
    means = {name: seconds * 1000 / len(calls) for name, seconds in spent.items()}
    return {**means, "statements": len(waits) / len(calls)}


def measure_load(
    figures: dict[str, Any], designs: Sequence[Design], queries: Sequence[Query], clients: int
) -> None:
    """Put `throughput` with one client and with `clients` into the figures of each design, of two
    rounds in turns the better one."""
    for _, design in product(range(ROUNDS), designs):
        mine = figures[design.name]
        for name, count in (("one", 1), ("many", clients)):
            found = throughput(design, queries, count, name)
            if found[f"{name}_rate"] > mine.get(f"{name}_rate", 0):
                mine |= found


def throughput(
    design: Design, queries: Sequence[Query], clients: int, name: str
) -> dict[str, float]:
    """Hybrid searches a second and their p95, by so many threads with a connection each, in as many
    processes as the web server has."""
    context = get_context("fork")
    barrier = context.Barrier(clients)

    def client(number: int) -> tuple[list[float], float]:
        own = islice(cycle(queries), number * len(queries) // clients, None)
        design.search(next(own))
        barrier.wait()
        began, times = perf_counter(), []
        while (started := perf_counter()) < began + SECONDS_OF_LOAD:
            design.search(next(own))
            times.append((perf_counter() - started) * 1000)
        spent = perf_counter() - began
        design.close()
        return times, spent

    def process(numbers: Sequence[int], pipe: Connection) -> None:
        with ThreadPoolExecutor(len(numbers)) as pool:
            pipe.send(list(pool.map(client, numbers)))

    design.close()  # no connection is shared with the processes
    pipes = []
    for first in range(min(clients, WEB_PROCESSES)):
        ours, theirs = context.Pipe(duplex=False)
        numbers = range(first, clients, WEB_PROCESSES)
        context.Process(target=process, args=(numbers, theirs)).start()
        theirs.close()
        pipes.append(ours)
    done = [each for pipe in pipes for each in pipe.recv()]
    rate = sum(len(times) / spent for times, spent in done)
    times = [each for times, _ in done for each in times]
    return {f"{name}_rate": rate, f"{name}_p95": float(np.percentile(times, 95))}


def small_writes(design: Design, corpus: Corpus, vectors: Vectors) -> float:
    """p50 in milliseconds of one more passage, written and committed. They are removed again."""
    passages = corpus.passages(-(-len(vectors) // BATCH))[:SMALL_WRITES]
    times = []
    for passage in passages:
        started = perf_counter()
        design.store([passage], vectors[passage.number % len(vectors)][None])
        times.append((perf_counter() - started) * 1000)
    design.remove([passage.number for passage in passages])
    return float(np.median(times))


def megabytes(tables: str) -> float:
    """Of the tables whose names match, with their indexes."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT sum(pg_total_relation_size(oid)) / 1e6 FROM pg_class"
            " WHERE relkind = 'r' AND relname ~ %s",
            [tables],
        )
        return float(cursor.fetchone()[0])


def profile(calls: Sequence[Callable[[], Any]]) -> None:
    """Print where the time goes in Python."""
    with cProfile.Profile() as profiler:
        for call in calls:
            call()
    for order in ("cumulative", "tottime"):
        pstats.Stats(profiler).strip_dirs().sort_stats(order).print_stats(25)


def mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# --- the command --------------------------------------------------------------------------------


def main() -> None:
    options = _options()
    sizes = [int(size) for size in options.sizes.split(",")] + [MILLION] * options.million
    measured_on = conditions()
    # What a process cached of one database would be wrong in the next.
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
        measured = list(pool.map(partial(measure_size, options=options), sizes))
    print(engine_report.table(measured))
    if options.json:
        options.json.write_text(json.dumps(measured, indent=2) + "\n")
    if options.write_docs:
        engine_report.write_docs(measured, measured_on)


def conditions() -> str:
    """Machine and versions, and how busy others kept the machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT split_part(version(), ' ', 2), current_setting('shared_buffers')")
        version, buffers = cursor.fetchone()
    return (
        f"Measured on {date.today():%-d %B %Y} with {os.cpu_count()} cores,"
        f" Python {platform.python_version()}, PostgreSQL {version},"
        f" `shared_buffers` {buffers}, everything warm;"
        f" load average before the run {os.getloadavg()[0]:.1f}."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, help=f"numbers of passages ({SIZES})")
    parser.add_argument("--million", action="store_true", help=f"and {MILLION:,}")
    parser.add_argument("--clients", type=int, default=8, help="threads that search at once (8)")
    parser.add_argument("--corpus", type=Path, help="corpus.jsonl to take sentences from")
    parser.add_argument("--long", action="store_true", help="200-word passages, 12-word questions")
    parser.add_argument("--keep", metavar="NAME", help="of databases to fill, or to use again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    parser.add_argument("--write-docs", action="store_true", help="write table and graph")
    parser.add_argument("--profile", action="store_true", help="print where Python's time goes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
