"""Ids in the search log, which triggers keep true and no foreign key can."""

from documents.validation import Check, Scope, SqlProbe, execute, register_probes

#: A search that is logged while its hits are deleted names them.
_LOG = """
    SELECT l.id, true AS searchlog_orphans
    FROM search_searchlog l
    WHERE %(collection)s::bigint IS NULL
      AND (EXISTS (
              SELECT FROM unnest(l.documents) AS named (id)
              WHERE NOT EXISTS (SELECT FROM documents_document d WHERE d.id = named.id)
          ) OR EXISTS (
              SELECT FROM unnest(l.collections) AS named (id)
              WHERE NOT EXISTS (SELECT FROM documents_collection k WHERE k.id = named.id)
          ))
"""

_FORGET = """
    UPDATE search_searchlog l
    SET documents = ARRAY(
            SELECT named.id FROM unnest(l.documents) WITH ORDINALITY AS named (id, place)
            JOIN documents_document d ON d.id = named.id ORDER BY named.place
        ),
        collections = ARRAY(
            SELECT named.id FROM unnest(l.collections) AS named (id)
            JOIN documents_collection k ON k.id = named.id ORDER BY named.id
        )
"""


def _forget(scope: Scope) -> int:
    statement = f"{_FORGET} WHERE l.id IN (SELECT id FROM ({_LOG}) AS orphan)"  # noqa: S608
    return execute(statement, scope)


register_probes(
    [
        SqlProbe(
            _LOG,
            (
                Check(
                    "searchlog_orphans",
                    "logged searches",
                    "name documents or collections that are gone",
                    "`validate --fix` takes them out.",
                    _forget,
                ),
            ),
        )
    ]
)
