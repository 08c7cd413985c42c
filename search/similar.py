"""Documents or passages similar to a given one, by stored vectors and by its highest-weighted
terms. Begin with `similar_documents`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from common.replicas import read_connection, reads_from_replica
from documents.embedders import embed_question
from documents.models import Chunk, Document
from inference.interfaces import InferenceError
from search.hits import group_by_document, make_hit
from search.query import Query
from search.query_options import SimilarOptions
from search.ranking import RankingOptions, fused_hits
from search.results import Hit, Mode, Scope, Snippet, read_passages
from search.retrieval.arms import Candidate, retrieve
from search.retrieval.scope_facts import read_scope_facts

#: More keywords would match any text.
MAX_KEYWORDS = 12
#: Characters of a long document that are read.
MAX_KEYWORD_SOURCE_CHARACTERS = 20_000

#: Words with the lexemes they are found by. A term that occurs in no other chunk cannot find
#: similar ones; one that is in every third says nothing. Chunks just removed may be counted.
_KEYWORDS_SQL = """
    WITH chunk AS (
        SELECT collection_id, language,
               left(string_agg(context || ' ' || text, ' '), %(read)s) AS text
        FROM documents_chunk
        WHERE document_id = %(document)s AND (%(chunk)s::bigint IS NULL OR id = %(chunk)s)
        GROUP BY collection_id, language
    ), word AS (
        SELECT collection_id, language, lower(match[1]) AS word, count(*) AS times
        FROM chunk, regexp_matches(text, '[[:alpha:]]{3,40}', 'g') AS match
        GROUP BY 1, 2, 3
    ), lexeme AS (
        SELECT collection_id, language, min(word) AS word, sum(times) AS times, lexeme COLLATE "C"
            AS lexeme
        FROM (SELECT collection_id, language, word, times,
                     (tsvector_to_array(to_tsvector(language, word)))[1] AS lexeme
              FROM word) AS stemmed
        WHERE lexeme IS NOT NULL
        GROUP BY collection_id, language, stemmed.lexeme
    ), frequency AS (
        SELECT lexeme.*,
               coalesce((SELECT sum(octet_length(posting.data) / 5)
                         FROM documents_lexicalsegment AS segment
                         JOIN documents_posting AS posting
                           ON posting.segment_id = segment.id AND posting.lexeme = lexeme.lexeme
                         WHERE segment.collection_id = lexeme.collection_id
                           AND segment.language = lexeme.language AND segment.is_current), 0)
               + coalesce((SELECT sum(cardinality(entries))
                           FROM documents_pendingposting AS pending
                           WHERE pending.collection_id = lexeme.collection_id
                             AND pending.language = lexeme.language AND pending.is_current
                             AND pending.lexeme = lexeme.lexeme), 0) AS chunks
        FROM lexeme
    ), whole AS (
        SELECT collection_id, language, sum(chunks) AS all_chunks
        FROM (SELECT collection_id, language, chunk_count AS chunks
              FROM documents_lexicalsegment WHERE is_current
                AND collection_id IN (SELECT collection_id FROM chunk)
              UNION ALL SELECT collection_id, language, cardinality(entries)
              FROM documents_pendingposting WHERE is_current AND lexeme = ''
                AND collection_id IN (SELECT collection_id FROM chunk)) AS counted
        GROUP BY collection_id, language
    )
    SELECT word
    FROM frequency JOIN whole USING (collection_id, language)
    WHERE chunks > 1 AND 3 * chunks <= greatest(all_chunks, 9)
    ORDER BY ln(1 + times) * ln(all_chunks::float8 / chunks) DESC, lexeme
    LIMIT %(most)s
