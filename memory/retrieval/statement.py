"""The statements of a search: all the user's rows in numbers, what the listed ones say, and the
best of them in full."""

from collections.abc import Sequence
from dataclasses import dataclass

from documents.lexical_search import term_cte
from documents.spaces import SpaceSql, similarity_by_space

#: As much of a text as its letters are compared by.
PREVIEW_CHARACTERS = 2000
#: Half of how often a word of weight D, C, B or A counts, because no weight may be above 1: what
#: the user said and the key of a fact, which have A, count twice, as headings do.
HALVES = "{0.5, 0.5, 0.5, 1}"


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
    text=f"left(user_message, {PREVIEW_CHARACTERS}) || E'\\n'"
    f" || left(assistant_response, {PREVIEW_CHARACTERS})",
    moment="created_at",
    thread="hashtextextended(conversation, 0)",
)
FACTS = Table(
    name="memory_fact",
    condition=" AND row.valid_to IS NULL AND row.valid_from <= %(now)s::timestamptz",
    text=f"replace(key, '_', ' ') || ': ' || left(value, {PREVIEW_CHARACTERS})",
    moment="valid_from",
    thread="id",  # none follows another
)


def scan(table: Table, spaces: Sequence[SpaceSql]) -> str:
    """One row of arrays, or none. Of all rows of the user: id, words, moment in microseconds,
    language, thread, space (0 without one) and similarity (NaN without one). Of the question's
    terms, numbered from 1: language, and times asked for. Of each row with a term: the term's
    number, the row's id, and how often it has it.

    Quotas bound a user's rows, so nothing is missed and no index can mix two users.
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
           coalesce(array_agg((2 * ts_rank_cd('{HALVES}', search_vector, query))::bigint), '{{}}')
    FROM asked
    JOIN mine ON mine.language = asked.language AND mine.search_vector @@ query
) AS held"""  # noqa: S608 (constants)


def describe(table: Table) -> str:
    """Of the rows of `listed` ids arrays, where there are any: ids, texts of those among the `best`
    (empty for others), and likenesses: the cosine to the direction between the rows `first` by
    words and by meaning in its space, NaN without one."""
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


def read(table: Table, columns: Sequence[str]) -> str:
    """The rows of some `ids`, as far as they are still the user's."""
    return f"""
SELECT {", ".join(columns)}
FROM {table.name} AS row
WHERE id = ANY(%(ids)s) AND row.workspace_id = %(workspace)s
  AND row.user_id = %(user)s{table.condition}"""  # noqa: S608 (constants)
