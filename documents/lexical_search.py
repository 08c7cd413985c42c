"""Reads the inverted index of chunks: the postings of a question's terms, for BM25.

The parts of `statement_parts` form one statement, so that postings, pending and removed chunks are
read in one snapshot; `read_terms` turns its rows into the input of `common.bm25.score`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from common.bm25 import (
    Ids,
    Postings,
    Scores,
    Statistics,
    Term,
    merged,
    score,
    unpack,
    unpack_entries,
)
from common.replicas import read_connection
from common.sql import fetch_rows, one_line

#: The lexeme under which a segment lists all its chunks.
ALL_CHUNKS = ""
#: Code points of the characters that begin the lexemes of forms of words (`ragsite_forms`) and of
#: parts of compounds. No word has such a character: words come after them.
FORM_MARK, PART_MARK, FIRST_WORD = 1, 2, 3
#: How often a form that is part of a question's word counts, where the word counts once.
PART_FREQUENCY = 0.5


def is_part(lexeme: str) -> str:
    """A condition: the column `lexeme` has the mark of parts of compounds."""
    return f"{lexeme} > chr({PART_MARK}) AND {lexeme} < chr({FIRST_WORD})"


#: The terms of a question's words in each language of a CTE of that name.
_WORDS = r"""
        SELECT language.language, found.lexeme, cardinality(found.positions) AS times,
               false AS is_prefix
        FROM language,
             unnest(to_tsvector(language.language, ragsite_words(%(text)s::text))) AS found
        -- the parser gives a hyphenated word and its parts; counting it twice lost a point
        WHERE found.lexeme !~ '^[[:alnum:]]+(-[[:alnum:]]+)+$'
          -- 東京大学 → 東京 京大 大学 学, whose last letter says no more than the pair before it;
          -- letters that stand alone in the query are among its prefixes
          AND NOT ragsite_is_letter(found.lexeme)"""
_PREFIXES = r"""
        UNION ALL
        SELECT language.language, replace(replace(stem.matched[1], '''''', ''''), '\\', '\'), 1,
               true
        FROM language, unnest(%(prefixes)s::text[]) AS word,
             regexp_match(to_tsquery(language.language, word || ':*')::text, '^''(.*)'':\*$')
                 AS stem (matched)
        WHERE stem.matched IS NOT NULL"""


def term_cte(*, prefixes: bool = True) -> str:
    """CTE with the terms of a question's words, and of its prefixes if allowed, in each language of
    the CTE `language`."""
    return f"""
term AS MATERIALIZED (
    SELECT row_number() OVER ()::int AS number, language, lexeme COLLATE "C" AS lexeme, times,
           is_prefix
    FROM ({_WORDS}{_PREFIXES if prefixes else ""}
        ORDER BY language, lexeme, is_prefix
    ) AS ordered
)"""  # noqa: S608 (constants)


#: The lexemes under which postings of terms are looked up: a term itself; words of which it is a
#: form (marked by `FORM_MARK`); its own forms, and words with the same form. A form
#: of several words of the question, or of a part of one, is a term of its own: `part`.
_LOOKUPS = f"""
asked AS MATERIALIZED (
    SELECT language, to_tsvector(language, ragsite_words(%(text)s::text)) AS words,
           octet_length(%(text)s::text) <> length(%(text)s::text) AS may_fold
    FROM language
),
-- the same words, folded: a word and its form are at the same place
form AS MATERIALIZED (
    SELECT DISTINCT term.number, term.language, folded.lexeme COLLATE "C" AS lexeme
    FROM asked,
         unnest(asked.words) AS word,
         unnest(ARRAY[ragsite_fold(%(text)s::text),
                      ragsite_fold(ragsite_digraphs(%(text)s::text))]) AS folded_text,
         unnest(to_tsvector(asked.language, ragsite_words(folded_text))) AS folded,
         term
    WHERE asked.may_fold AND folded.positions[1] = word.positions[1]
      AND folded.lexeme <> word.lexeme
      AND term.language = asked.language AND term.lexeme = word.lexeme AND NOT term.is_prefix
),
part AS MATERIALIZED (
    SELECT -row_number() OVER ()::int AS number, language, other.lexeme COLLATE "C" AS lexeme
    FROM asked, unnest(ragsite_forms(language, %(text)s::text, words)) AS other (lexeme)
    WHERE (language, other.lexeme) NOT IN (SELECT language, lexeme FROM form)
),
lookup AS MATERIALIZED (
    SELECT number, language, lexeme, 0 AS is_variant FROM term WHERE NOT is_prefix
    UNION ALL SELECT number, language, chr({FORM_MARK}) || lexeme, 1 FROM term WHERE NOT is_prefix
    UNION ALL SELECT number, language, chr({PART_MARK}) || lexeme, 2 FROM term WHERE NOT is_prefix
    UNION ALL
    SELECT number, language, mark || lexeme, 1
    FROM (SELECT * FROM form UNION ALL SELECT * FROM part) AS other,
         unnest(ARRAY['', chr({FORM_MARK})]) AS mark
),"""  # noqa: S608 (constants)
#: CTEs `pending` and `removed` of some collections, which `statement_parts` needs beside its own.
PENDING_AND_REMOVED_CTES = one_line("""
-- '' lists all chunks that are in no segment yet
pending AS MATERIALIZED (
    SELECT collection_id, language, is_current, count(*) AS chunks, max(entry >> 24) AS newest,
           count(*) FILTER (WHERE entry & 65535 > 0) AS chunks_with_words,
           sum(entry & 65535) AS total_length
    FROM documents_pendingposting, unnest(entries) AS entry
    WHERE collection_id = ANY(%(collections)s::bigint[]) AND lexeme = ''
    GROUP BY collection_id, language, is_current
),
removed AS MATERIALIZED (
    SELECT collection_id, index_id, language, is_current, length
    FROM documents_removedchunk
    WHERE collection_id = ANY(%(collections)s::bigint[])
)""")
_INDEX = f"""
segment AS MATERIALIZED (
    SELECT id, language, is_current, chunk_count, total_length,
           EXISTS (SELECT FROM documents_posting
                   WHERE segment_id = documents_lexicalsegment.id
                     AND {is_part("lexeme")}) AS has_parts
    FROM documents_lexicalsegment
    WHERE collection_id = ANY(%(collections)s::bigint[]) AND (is_current OR %(superseded)s)
),
language AS MATERIALIZED (
    SELECT language FROM segment
    UNION SELECT language FROM pending WHERE is_current OR %(superseded)s
),"""  # noqa: S608 (constants)

# Rows have the columns (kind, number, a, b, c, flag, name, lexeme, data, ids), each of them NULL
# where a kind has none.
_TERM_ROWS = """
    SELECT 'term' AS kind, number, times::bigint AS a, NULL::bigint AS b, NULL::bigint AS c,
           is_prefix AS flag, language::text AS name, lexeme::text AS lexeme, NULL::bytea AS data,
           NULL::bigint[] AS ids
    FROM term
    UNION ALL
    SELECT 'part', number, NULL, NULL, NULL, NULL, language::text, NULL, NULL, NULL FROM part"""
_STATISTICS = """
    SELECT 'statistics', NULL, sum(chunks)::bigint, sum(total)::bigint, NULL, NULL, language::text,
           NULL, NULL, NULL
    FROM (SELECT language, chunk_count AS chunks, total_length AS total FROM segment
          WHERE is_current
          UNION ALL
          SELECT language, chunks_with_words, total_length FROM pending WHERE is_current
          UNION ALL SELECT language, -(length > 0)::int, -length FROM removed
          WHERE is_current) AS each
    GROUP BY language"""
# OFFSET 0: a lookup for each term and segment, whatever the planner believes. With a join it reads
# the postings of all collections where its statistics are old.
_POSTINGS = """
    SELECT 'posting', asked.number, posting.base, {is_variant}::bigint, NULL, segment.is_current,
           NULL, NULL, posting.data, NULL
    FROM {asked} AS asked
    JOIN segment ON segment.language = asked.language
    CROSS JOIN LATERAL (
        SELECT base, data FROM documents_posting
        WHERE segment_id = segment.id AND {condition} OFFSET 0
    ) AS posting
    WHERE {only}"""
_PENDING = """
    SELECT 'pending', asked.number, NULL, {is_variant}::bigint, NULL, posting.is_current,
           NULL, NULL, NULL, array_agg(entry)
    FROM {asked} AS asked
    CROSS JOIN LATERAL (
        SELECT is_current, entries FROM documents_pendingposting
        WHERE collection_id = ANY(
                (SELECT array_agg(DISTINCT collection_id) FROM pending)::bigint[])
          AND language = asked.language AND (is_current OR %(superseded)s) AND {condition} OFFSET 0
    ) AS posting, unnest(posting.entries) AS entry
    WHERE {only}
    GROUP BY 2, 4, 6"""
_WORDS_ASKED = {
    "asked": "lookup",
    "is_variant": "asked.is_variant",
    "condition": "lexeme = asked.lexeme",
}
_PREFIXES_ASKED = {
    "asked": "term",
    "is_variant": "0",
    "condition": "lexeme >= asked.lexeme AND lexeme <= asked.lexeme || chr(1114111)",
    "only": "asked.is_prefix AND asked.lexeme <> ''",
}
_REMOVED = """
    SELECT 'removed', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           array_agg(index_id ORDER BY index_id)
    FROM removed HAVING count(*) > 0"""


@cache
def statement_parts(*, prefixes: bool) -> tuple[str, Sequence[str]]:
    """CTEs, to follow PENDING_AND_REMOVED_CTES, and SELECTs to join by UNION ALL.
    `statement_parameters` has their parameters.

    `prefixes`: whether the question may have some.
    """
    rows = [_TERM_ROWS, _STATISTICS, _REMOVED]
    rows.append(_POSTINGS.format(**_WORDS_ASKED, only="asked.is_variant < 2 OR has_parts"))
    rows.append(_PENDING.format(**_WORDS_ASKED, only="asked.is_variant < 2"))
    if prefixes:
        rows += [_POSTINGS.format(**_PREFIXES_ASKED), _PENDING.format(**_PREFIXES_ASKED)]
    ctes = f"{_INDEX}{term_cte(prefixes=prefixes)},{_LOOKUPS}".rstrip(",")
    return one_line(ctes), tuple(map(one_line, rows))


@dataclass(slots=True)
class Terms:
    """A question's terms with their postings, by language: `lexemes` names the `terms` in order.
    `parts` are forms of several words, or of a part of one, such as `user` of `getUserById`."""

    statistics: dict[str, Statistics] = field(default_factory=dict)
    lexemes: dict[str, list[str]] = field(default_factory=dict)
    terms: dict[str, list[Term]] = field(default_factory=dict)
    parts: dict[str, list[Term]] = field(default_factory=dict)

    def score(self) -> Scores:
        """BM25 scores of all chunks that contain a term."""
        return score(
            (
                self._statistics_of(language),
                [*self.terms.get(language, []), *self.parts.get(language, [])],
            )
            for language in self.statistics
        )

    def _statistics_of(self, language: str) -> Statistics:
        """With document frequencies as among the chunks of all languages: where few are in this
        one, their words are no less rare."""
        chunks = sum(each.documents for each in self.statistics.values())
        return replace(self.statistics[language], least=chunks)

    def coverage(self, language: str) -> float:
        """The share (0..1) of the question's terms, weighted by rarity, that the chunk with most of
        them contains, among those in this language."""
        terms = self.terms.get(language, [])
        if not terms:
            return 0.0
        statistics = self._statistics_of(language)
        weights = [term.weight(statistics) for term in terms]
        ids = [part.ids for term in terms for part in (*term.counted, *term.variants)]
        parts = [
            np.full(len(part), weight)
            for term, weight in zip(terms, weights, strict=True)
            for part in (*term.counted, *term.variants)
        ]
        if not ids or not sum(weights):
            return 0.0
        _, places = np.unique(np.concatenate(ids), return_inverse=True)
        return float(np.bincount(places, np.concatenate(parts)).max() / sum(weights))

    @property
    def has_unknown(self) -> bool:
        """Whether in every language some term occurs in no chunk."""
        return bool(self.terms) and all(
            any(term.is_unknown for term in terms) for terms in self.terms.values()
        )

    def document_frequencies(self) -> dict[str, dict[str, int]]:
        """Number of current chunks that contain each lexeme, by language."""
        return {
            language: {
                lexeme: term.document_frequency
                for lexeme, term in zip(self.lexemes[language], terms, strict=True)
            }
            for language, terms in self.terms.items()
        }


def statement_parameters(
    *, collections: Sequence[int], text: str, prefixes: Sequence[str], superseded: bool = False
) -> dict[str, Any]:
    """Parameters of `statement_parts`: ids of collections, the question's words and prefixes, and
    whether superseded versions are scored too."""
    return {
        "collections": list(collections),
        "text": text,
        "prefixes": list(prefixes),
        "superseded": superseded,
    }


def read_terms(rows: Iterable[Sequence[Any]]) -> Terms:
    """`Terms` from the rows of a statement; rows of other kinds are skipped."""
    by_kind: dict[str, list[Sequence[Any]]] = defaultdict(list)
    for row in rows:
        by_kind[row[0]].append(row)
    removed: Ids = by_kind["removed"][0][9] if by_kind["removed"] else np.zeros(0, np.int64)
    found = Terms()
    for _, _, chunks, total, _, _, language, *_ in by_kind["statistics"]:
        found.statistics[language] = Statistics(chunks, total)
    numbered: dict[int, Term] = {}
    prefixes: set[int] = set()
    for _, number, times, _, _, is_prefix, language, lexeme, *_ in by_kind["term"]:
        numbered[number] = Term(float(times))
        found.terms.setdefault(language, []).append(numbered[number])
        found.lexemes.setdefault(language, []).append(lexeme)
        # Superseded versions alone: of a language that nothing is counted of.
        found.statistics.setdefault(language, Statistics())
        if is_prefix:
            prefixes.add(number)
    for _, number, _, _, _, _, language, *_ in by_kind["part"]:
        numbered[number] = Term(PART_FREQUENCY)
        found.parts.setdefault(language, []).append(numbered[number])
        found.statistics.setdefault(language, Statistics())
    for kind, number, base, is_variant, _, is_current, _, _, data, entries in (
        *by_kind["posting"],
        *by_kind["pending"],
    ):
        listed = unpack(base, data) if kind == "posting" else unpack_entries(np.sort(entries))
        part = listed.without(removed)
        if len(part):
            term = numbered[number]
            exact, others = (
                (term.variants, term.other_variants) if is_variant else (term.counted, term.others)
            )
            (exact if is_current else others).append(part)
    for number in prefixes:
        # A chunk may have several words that begin so.
        numbered[number].counted = _sum_postings(numbered[number].counted)
        numbered[number].others = _sum_postings(numbered[number].others)
    for term in numbered.values():
        term.variants = _without(_sum_postings(term.variants), term.counted)
        term.other_variants = _without(_sum_postings(term.other_variants), term.others)
    return found


def _without(variants: list[Postings], exact: list[Postings]) -> list[Postings]:
    """Those of chunks that do not have the term itself as well."""
    known = merged(exact).ids if variants else np.zeros(0, np.int64)
    return [part for each in variants if len(part := each.without(known))]


def _sum_postings(parts: Sequence[Postings]) -> list[Postings]:
    together = merged(parts)
    if not len(together):
        return []
    ids, first, inverse = np.unique(together.ids, return_index=True, return_inverse=True)
    frequencies = np.bincount(inverse, together.frequencies).astype(np.int64)
    return [Postings(ids, np.minimum(frequencies, 255), together.lengths[first])]


def find_terms(*, collections: Sequence[int], text: str, superseded: bool = False) -> Terms:
    """The postings of a text's words in these collections, by a separate statement."""
    ctes, selects = statement_parts(prefixes=False)
    statement = f"WITH {PENDING_AND_REMOVED_CTES}, {ctes}{' UNION ALL'.join(selects)}"
    parameters: Mapping[str, Any] = statement_parameters(
        collections=collections, text=text, prefixes=(), superseded=superseded
    )
    return read_terms(fetch_rows(read_connection(), statement, parameters))


def chunks_with(lexeme: str, *, language: str, collections: Sequence[int]) -> Ids:
    """Index ids of the current chunks that contain a lexeme; may include removed ones."""
    rows = fetch_rows(
        read_connection(),
        "SELECT base, data FROM documents_lexicalsegment AS segment"
        " JOIN documents_posting AS posting ON posting.segment_id = segment.id"
        " WHERE segment.collection_id = ANY(%s) AND segment.language = %s::regconfig"
        " AND segment.is_current AND posting.lexeme = %s ORDER BY base",
        [list(collections), language, lexeme],
    )
    return merged([unpack(base, data) for base, data in rows]).ids
