"""Search in one user's memory: every row is scored by words and by meaning. Begin with `find`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from common import features
from common.bm25 import Ids, Postings, Scores64, Statistics, Term, score
from common.fusion import normalize_across_spaces
from common.replicas import read_connection
from common.rls import bypass_rls
from common.sql import bigint_array, fetch_rows, read_snapshot
from common.text import single_characters
from documents.embedders import embed_question, scale_of
from documents.lexical_search import term_cte
from documents.models import EmbeddingSpace
from documents.spaces import SpaceSql, similarity_by_space
from inference.interfaces import InferenceError
from memory.ranking import Candidates, shrunk_baseline
from memory.scopes import UserScope

#: Document frequencies are judged as among at least this many rows.
MIN_STATISTICS_ROWS = 100
#: Turns of a conversation with a longer pause between them are not about the same thing.
MAX_TURN_GAP = timedelta(hours=1)


@dataclass(slots=True)
class ScoredRows:
    """Columns, by ascending id: 0 stands for no space, NaN for no similarity. `moments` are in
    microseconds, `coverage` is the share of the question's term weight in a row.
    """

    ids: Ids
    moments: Ids
    threads: Ids
    spaces: Ids
    similarities: Scores64
    lexical: Scores64
    coverage: Scores64

    def backgrounds(self) -> dict[int, tuple[float, int]]:
        """The mean similarity and the number of rows, by space."""
        known = ~np.isnan(self.similarities)
        found = {}
        for space in np.unique(self.spaces[known]).tolist():
            of_it = self.similarities[known & (self.spaces == space)]
            found[space] = float(of_it.mean()), len(of_it)
        return found

    def listed(self, depth: int) -> "SelectedRows":
        """The best `depth` rows by words, the best by vectors, and the neighbours of both, because
        an answer follows its question.
        """
        words = np.lexsort((self.ids, -self.lexical))[: np.count_nonzero(self.lexical)]
        meaning = np.lexsort((self.ids, -self.similarities))
        meaning = meaning[~np.isnan(self.similarities[meaning])]
        _, nearest = np.unique(self.spaces[meaning], return_index=True)
        best = np.zeros(len(self.ids), bool)
        best[words[:depth]] = best[meaning[:depth]] = True
        listed = best.copy()
        previous, following = np.zeros_like(self.ids), np.zeros_like(self.ids)
        order = np.lexsort((self.ids, self.moments, self.threads))
        for steps in (1, 2):
            before, after = order[:-steps], order[steps:]
            together = self.threads[before] == self.threads[after]
            if steps == 1:
                pauses = self.moments[after] - self.moments[before]
                together &= pauses <= MAX_TURN_GAP // timedelta(microseconds=1)
                previous[after[together]] = self.ids[before[together]]
                following[before[together]] = self.ids[after[together]]
            listed[after[together & best[before]]] = True
            listed[before[together & best[after]]] = True
        return SelectedRows(
            ids=self.ids[listed].tolist(),
            best=self.ids[best].tolist(),
            first=self.ids[np.concatenate((words[:1], meaning[nearest]))].tolist(),
            previous=previous,
            following=following,
        )


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Ids of the rows to rank, of the best among them, and of the first by words and, in each
    space, by vectors. `previous` and `following` are columns of all rows: ids of the neighbours in
    the conversation, or 0.
    """

    ids: list[int]
    best: list[int]
    first: list[int]
    previous: Ids
    following: Ids


def score_rows(answer: Sequence[Sequence[Any]]) -> ScoredRows:
    """Score the rows returned by `scan`, with term statistics of these rows alone."""
    if not answer:
        none, nothing = np.zeros(0, np.int64), np.zeros(0)
        return ScoredRows(none, none, none, none, nothing, nothing, nothing)
    *columns, asked_in, times, numbers, held, frequencies = answer[0]
    order = np.argsort(columns[0])
    ids, lengths, moments, languages, threads, spaces, similarities = (
        column[order] for column in columns
    )
    groups: dict[int, tuple[Statistics, list[Term]]] = {}
    for language in np.unique(languages).tolist():
        of_it = lengths[languages == language]
        groups[language] = Statistics(len(of_it), int(of_it.sum()), least=MIN_STATISTICS_ROWS), []
    order = np.lexsort((held, numbers))
    places, frequencies = np.searchsorted(ids, held[order]), frequencies[order]
    ends = np.searchsorted(numbers[order], np.arange(len(times) + 1), side="right").tolist()
    for language, count, (start, end) in zip(
        asked_in.tolist(), times.tolist(), pairwise(ends), strict=True
    ):
        of_it = places[start:end]
        part = Postings(of_it, frequencies[start:end], lengths[of_it])
        groups[language][1].append(Term(float(count), [part]))
    coverage = np.zeros(len(ids))
    for statistics, asked in groups.values():
        weights = [term.weight(statistics) for term in asked]
        for term, weight in zip(asked, weights, strict=True):
            for part in term.counted:
                coverage[part.ids] += weight / sum(weights)
    lexical = score(groups.values()).of(np.arange(len(ids)))
    return ScoredRows(ids, moments, threads, spaces, similarities, lexical, coverage)


