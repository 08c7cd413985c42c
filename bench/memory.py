"""Memory: storing a turn and searching, for one user among many, in one run.

    python -m bench.memory [--users 1000] [--rows 100] [--large 10000] [--asked 300]

Makes users of a workspace with Zipf-distributed words and random vectors, and one user with as many
rows as the default quota leaves. Times what the services take without a model: the question's
vector is in the cache, as when it was embedded a moment ago. Removes what it made.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
for variable in ("EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "memory"])

import numpy as np
from django.db import connection
from rich.console import Console
from rich.table import Table

from accounts.models import Workspace
from accounts.services import get_or_create_workspace
from bench.search import sentence
from common.sql import copy_rows
from documents.languages import configuration_oids
from documents.models import EmbeddingSpace
from documents.services import default_space
from memory.models import Context
from memory.scopes import UserScope
from memory.services import archive_turn, search_memory
from memory.store import content_digest

NAME = "benchmark-memory"
USERS, ROWS, LARGE, ASKED = 1_000, 100, 10_000, 300
MUST_TAKE_MS = 20.0
BATCH = 10_000
START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = (
    ("workspace_id", "int8"),
    ("user_id", "text"),
    ("conversation", "text"),
    ("origin", "text"),
    ("user_message", "text"),
    ("assistant_response", "text"),
    ("created_at", "timestamptz"),
    ("content_sha256", "text"),
    ("language", "oid"),
    ("space_id", "int8"),
    ("embedding", "vector"),
    ("embed_attempts", "int2"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("users", USERS), ("rows", ROWS), ("large", LARGE), ("asked", ASKED)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    chance = np.random.default_rng(3)
    workspace = get_or_create_workspace(slug=NAME)
    try:
        fill(workspace, options.users, options.rows, chance)
        fill(workspace, 1, options.large, chance, first="large")
        analyse()
        asked = [f"user {n}" for n in chance.integers(0, options.users, options.asked)]
        many = timed(workspace, asked, chance)
        large = timed(workspace, ["large 0"] * (options.asked // 5), chance)
    finally:
        Context.objects.filter(workspace=workspace)._raw_delete("default")
        workspace.delete()
        analyse()
    table = Table("rows of the user", "", title=f"{options.users * options.rows:,} rows in all, ms")
    for name in ("p50", "p95"):
        table.add_column(name, justify="right")
    for rows, times in ((options.rows, many), (options.large, large)):
        for what, column in zip(("store", "search", "both"), times.T, strict=True):
            p50, p95 = np.percentile(column, [50, 95])
            table.add_row(f"{rows:,}", what, f"{p50:.1f}", f"{p95:.1f}")
    Console().print(table)
    p95 = float(np.percentile(many[:, 2], 95))
    print(f"store and search, p95: {p95:.1f} ms; must be below {MUST_TAKE_MS:g} ms")
    if p95 >= MUST_TAKE_MS:
        sys.exit(1)


def fill(
    workspace: Workspace,
    users: int,
    rows: int,
    chance: np.random.Generator,
    *,
    first: str = "user",
) -> None:
    """`rows` contexts for each of `users`, an hour apart."""
    oid = configuration_oids()["english"]
    space = default_space()
    total = users * rows
    for start in range(0, total, BATCH):
        numbers = range(start, min(start + BATCH, total))
        vectors = unit_vectors(len(numbers), space, chance)
        copy_rows(
            "memory_context",
            COLUMNS,
            lines(workspace, space, numbers, rows, first, oid, vectors, chance),
        )


def lines(
    workspace: Workspace,
    space: EmbeddingSpace,
    numbers: range,
    rows: int,
    first: str,
    oid: int,
    vectors: Any,
    chance: np.random.Generator,
) -> Iterator[Sequence[Any]]:
    for number, vector in zip(numbers, vectors, strict=True):
        user, row = divmod(number, rows)
        said, answer = sentence(chance), f"{sentence(chance)} {sentence(chance)}"
        moment = START + timedelta(hours=row)
        yield (
            *(workspace.pk, f"{first} {user}", f"day {row // 24}", "turn", said, answer, moment),
            *(content_digest(said, answer), oid, space.pk, vector, 0),
        )


def unit_vectors(count: int, space: EmbeddingSpace, chance: np.random.Generator) -> Any:
    vectors = chance.normal(size=(count, space.dimensions)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def timed(workspace: Workspace, users: Sequence[str], chance: np.random.Generator) -> Any:
    """Milliseconds of storing, searching, and both, of shape (users, 3)."""
    times = []
    for number, user in enumerate(users):
        scope = UserScope(workspace.pk, user)
        question = sentence(chance)[:-1] + "?"
        search_memory(scope=scope, query=question)  # its vector is in the cache now
        started = perf_counter()
        archive_turn(scope=scope, user_message=sentence(chance), assistant_response=str(number))
        stored = perf_counter()
        search_memory(scope=scope, query=question)
        done = perf_counter()
        times.append((stored - started, done - stored, done - started))
    return np.array(times) * 1000


def analyse() -> None:
    """What a site's own vacuum does in a while."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE memory_context")


if __name__ == "__main__":
    main()
