"""From a question to everything that a ranking must know of the user's rows. Begin with `find`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np

from common.closeness import on_one_scale
from common.fence import unfenced
from common.postgresql.binary import array, fetch, snapshot
from common.replicas import read_connection
from common.spaceless import letters_alone
from documents.embedders import embed_question
from documents.models import EmbeddingSpace
from documents.spaces import SpaceSql
from inference.base import InferenceError
from memory.ranking import Candidates
from memory.relevance import settled_background
from memory.retrieval.rows import scored
from memory.retrieval.statement import Table, describe, scan
from memory.scopes import UserScope

Mode = Literal["hybrid", "lexical", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

#: So many rows does each arm list; a page of hits is far shorter.
DEPTH = 100
#: Rows move to another space once in a long while.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates in no order. `rows` is how many the user has in all, `background` how similar any
    of them is to the question; `degraded` names what did not work."""

    candidates: Candidates
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
    connection = read_connection()
    spaces = _default_space(connection) if mode != "lexical" else []
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "text": question,
        "prefixes": list(letters_alone(question)),
        "now": now,
    }
    for _ in range(TRIES):
        asked: list[SpaceSql] = []
        error: InferenceError | None = None
        for space in spaces:
            try:
                parameters[space.sql.parameter] = embed_question(space, question)
                asked.append(space.sql)
            except InferenceError as failed:
                error = failed
        if error is not None and mode == "vector" and not asked:
            raise error
        with snapshot(connection):
            rows = scored(fetch(connection, scan(table, asked), parameters, prepare=True))
            listed = rows.listed(depth)
            chosen = {"listed": listed.ids, "best": listed.best, "first": listed.first}
            parameters |= {name: array(ids) for name, ids in chosen.items()}
            details = fetch(connection, describe(table), parameters, prepare=True)
        others = set(rows.spaces.tolist()) - {0, *(space.pk for space in spaces)}
        if mode == "lexical" or not others:
            break
        spaces += EmbeddingSpace.objects.filter(pk__in=others)
    levels = rows.backgrounds()
    # Of a few rows the mean says little, and of one row only how similar that one is.
    scale = {
        space: settled_background(level, rows=count) for space, (level, count) in levels.items()
    }
    ids, texts, likenesses = details[0] if details else (rows.ids[:0], [], rows.lexical[:0])
    places = np.searchsorted(rows.ids, ids)
    words = mode != "vector"  # else they only choose who is looked at
    return Found(
        candidates=Candidates(
            ids=ids,
            moments=rows.moments[places],
            texts=texts,
            lexical=rows.lexical[places] * words,
            coverage=rows.coverage[places] * words,
            similarities=on_one_scale(rows.similarities[places], rows.spaces[places], scale),
            likenesses=likenesses,
            previous=listed.previous[places],
            following=listed.following[places],
        ),
        rows=len(rows.ids),
        # several are joined on a scale on which any row has 0
        background=next(iter(levels.values()))[0] if len(levels) == 1 else None,
        degraded=("vector",) if error is not None and len(ids) else (),
    )


def _default_space(connection: Any) -> list[EmbeddingSpace]:
    """By hand, because making a queryset's SQL takes longer than running it; unfenced, because
    spaces are the site's and a fence would need a transaction."""
    columns = [field.attname for field in EmbeddingSpace._meta.concrete_fields]
    with unfenced():
        rows = fetch(
            connection,
            f"SELECT {', '.join(columns)} FROM documents_embeddingspace WHERE is_default",  # noqa: S608
            prepare=True,
        )
    return [EmbeddingSpace.from_db(connection.alias, columns, row) for row in rows]
