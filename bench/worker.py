"""A query through the worker backend against the same model in one's own process, in turns.

`python -m bench.worker [ROUNDS]` starts a real worker on the embed queue (default 300 rounds).
It empties numbers 61 and 62 of the embedded Valkey and uses no table.
"""

import multiprocessing
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter, sleep

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["RAGSITE_REDIS_DB"] = "62"
for variable in ("REDIS_URL", "EMBEDDER_BACKEND", "EMBEDDER_OPTIONS", "EMBEDDERS", "RERANKERS"):
    os.environ[variable] = ""
del os.environ["EMBEDDER_BACKEND"]  # the bundled model

from ragsite import bootstrap

bootstrap.ensure_services()

import numpy as np
from django.conf import settings
from redis import Redis

from inference.backends.onnx_local import OnnxEmbedder
from inference.backends.worker import WorkerEmbedder, WorkerReranker
from inference.interfaces import BackendUnavailable, Embedder
from inference.serving.server import WorkerServer, offer_embedder
from ragsite.embedded.service import redis_url, wait_until

MAY_ADD_MS = 10.0
IDLE_SECONDS = 30.0
CLIENTS = 8
QUERIES_OF_A_CLIENT = 40
START_SECONDS = 120.0
WORDS = ("side effects", "of aspirin", "in old age", "after surgery", "and bread", "with fever")


def main(rounds: int) -> None:
    here, there = OnnxEmbedder(), WorkerEmbedder(settings.REDIS_URL)
    here.embed_query("load")
    with celery_worker(there) as worker:
        at_home, asked = report("idle worker", rounds, here, there)
        with busy(there):
            report("worker that embeds documents", rounds, there)
        report_memory(worker.pid)
    print(f"the worker adds {asked - at_home:.1f} ms at the median")
    report_throughput()
    if asked - at_home > MAY_ADD_MS:
        raise SystemExit(f"that is more than the {MAY_ADD_MS:.0f} ms that it may")


def report(what: str, rounds: int, *embedders: Embedder) -> list[float]:
    """Print and give the median milliseconds of a query to each, asked in turns."""
    times: list[list[float]] = [[] for _ in embedders]
    for number in range(rounds):
        for embedder, taken in zip(embedders, times, strict=True):
            taken.append(1000 * seconds(partial(embedder.embed_query, query(number))))
    spread = [np.percentile(taken, [50, 95]) for taken in times]
    columns = ("in this process {:.1f} / {:.1f}", "through the worker {:.1f} / {:.1f}")
    shown = (
        text.format(*values) for text, values in zip(columns[-len(spread) :], spread, strict=True)
    )
    print(f"{what}, {rounds} queries, ms p50 / p95: {', '.join(shown)}")
    return [float(p50) for p50, _ in spread]


def report_memory(pid: int) -> None:
    """What the worker holds after a run that used all its models, when nobody asks any more."""
    documents = [" ".join(map(query, range(at, at + 15))) for at in range(64)]
    multilingual = WorkerEmbedder(settings.REDIS_URL, alias="multilingual", timeout=60)
    multilingual.embed_query("load")
    multilingual.embed_documents(documents)
    WorkerReranker(settings.REDIS_URL).score(query(1), documents[:20])
    at_once = proportional_mb(pid)
    sleep(IDLE_SECONDS)
    has_torch = "libtorch" in Path(f"/proc/{pid}/maps").read_text()
    print(
        f"the worker holds {at_once} MB (PSS) after a run, {proportional_mb(pid)} MB"
        f" {IDLE_SECONDS:.0f} s later, {'with' if has_torch else 'without'} torch"
    )


def proportional_mb(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.findall(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)[0]) // 1024


def report_throughput() -> None:
    """Two servers that differ in how many queries they embed at once, asked in turns."""
    urls = {count: redis_url(settings.VAR_DIR, db) for count, db in ((1, 61), (32, 62))}
    rates: dict[int, list[float]] = {count: [] for count in urls}
    with server(urls[1], 1), server(urls[32], 32):
        for _ in range(3):
            for count, url in urls.items():
                rates[count].append(rate(WorkerEmbedder(url, timeout=60)))
    alone, together = max(rates[1]), max(rates[32])
    print(
        f"{CLIENTS} clients at once, queries a second: one by one {alone:.0f},"
        f" those that wait together {together:.0f} ({together / alone:.2f}x)"
    )


def rate(there: Embedder) -> float:
    """Queries a second of CLIENTS threads, each of which asks one after the other."""

    def client(number: int) -> None:
        for at in range(QUERIES_OF_A_CLIENT):
            there.embed_query(query(number * QUERIES_OF_A_CLIENT + at))

    def all_clients() -> None:
        with ThreadPoolExecutor(CLIENTS) as threads:
            list(threads.map(client, range(CLIENTS)))

    return CLIENTS * QUERIES_OF_A_CLIENT / seconds(all_clients)


@contextmanager
def celery_worker(there: Embedder) -> Iterator[subprocess.Popen[bytes]]:
    """As docs/how-to/add-workers.md starts it."""
    Redis.from_url(settings.REDIS_URL).flushdb()
    command = [sys.executable, "-W", "ignore", "-m", "celery", "--quiet", "-A", "ragsite", "worker"]
    command += ["--queues=embed", "--pool=solo"]
    worker = subprocess.Popen(command, env={**os.environ, "LOG_LEVEL": "WARNING"})
    try:
        wait_for(there)
        yield worker
    finally:
        worker.terminate()
        worker.wait()


@contextmanager
def server(url: str, queries_at_once: int) -> Iterator[None]:
    """The same without Celery, in a process of its own."""
    Redis.from_url(url).flushdb()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=[url, queries_at_once]
    )
    process.start()
    try:
        wait_for(WorkerEmbedder(url))
        yield
    finally:
        process.terminate()
        process.join()


def serve(url: str, queries_at_once: int) -> None:
    embedder = OnnxEmbedder()
    offer = partial(offer_embedder, "default", embedder, query_batch_size=queries_at_once)
    WorkerServer(url, [offer]).start()
    threading.Event().wait()


@contextmanager
def busy(there: Embedder) -> Iterator[None]:
    """Keeps it embedding documents without a break."""
    documents = [" ".join(map(query, range(at, at + 15))) for at in range(256)]
    begun, enough = threading.Event(), threading.Event()

    def embed() -> None:
        while not enough.is_set():
            there.embed_documents(documents)
            begun.set()

    thread = threading.Thread(target=embed)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        enough.set()
        thread.join()


def wait_for(there: Embedder) -> None:
    def answers() -> bool:
        with suppress(BackendUnavailable):
            return len(there.embed_query("anybody?")) > 0
        return False

    if not wait_until(answers, START_SECONDS):
        raise SystemExit("the worker did not start: see what it printed")


def query(number: int) -> str:
    """Six or seven words, another text for each number."""
    words = (WORDS[number // len(WORDS) ** place % len(WORDS)] for place in range(3))
    return f"{' '.join(words)} {number}"


def seconds(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