"""


def top_keywords(document_id: int, *, chunk_id: int | None = None) -> list[str]:
    """Keywords of the document, or of one passage, by tf-idf: frequent in it, rare elsewhere."""
    parameters = {
        "document": document_id,
        "chunk": chunk_id,
        "read": MAX_KEYWORD_SOURCE_CHARACTERS,
        "most": MAX_KEYWORDS,
    }
    with read_connection().cursor() as cursor:
        cursor.execute(_KEYWORDS_SQL, parameters)
        return [word for (word,) in cursor.fetchall()]


#: Candidates per arm.
DEPTH = 200
#: Arm weights: of the many words of a passage, few are its subject.
WEIGHTS = {"lexical": 0.25, "vector": 0.75}
#: Least normalised similarity (0 is unrelated): below it, only the language is shared. In
#: ragsite's own documentation the best eight have 0.5 to 0.8.
MIN_SIMILARITY = 0.3
#: Characters of a text that another space's model embeds.
MAX_EMBEDDED_CHARACTERS = 2000
MAX_TEXT_CHARACTERS = 300

Vectors = dict[int, NDArray[np.float32]]


@reads_from_replica
def similar_documents(document: Document, *, scope: Scope, k: int = 10) -> tuple[Hit, ...]:
    """The `k` documents in `scope` most similar to `document`, best first, each by its most similar
    passage; fewer where others have nothing in common with it.

    Never the document, another version of it, or one with the same text. `scope` must be in the
    document's workspace. The text of a hit is the beginning of its passage; its similarity is None
    for vectors of models that do not work. Raises InvalidInput for an invalid `k`.
    """
    chunks = Chunk.objects.filter(document=document.text_id)
    first = chunks.order_by("ordinal").values_list("context", "text").first()
    with read_connection().cursor() as cursor:
        # One mean vector for each space: there are two during re-embedding.
        cursor.execute(
            "SELECT space_id, avg(embedding) FROM documents_chunk"
            " WHERE document_id = %s AND embedding IS NOT NULL GROUP BY space_id",
            [document.text_id],
        )
        vectors = {space: mean.to_numpy() for space, mean in cursor.fetchall()}
    return _similar(
        document,
        vectors=vectors,
        words=top_keywords(document.text_id),
        opening="\n".join(first or ()),
        scope=scope,
        k=k,
    )


@reads_from_replica
def similar_passages(chunk: Chunk, *, scope: Scope, k: int = 10) -> tuple[Hit, ...]:
    """The `k` passages in `scope` most similar to `chunk`, best first, of other documents and with
    other text. Otherwise like `similar_documents`.
    """
    vectors = Chunk.objects.filter(pk=chunk.pk, embedding__isnull=False).values_list(
        "space_id", "embedding"
    )
    return _similar(
        chunk,
        vectors={space: np.asarray(of, dtype=np.float32) for space, of in vectors},
        words=top_keywords(chunk.document_id, chunk_id=chunk.pk),
        opening=f"{chunk.context}\n{chunk.text}",
        scope=scope,
        k=k,
    )


def _similar(
    subject: Document | Chunk,
    *,
    vectors: Vectors,
    words: Sequence[str],
    opening: str,
    scope: Scope,
    k: int,
) -> tuple[Hit, ...]:
    """What is similar to the subject, given its vectors by space id, keywords, and opening text.
    Each text once, and not the subject's.
    """
    k = SimilarOptions(k=k).k
    document = subject if isinstance(subject, Document) else subject.document
    scope = replace(scope, excluded_document_ids=_same_documents(document))
    listed = _ranked(vectors, words, opening, scope=scope) if opening else []
    best = listed[0].score if listed else 0.0
    text_field = "content_sha256"
    if subject is document:
        text_field = "document__content_sha256"
        listed = group_by_document(listed)
    ids = [hit.chunk_id for hit in listed[: 3 * k]]
    texts = dict(Chunk.objects.filter(pk__in=ids).values_list("pk", text_field))
    passages = read_passages(ids)
    seen = {subject.content_sha256} - {""}
    found: list[Hit] = []
    for hit in listed:
        passage, text = passages.get(hit.chunk_id), texts.get(hit.chunk_id)
        if passage is None or text is None or text in seen:
            continue
        seen |= {text} - {""}
        line = " ".join(passage.text.split())
        if len(line) > MAX_TEXT_CHARACTERS:
            line = line[:MAX_TEXT_CHARACTERS].rpartition(" ")[0].rstrip(",;:") + "…"
        relevance = round(hit.score / best, 4) if best > 0 else 0.0
        shown = {"rank": len(found) + 1, "relevance": relevance, "snippet": Snippet(line, 0)}
        found.append(make_hit(hit, replace(passage, text=line), **shown))
    return tuple(found[:k])


def _same_documents(document: Document) -> tuple[int, ...]:
    """Ids of the document, its versions, and known duplicates."""
    versions = document.versions.values("pk")
    bytes_of = {document.pk, document.text_id}
    same = Document.objects.filter(
        Q(pk__in=versions)
        | Q(pk__in=bytes_of)
        | Q(duplicate_of__in=versions)
        | Q(duplicate_of__in=bytes_of)
    )
    return tuple(same.order_by("pk").values_list("pk", flat=True))


def _ranked(known: Vectors, words: Sequence[str], opening: str, *, scope: Scope) -> list[Candidate]:
    # Its vectors; in other spaces its embedded opening, if the model works.
    vectors: Vectors = {}
    for space in read_scope_facts(scope).spaces:
        if space.pk in known:
            vectors[space.pk] = known[space.pk]
            continue
        with suppress(InferenceError):
            vectors[space.pk] = embed_question(space, opening[:MAX_EMBEDDED_CHARACTERS])
    if not words and not vectors:
        return []
    query = Query(text=" ".join(words))
    mode: Mode = "hybrid" if words else "vector"
    retrieved = retrieve(query, scope=scope, mode=mode, depth=DEPTH, vectors=vectors)
    options = RankingOptions(method="score", depth=DEPTH, k=DEPTH, evidence=False)
    return [
        hit
        for hit in fused_hits(query, retrieved, WEIGHTS, options)
        if (near := hit.arm_score("closeness")) is None or near >= MIN_SIMILARITY
    ]