#: Characters of a text that are compared by trigrams.
PREVIEW_CHARACTERS = 2000
#: Half the weight of a word of class D, C, B or A, because no weight may exceed 1: words of class A
#: (the user's message, a fact's key) count twice, as headings do.
WEIGHT_HALVES = "{0.5, 0.5, 0.5, 1}"


@dataclass(frozen=True, slots=True)
class SearchedTable:
    """SQL description of a searched table: its condition and the expressions of its columns."""

    name: str
    condition: str
    text: str
    moment: str
    #: Rows of the same value follow each other, in order of `moment`.
    thread: str


CONTEXTS = SearchedTable(
    name="memory_context",
    condition=" AND row.outdated_at IS NULL",
    text=f"left(user_message, {PREVIEW_CHARACTERS}) || E'\\n'"
    f" || left(assistant_response, {PREVIEW_CHARACTERS})",
    moment="created_at",
    thread="hashtextextended(conversation, 0)",
)
FACTS = SearchedTable(
    name="memory_fact",
    condition=" AND row.valid_to IS NULL AND row.valid_from <= %(now)s::timestamptz",
    text=f"replace(key, '_', ' ') || ': ' || left(value, {PREVIEW_CHARACTERS})",
    moment="valid_from",
    thread="id",  # none follows another
)


def scan_sql(table: SearchedTable, spaces: Sequence[SpaceSql]) -> str:
    """SQL for one row of arrays, or none. Of all rows of the user: id, number of words, time in
    microseconds, language, thread, space (0 without one) and similarity (NaN without one). Of the
    question's terms, numbered from 1: language and frequency. Of each row with a term: term number,
    row id, frequency.

    Quotas bound a user's rows, so all are scanned and no index can mix two users.
    """
    return f"""
WITH mine AS MATERIALIZED (
    SELECT row.id, row.language, row.space_id, {table.thread} AS thread, {table.moment} AS moment,
           -- joined with nothing, so that it is decompressed once
           row.search_vector || ''::tsvector AS search_vector,
           {similarity_by_space("row", spaces)} AS similarity
    FROM {table.name} AS row
    -- in subqueries no plan is made for one user: that would take longer each time than it saves
    WHERE row.workspace_id = (SELECT %(workspace)s::bigint)
      AND row.user_id = (SELECT %(user)s::text){table.condition}
),
language AS MATERIALIZED (SELECT DISTINCT language FROM mine),{term_cte()},
-- a tsquery's text quotes any character
asked AS MATERIALIZED (
    SELECT number::bigint, language, times::bigint,
           ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || ''''
            || CASE WHEN is_prefix THEN ':*' ELSE '' END)::tsquery AS query
    FROM term
)
SELECT *
FROM (
    SELECT array_agg(id), array_agg(length(search_vector)::bigint),
           array_agg((extract(epoch FROM moment) * 1000000)::bigint),
           array_agg(language::oid::bigint), array_agg(thread),
           array_agg(coalesce(space_id, 0)), array_agg(coalesce(similarity, 'NaN'))
    FROM mine
    HAVING count(*) > 0
) AS rows,
(
    SELECT coalesce(array_agg(language::oid::bigint), '{{}}'), coalesce(array_agg(times), '{{}}')
    FROM (SELECT * FROM asked ORDER BY number) AS terms
) AS terms,
(
    -- each occurrence of a single term is a cover of its own, and adds its weight: a count
    SELECT coalesce(array_agg(number), '{{}}'), coalesce(array_agg(id), '{{}}'),
           coalesce(
               array_agg((2 * ts_rank_cd('{WEIGHT_HALVES}', search_vector, query))::bigint), '{{}}')
    FROM asked
    JOIN mine ON mine.language = asked.language AND mine.search_vector @@ query
) AS held"""  # noqa: S608 (constants)


def describe_sql(table: SearchedTable) -> str:
    """SQL for arrays of the `listed` rows: ids, texts of those among the `best` (empty for others),
    and feedback similarities: the cosine to the mean direction of the rows `first` in its space,
    NaN without a vector.
    """
    return f"""
WITH first AS MATERIALIZED (
    SELECT space_id, sum(l2_normalize(embedding)) AS vector
    FROM {table.name}
    WHERE id = ANY(%(first)s::bigint[]) AND workspace_id = %(workspace)s::bigint
      AND user_id = %(user)s::text AND embedding IS NOT NULL
    GROUP BY space_id
)
SELECT array_agg(id),
       array_agg(CASE WHEN id = ANY(%(best)s::bigint[]) THEN {table.text} ELSE '' END),
       array_agg(coalesce(1 - (embedding <=> first.vector), 'NaN'))
FROM {table.name}
LEFT JOIN first USING (space_id)
WHERE id = ANY(%(listed)s::bigint[]) AND workspace_id = %(workspace)s::bigint
  AND user_id = %(user)s::text
HAVING count(*) > 0"""  # noqa: S608 (constants)


