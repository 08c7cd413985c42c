"""The statement that scores all rows of a user by words and by meaning."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.spaceless import letters_alone
from documents.spaces import SpaceSql, similarity_by_space
from memory.scopes import UserScope

SQL_DIRECTORY = Path(__file__).parent / "sql"

#: Robertson and Zaragoza, “The Probabilistic Relevance Framework: BM25 and Beyond” (2009).
K1 = 1.2
B = 0.75
#: So often more counts a word that the user said, or of a fact's key: as a heading of a document.
SAID_BOOST = 1.0
#: How rare words are is judged as among so many rows at least.
LEAST_ROWS = 100
#: Turns of a conversation with a longer pause between them are not about the same thing.
PAUSE = timedelta(hours=1)
#: As much of a text as its letters are compared by.
PREVIEW_CHARACTERS = 2000

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of remembered rows, in SQL: what counts of it, and the columns that tell of a row."""

    name: str
    condition: str
    text: str
    moment: str
    #: Rows of the same value follow each other, in order of `moment`.
    thread: str


CONTEXTS = Table(
    name="memory_context",
    condition="",
    text="left(user_message, {n}) || E'\\n' || left(assistant_response, {n})",
    moment="created_at",
    thread="conversation",
)
FACTS = Table(
    name="memory_fact",
    condition=" AND row.valid_to IS NULL AND row.valid_from <= %(now)s",
    text="replace(key, '_', ' ') || ': ' || left(value, {n})",
    moment="valid_from",
    thread="id",  # none follows another
)


@dataclass(frozen=True, slots=True)
class SpaceQuery:
    """The question's vector in one space."""

    space: SpaceSql
    vector: NDArray[np.float32]


@cache
def piece(name: str) -> str:
    """The text of `sql/name.sql`."""
    return (SQL_DIRECTORY / f"{name}.sql").read_text()


def build_statement(
    table: Table,
    question: str,
    *,
    scope: UserScope,
    spaces: Sequence[SpaceQuery],
    depth: int,
    now: datetime | None = None,
) -> tuple[str, Parameters]:
    """SQL and its parameters.

    Rows: (id, moment, text, lexical score, coverage, similarity, space, likeness to the best by
    words and by meaning, previous and following row of the conversation) of the best `depth` by
    words, the best by meaning, and the neighbours of both (these without their text).

    What holds for all rows stands in one whose id is NULL, as JSON in the column of the text: how
    many they are, their spaces, and by space the mean similarity and of how many rows.
    """
    parameters: Parameters = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "text": question,
        "prefixes": list(letters_alone(question)),
        "depth": depth,
        "k1": K1,
        "b": B,
        "said_boost": SAID_BOOST,
        "least_rows": LEAST_ROWS,
        "pause": PAUSE,
        "now": now,
    }
    for entry in spaces:
        parameters[entry.space.parameter] = entry.vector
    steps = [
        piece("mine").format(
            table=table.name,
            condition=table.condition,
            similarity=similarity_by_space("row", [entry.space for entry in spaces]),
            moment=table.moment,
            thread=table.thread,
        ),
        piece("terms"),
        piece("bm25"),
        piece("listed"),
        piece("best").format(table=table.name),
    ]
    selection = piece("selection").format(
        table=table.name, text=table.text.format(n=PREVIEW_CHARACTERS), moment=table.moment
    )
    return "WITH\n" + ",\n".join(steps) + "\n" + selection, parameters
