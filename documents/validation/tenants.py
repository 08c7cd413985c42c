"""Rows that copy the workspace of another: nothing may cross between two."""

from documents.validation.base import Check, SqlProbe

#: table, column that names the other row, the other table; and where the collection stands
_COPIES = (
    ("document", "collection", "collection", "t.collection_id"),
    ("stageddocument", "document", "document", "o.collection_id"),
    ("ingestionrun", "collection", "collection", "t.collection_id"),
    ("ingestionitem", "run", "ingestionrun", "o.collection_id"),
    ("lexicalsegment", "collection", "collection", "t.collection_id"),
)

PROBES = tuple(
    SqlProbe(
        f"""
            SELECT t.id, true AS {table}_workspace
            FROM documents_{table} t JOIN documents_{other} o ON o.id = t.{column}_id
            WHERE t.workspace_id <> o.workspace_id
              AND (%(collection)s::bigint IS NULL OR {collection} = %(collection)s)
        """,  # noqa: S608 (the names above)
        (
            Check(
                f"{table}_workspace",
                f"rows of {table}",
                f"are in another workspace than their {other}",
                "Delete them: their text may be seen by the wrong people.",
            ),
        ),
    )
    for table, column, other, collection in _COPIES
)
