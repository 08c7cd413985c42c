"""Running the statement: a question in, everything that a ranking must know out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Any, Literal, NamedTuple

from common.closeness import on_one_scale
from common.replicas import read_connection
from documents.embedders import embed_question
from documents.models import EmbeddingSpace
from inference.base import InferenceError
from memory.ranking import Candidate
from memory.relevance import settled_background
from memory.retrieval.statement import SpaceQuery, Table, build_statement
from memory.scopes import UserScope

Mode = Literal["hybrid", "lexical", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

#: So many rows does each arm list; a page of hits is far shorter.
DEPTH = 100
#: Rows move to another space once in a long while.
TRIES = 3


class Row(NamedTuple):
    """A row of the statement that stands for a remembered one."""

    id: int
    moment: datetime
    text: str
    lexical: float | None
    coverage: float | None
    similarity: float | None
    space_id: int
    likeness: float | None
    previous: int | None
    following: int | None


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates in no order. `rows` is how many the user has in all, `background` how similar any
    of them is to the question; `degraded` names what did not work."""

    candidates: tuple[Candidate, ...]
    rows: int
    background: float | None
    degraded: tuple[str, ...] = ()


def find(
    table: Table,
    question: str,
    *,
    scope: UserScope,
    now: datetime,
    mode: Mode = "hybrid",
    depth: int = DEPTH,
) -> Found:
    """What the rows of `scope` have to do with `question`.

    A model that does not work leaves the words, and it is said. With mode `vector` there is nothing
    left then, and the InferenceError is raised.
    """
    spaces = list(EmbeddingSpace.objects.filter(is_default=True)) if mode != "lexical" else []
    for _ in range(TRIES):
        queries, error = _queries(spaces, question)
        if error is not None and mode == "vector" and not queries:
            raise error
        rows, whole = _run(table, question, scope=scope, queries=queries, depth=depth, now=now)
        others = set(whole["spaces"]) - {space.pk for space in spaces}
        if mode == "lexical" or not others:
            break
        spaces += EmbeddingSpace.objects.filter(pk__in=others)
    levels = {int(space): told for space, told in whole["backgrounds"].items()}
    # Of a few rows the mean says little, and of one row only how similar that one is.
    scale = {
        space: settled_background(level, rows=count) for space, (level, count) in levels.items()
    }
    return Found(
        candidates=_candidates(rows, scale, words=mode != "vector"),
        rows=whole["rows"],
        # several are joined on a scale on which any row has 0
        background=next(iter(levels.values()))[0] if len(levels) == 1 else None,
        degraded=("vector",) if error is not None and rows else (),
    )


def _queries(
    spaces: Sequence[EmbeddingSpace], question: str
) -> tuple[list[SpaceQuery], InferenceError | None]:
    queries: list[SpaceQuery] = []
    error: InferenceError | None = None
    for space in spaces:
        try:
            queries.append(SpaceQuery(space.sql, embed_question(space, question)))
        except InferenceError as failed:
            error = failed
    return queries, error


def _run(
    table: Table,
    question: str,
    *,
    scope: UserScope,
    queries: Sequence[SpaceQuery],
    depth: int,
    now: datetime,
) -> tuple[list[Any], dict[str, Any]]:
    sql, parameters = build_statement(
        table, question, scope=scope, spaces=queries, depth=depth, now=now
    )
    with read_connection().cursor() as cursor:
        cursor.execute(sql, parameters)
        rows = cursor.fetchall()
    whole = next(row for row in rows if row[0] is None)
    return [row for row in rows if row[0] is not None], json.loads(whole[2])


def _candidates(
    rows: Sequence[Any], backgrounds: dict[int, float], *, words: bool
) -> tuple[Candidate, ...]:
    found = [Row(*row) for row in rows]
    close = on_one_scale(
        {row.id: (row.space_id, row.similarity) for row in found if row.similarity is not None},
        backgrounds,
    )
    return tuple(
        Candidate(
            id=row.id,
            created_at=row.moment,
            text=row.text,
            lexical=(row.lexical or 0.0) if words else 0.0,
            coverage=(row.coverage or 0.0) if words else 0.0,
            similarity=close.get(row.id),
            # NaN is a likeness without a direction: that between two opposite vectors
            likeness=None if row.likeness is None or isnan(row.likeness) else row.likeness,
            previous=row.previous,
            following=row.following,
        )
        for row in found
    )
