"""Questions to a million rows: tables read and stored, then asked.

    python -m bench.tables [--files 200] [--rows 5000] [--rounds 20]

Makes orders in Markdown tables, always the same ones, and stores them as ingestion does. Questions
are asked in turns, under row-level security as a request is; times are of whole questions, from the
words to the rows that are shown. Removes what it made. Exit code 1: something takes longer than it
may.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "tables"])

import numpy as np
from django.db import connection, transaction
from rich.console import Console

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from common.rls import workspace_context
from documents.models import Collection, Document
from documents.services import delete_collection, get_or_create_collection
from tables.asking import ask_tables
from tables.models import ColumnBlock, Table
from tables.schemas import forget_schemas
from tables.store import write_tables

NAME = "benchmark-tables"
FILES, ROWS, ROUNDS = 200, 5_000, 20
MUST_STORE, MUST_ANSWER_MS, MUST_PROFILE_MS, MUST_TAKE = 20_000, 300, 1_000, 3.0
QUESTIONS = {
    "count": "How many orders have an amount above 900 EUR?",
    "sum by group": "What is the total amount by category?",
    "top 10": "What are the top 10 orders by amount?",
    "sum of a group": "What is the total amount where category is tools?",
    "sum of a month": "What is the total amount in March 2026?",
}
CATEGORIES = "travel tools books meals paper rent power phones chairs bikes music games".split()  # noqa: SIM905
HEADER = ("Order", "Date", "Customer", "Category", "City", "Amount (EUR)", "Units", "Paid")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", FILES), ("rows", ROWS), ("rounds", ROUNDS)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    workspace = get_or_create_workspace(slug=NAME)
    remove(workspace)
    collection = get_or_create_collection(workspace=workspace, slug=NAME)
    console = Console()
    try:
        with workspace_context(workspace.pk):
            reached = store(collection, options.files, options.rows, console)
            reached &= ask(collection, options.rounds, console)
    finally:
        remove(workspace)
        workspace.delete()
    if not reached:
        sys.exit(1)


def remove(workspace: Workspace) -> None:
    """Remove what this run, or one that was cut off, has made."""
    for collection in Collection.objects.filter(workspace=workspace):
        delete_collection(collection=collection)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE tables_columnblock")  # its size is measured


def texts(files: int, rows: int) -> Iterator[str]:
    chance = np.random.default_rng(7)
    for number in range(files):
        columns = (
            [f"A-{number:03}-{row:05}" for row in range(rows)],
            [
                date(2026, 1, 1) + timedelta(int(day))
                for day in np.sort(chance.integers(0, 365, rows))
            ],
            [f"Customer {each}" for each in chance.integers(0, 200, rows)],
            [CATEGORIES[each] for each in chance.integers(0, len(CATEGORIES), rows)],
            [f"City {each}" for each in chance.integers(0, 50, rows)],
            [f"{each:.2f}" for each in chance.gamma(2, 200, rows)],
            chance.integers(1, 40, rows).tolist(),
            ["yes" if each else "no" for each in chance.integers(0, 2, rows)],
        )
        lines = (" | ".join(map(str, row)) for row in zip(*columns, strict=True))
        head = f"| {' | '.join(HEADER)} |\n|{' - |' * len(HEADER)}\n"
        yield f"# Orders\n\n{head}" + "".join(f"| {line} |\n" for line in lines)


def store(collection: Collection, files: int, rows: int, console: Console) -> bool:
    """Read and write the tables; whether fast and small enough."""
    wall = processor = 0.0
    csv_bytes = 0
    for number, text in enumerate(texts(files, rows)):
        csv_bytes += len(text) - rows * (2 * len(HEADER) + 2)  # `| ` and ` |` around the cells
        document = Document.objects.create(
            workspace=collection.workspace,
            collection=collection,
            key=f"orders-{number:03}.md",
            title=f"orders-{number:03}",
            status=Document.Status.READY,
            chunk_count=1,
        )
        began, used = perf_counter(), _processor()
        with transaction.atomic():
            write_tables(document, text)
        wall, processor = wall + perf_counter() - began, processor + _processor() - used
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_total_relation_size(%s)", [ColumnBlock._meta.db_table])
        share = cursor.fetchone()[0] / csv_bytes
    count = files * rows
    console.print(
        f"{count:,} rows in {files} files: {count / wall:,.0f} rows a second,"
        f" {processor / count * 1e6:.1f} µs of processor a row; must be at least {MUST_STORE:,}"
    )
    console.print(f"disk: {share:.2f} × the CSV; must be at most {MUST_TAKE}")
    return count / wall >= MUST_STORE and share <= MUST_TAKE


def ask(collection: Collection, rounds: int, console: Console) -> bool:
    """Ask in turns; whether fast enough."""
    tables = Table.objects.filter(collection=collection).current()
    first = next(iter(QUESTIONS.values()))

    def cold() -> None:
        forget_schemas()
        ask_tables(first, tables)

    reached = True
    work: dict[str, Callable[[], object]] = {"first question of a process": cold}
    for name, question in QUESTIONS.items():
        answer = ask_tables(question, tables)
        assert answer.result is not None, (name, answer)
        console.print(f"{name}: {question} {answer.result.value} – {answer.result.explanation}")
        work[name] = lambda question=question: ask_tables(question, tables)  # type: ignore[misc]
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, doing in work.items():
            began, used = perf_counter(), _processor()
            doing()
            taken[name].append((1000 * (perf_counter() - began), 1000 * (_processor() - used)))
    for name, times in taken.items():
        p95 = float(np.percentile([wall for wall, _ in times], 95))
        most = MUST_PROFILE_MS if name not in QUESTIONS else MUST_ANSWER_MS
        console.print(
            f"{name}: median {median(wall for wall, _ in times):.0f} ms, p95 {p95:.0f} ms,"
            f" {median(used for _, used in times):.0f} ms of processor; must be at most {most} ms"
        )
        reached &= p95 <= most
    return reached


def _processor() -> float:
    """Seconds of processor of this process and of its connection's server process."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    schedule = Path(f"/proc/{pid}/schedstat")  # Linux only
    return process_time() + (int(schedule.read_text().split()[0]) / 1e9 if schedule.exists() else 0)


if __name__ == "__main__":
    main()