def read_sql(table: SearchedTable, columns: Sequence[str]) -> str:
    """SQL for the rows with these `ids`, as far as they still belong to the user."""
    return f"""
SELECT {", ".join(columns)}
FROM {table.name} AS row
WHERE id = ANY(%(ids)s) AND row.workspace_id = %(workspace)s
  AND row.user_id = %(user)s{table.condition}"""  # noqa: S608 (constants)


Mode = Literal["hybrid", "lexical", "vector"]
MODES: tuple[Mode, ...] = ("hybrid", "lexical", "vector")

#: Number of rows that each arm lists; a page of hits is far shorter.
CANDIDATE_DEPTH = 100
#: Rows move to another space once in a long while.
SPACE_CHANGE_TRIES = 3


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Unordered candidates. `rows` is the number of rows of the user, `background` the mean
    similarity of them to the question, `unrelated` what the model gives to unrelated texts;
    `degraded` names what did not work.
    """

    candidates: Candidates
    rows: int
    background: float | None
    unrelated: float = 0.0
    degraded: tuple[str, ...] = ()


def find(
    table: SearchedTable,
    question: str,
    *,
    scope: UserScope,
    now: datetime,
    mode: Mode = "hybrid",
    depth: int = CANDIDATE_DEPTH,
) -> Retrieved:
    """Candidates among the rows of `scope` for `question`.

    If the embedder fails, only words are searched and `degraded` says so; in mode `vector` the
    InferenceError is raised, or SwitchedOff on a site without vectors.
    """
    connection = read_connection()
    if mode == "vector":
        features.require("vectors")
    by_meaning = mode != "lexical" and features.is_on("vectors")
    spaces = _default_space(connection) if by_meaning else []
    parameters: dict[str, Any] = {
        "workspace": scope.workspace_id,
        "user": scope.user_id,
        "text": question,
        "prefixes": list(single_characters(question)),
        "now": now,
    }
    for _ in range(SPACE_CHANGE_TRIES):
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
        with read_snapshot(connection):
            rows = score_rows(
                fetch_rows(connection, scan_sql(table, asked), parameters, prepare=True)
            )
            listed = rows.listed(depth)
            chosen = {"listed": listed.ids, "best": listed.best, "first": listed.first}
            parameters |= {name: bigint_array(ids) for name, ids in chosen.items()}
            details = fetch_rows(connection, describe_sql(table), parameters, prepare=True)
        others = set(rows.spaces.tolist()) - {0, *(space.pk for space in spaces)}
        if mode == "lexical" or not others:
            break
        spaces += EmbeddingSpace.objects.filter(pk__in=others)
    levels = rows.backgrounds()
    # With few rows the mean is unreliable, and with one row it is only that row's similarity.
    unrelated = {
        space.pk: max(scale.unrelated, 0.0)
        for space in spaces
        if space.sql in asked and (scale := scale_of(space))
    }
    baselines = {
        space: shrunk_baseline(level, rows=count, unrelated=unrelated.get(space, 0.0))
        for space, (level, count) in levels.items()
    }
    ids, texts, likenesses = details[0] if details else (rows.ids[:0], [], rows.lexical[:0])
    places = np.searchsorted(rows.ids, ids)
    words = mode != "vector"  # else they only choose who is looked at
    return Retrieved(
        candidates=Candidates(
            ids=ids,
            moments=rows.moments[places],
            texts=texts,
            lexical=rows.lexical[places] * words,
            coverage=rows.coverage[places] * words,
            similarities=normalize_across_spaces(
                rows.similarities[places], rows.spaces[places], baselines
            ),
            feedback_similarities=likenesses,
            previous=listed.previous[places],
            following=listed.following[places],
        ),
        rows=len(rows.ids),
        # several are joined on a scale on which any row has 0
        background=next(iter(levels.values()))[0] if len(levels) == 1 else None,
        unrelated=unrelated.get(next(iter(levels)), 0.0) if len(levels) == 1 else 0.0,
        degraded=("vector",) if error is not None and len(ids) else (),
    )


def _default_space(connection: Any) -> list[EmbeddingSpace]:
    """Hand-written, because compiling the queryset takes longer than running it. Row-level security
    is bypassed, because spaces belong to the site and it would need a transaction.
    """
    columns = [field.attname for field in EmbeddingSpace._meta.concrete_fields]
    with bypass_rls():
        rows = fetch_rows(
            connection,
            f"SELECT {', '.join(columns)} FROM documents_embeddingspace WHERE is_default",  # noqa: S608
            prepare=True,
        )
    return [EmbeddingSpace.from_db(connection.alias, columns, row) for row in rows]
