"""How fast searches are on the site's own material: the service against the SQL that it sends."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from common.postgresql.binary import fetch
from documents.models import EmbeddingSpace
from search.evaluation.material import (
    Material,
    filled_workspace,
    site_material,
)
from search.evaluation.progress import Progress, nobody_watches
from search.evaluation.wording import make_questions, writer
from search.query import parse_query
from search.results import Mode, Scope
from search.retrieval.arms import retrieve
from search.services import DEPTH, search, site_scope

#: A workspace and a space that exist only while this runs.
NAME = "benchmark"
COLLECTIONS = tuple(f"collection-{number}" for number in range(5))
SIZES = (6_000, 100_000)
#: Of each time the best is taken: what disturbs a machine makes nothing faster.
ROUNDS = 2

#: Those that one statement answers; what the graph adds is measured by `bench.graph`.
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

#: The service may take this times the bare SQL, or so many milliseconds more.
MOST_TIMES = 1.25
MOST_MORE_MS = 2.0
#: Search by words in the largest size may take this times the smallest one's, at the 95th
#: percentile of the bare SQL.
MOST_GROWTH = 3.0

Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds of one kind of work over all questions."""

    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class Speed:
    """One mode at one size: the arms' statements alone, `search` without snippets, and with them.

    `per_second` is how many searches with snippets one asker gets, one after another.
    """

    chunks: int
    mode: Mode
    bare: Spread
    service: Spread
    page: Spread
    per_second: float

    @property
    def times_bare(self) -> float:
        """How many times the bare SQL the service takes, of p50."""
        return self.service.p50_ms / self.bare.p50_ms

    @property
    def bound_ms(self) -> float:
        """What the service's p50 may be."""
        return max(MOST_TIMES * self.bare.p50_ms, self.bare.p50_ms + MOST_MORE_MS)

    @property
    def is_held(self) -> bool:
        return self.service.p50_ms <= self.bound_ms


@dataclass(frozen=True, slots=True)
class Growth:
    """How much longer search by words takes at the largest size than at the smallest."""

    smallest: int
    largest: int
    times: float

    @property
    def is_held(self) -> bool:
        return self.times <= MOST_GROWTH


@dataclass(frozen=True, slots=True)
class Benchmark:
    """All that was measured; without `growth` where there was one size only."""

    speeds: tuple[Speed, ...]
    growth: Growth | None

    @property
    def is_held(self) -> bool:
        """Whether no bound is exceeded."""
        return all(each.is_held for each in (*self.speeds, self.growth) if each is not None)


def measure_speed(
    *,
    sizes: Iterable[int] = SIZES,
    queries: int = 60,
    k: int = 10,
    space: EmbeddingSpace | None = None,
    on_progress: Progress = nobody_watches,
) -> Benchmark:
    """Make chunks of those in `space`, or in the default one, and search them in every mode.

    The same questions are asked at every size. Raises NotFound where the space is empty.
    """
    material = site_material(space)
    questions = make_questions(material, queries, np.random.default_rng(7))
    speeds: list[Speed] = []
    for size in sorted(set(sizes)):
        speeds += _at_size(material, size, questions, k, on_progress)
    return Benchmark(tuple(speeds), _growth(speeds))


def _at_size(
    material: Material, size: int, questions: Sequence[str], k: int, on_progress: Progress
) -> list[Speed]:
    chance = np.random.default_rng(size)
    with filled_workspace(
        material,
        name=NAME,
        collections=COLLECTIONS,
        count=size,
        write=writer(material, COLLECTIONS, chance),
        chance=chance,
        on_progress=on_progress,
    ) as workspace:
        scope = site_scope(workspace=workspace)
        return [_speed(size, mode, scope, questions, k, on_progress) for mode in MODES]


def _speed(
    size: int,
    mode: Mode,
    scope: Scope,
    questions: Sequence[str],
    k: int,
    on_progress: Progress,
) -> Speed:
    """The three kinds of work in turns, so that a busy moment of the machine hits all alike."""
    work = [_work(question, scope, mode, k) for question in questions]
    times = np.full((len(work), 3), np.inf)
    for number in range(ROUNDS):
        for place, kinds in enumerate(work):
            times[place] = np.minimum(times[place], [_milliseconds(kind) for kind in kinds])
            done = number * len(work) + place + 1
            on_progress(f"search {size:,} chunks, {mode}", done, ROUNDS * len(work))
    bare, service, page = (_spread(column) for column in times.T)
    return Speed(size, mode, bare, service, page, round(1000 / float(times[:, 2].mean()), 1))


def _work(question: str, scope: Scope, mode: Mode, k: int) -> tuple[Work, Work, Work]:
    """The SQL, the service and the page for a question; what can be cached is when it returns.

    No model is measured here, so none reads the hits again.
    """

    def page(*, snippets: bool = True) -> Any:
        return search(question, scope=scope, mode=mode, k=k, rerank=False, snippets=snippets)

    page()
    return bare_statements(question, scope, mode), lambda: page(snippets=False), page


def bare_statements(question: str, scope: Scope, mode: Mode) -> Work:
    """Sends the very statements from which the arms make their answer, under their settings, and
    reads the rows.

    The work returns how many milliseconds the statements took, without the settings.
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
                fetch(connection, sql)
            return _since(started)

    return run


def _milliseconds(work: Work) -> float:
    """What the work says that it took, else what it took."""
    started = perf_counter()
    told = work()
    return told if isinstance(told, float) else _since(started)


def _since(started: float) -> float:
    return (perf_counter() - started) * 1000


def _spread(times: Any) -> Spread:
    p50, p95 = np.percentile(times, [50, 95])
    return Spread(round(float(p50), 2), round(float(p95), 2))


def _growth(speeds: Sequence[Speed]) -> Growth | None:
    lexical = [speed for speed in speeds if speed.mode == "lexical"]
    if len(lexical) < 2:
        return None
    first, last = lexical[0], lexical[-1]
    return Growth(first.chunks, last.chunks, round(last.bare.p95_ms / first.bare.p95_ms, 2))
