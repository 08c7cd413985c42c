"""Consistency checks of memory that constraints cannot express: histories, sources, vectors, the
queue.
"""

from functools import partial

from documents.validation import Check, Scope, SqlProbe, execute, register_probes
from memory.models import MAX_EMBED_ATTEMPTS

# Memories are in no collection: looking at one looks at none of them.

#: Reads every fact once. A fact that ended when it began never held, and overlaps nothing.
_OVERLAPPING_FACTS = """
    SELECT id, ends_before_it > valid_from AS fact_overlap
    FROM (
        SELECT id, valid_from,
               max(coalesce(valid_to, 'infinity')) OVER (
                   PARTITION BY workspace_id, user_id, key ORDER BY valid_from, id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
               ) AS ends_before_it
        FROM memory_fact
        WHERE %(collection)s::bigint IS NULL AND (valid_to IS NULL OR valid_to > valid_from)
    ) AS held
"""

_END_OVERLAPS = """
    UPDATE memory_fact f
    SET valid_to = held.next, superseded_by_id = held.next_id
    FROM (
        SELECT id, lead(valid_from) OVER later AS next, lead(id) OVER later AS next_id
        FROM memory_fact
        WHERE valid_to IS NULL OR valid_to > valid_from
        WINDOW later AS (PARTITION BY workspace_id, user_id, key ORDER BY valid_from, id)
    ) AS held
    WHERE held.id = f.id AND f.valid_to > held.next
"""

_WRONG_REFERENCES = """
    SELECT f.id,
           c.id IS NOT NULL AND (c.workspace_id, c.user_id) <> (f.workspace_id, f.user_id)
               AS fact_source,
           n.id IS NOT NULL AND (n.workspace_id, n.user_id, n.key)
               <> (f.workspace_id, f.user_id, f.key) AS fact_superseded_by
    FROM memory_fact f
    LEFT JOIN memory_context c ON c.id = f.source_id
    LEFT JOIN memory_fact n ON n.id = f.superseded_by_id
    WHERE %(collection)s::bigint IS NULL
"""

_ABANDONED = """
    SELECT id, true AS extraction_without_lease
    FROM memory_extractionitem
    WHERE %(collection)s::bigint IS NULL AND state = 'running'
      AND (leased_until IS NULL OR leased_until < now() - %(abandoned)s)
"""

_RELEASE_ABANDONED = f"""
    UPDATE memory_extractionitem
    SET state = 'waiting', token = NULL, leased_until = NULL, due_at = now()
    WHERE id IN (SELECT id FROM ({_ABANDONED}) AS running)
"""  # noqa: S608 (the text above)


def _reference_check(column: str, name: str) -> Check:
    """Check of a reference; the fix removes the reference and keeps the fact."""

    def mend(scope: Scope) -> int:
        wrong = f"SELECT id FROM ({_WRONG_REFERENCES}) AS fact WHERE {name}"  # noqa: S608
        statement = f"UPDATE memory_fact SET {column} = NULL WHERE id IN ({wrong})"  # noqa: S608
        return execute(statement, scope)

    problem = {
        "fact_source": "name another user's context as their source",
        "fact_superseded_by": "are superseded by another user's fact, or by one of another key",
    }[name]
    return Check(name, "facts", problem, "`validate --fix` takes that out.", mend)


def _vector_probe(table: str) -> SqlProbe:
    """Reads every vector. Unusable ones are computed again from their texts."""
    sql = f"""
        SELECT r.id,
               r.embedding IS NULL AND r.embed_attempts >= {MAX_EMBED_ATTEMPTS}
                   AS {table}_without_vector,
               vector_dims(r.embedding) <> s.dimensions AS {table}_vector_dimensions,
               NOT (vector_norm(r.embedding) > 0 AND vector_norm(r.embedding) < 'infinity')
                   AS {table}_vector_unusable
        FROM memory_{table} r LEFT JOIN documents_embeddingspace s ON s.id = r.space_id
        WHERE %(collection)s::bigint IS NULL
    """  # noqa: S608 (the names of our tables)

    def again(scope: Scope) -> int:
        return execute(
            f"""
                UPDATE memory_{table} SET embedding = NULL, space_id = NULL, embed_attempts = 0
                WHERE id IN (
                    SELECT id FROM ({sql}) AS looked_at
                    WHERE {table}_without_vector OR {table}_vector_dimensions
                       OR {table}_vector_unusable
                )
            """,  # noqa: S608
            scope,
        )

    rows, cure = f"{table}s", "`validate --fix` has them embedded anew."
    return SqlProbe(
        sql,
        (
            Check(
                f"{table}_without_vector",
                rows,
                f"were refused by the embedder {MAX_EMBED_ATTEMPTS} times: words alone find them",
                "See the workers' log for why. `validate --fix` has them tried again.",
                again,
            ),
            Check(
                f"{table}_vector_dimensions",
                rows,
                "have a vector of other dimensions than their space",
                cure,
                again,
            ),
            Check(
                f"{table}_vector_unusable",
                rows,
                "have a vector of zeros, NaN or infinity, which is near to nothing",
                cure,
                again,
            ),
        ),
    )


register_probes(
    [
        SqlProbe(
            _OVERLAPPING_FACTS,
            (
                Check(
                    "fact_overlap",
                    "facts",
                    "begin while another value of their key still holds",
                    "`validate --fix` ends the earlier one there, if it has an end at all; else"
                    " set the fact again.",
                    partial(execute, _END_OVERLAPS),
                ),
            ),
        ),
        SqlProbe(
            _WRONG_REFERENCES,
            (
                _reference_check("source_id", "fact_source"),
                _reference_check("superseded_by_id", "fact_superseded_by"),
            ),
        ),
        _vector_probe("context"),
        _vector_probe("fact"),
        SqlProbe(
            _ABANDONED,
            (
                Check(
                    "extraction_without_lease",
                    "conversations",
                    "are being read by nobody",
                    "Is a scheduler running? `validate --fix` puts them back into the queue.",
                    partial(execute, _RELEASE_ABANDONED),
                ),
            ),
        ),
    ]
)
