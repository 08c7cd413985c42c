"""Which documents a filter takes whole: `whole_documents`."""

from collections.abc import Collection
from dataclasses import replace

from common.replicas import read_connection
from common.sql import bigint_array, fetch_rows
from documents.languages import configuration
from search.filters import compile_filter
from search.filters.tree import ALL
from search.results import Scope
from search.retrieval.statements import scope_conditions


def whole_documents(scope: Scope, documents: Collection[int]) -> set[int] | None:
    """Those of `documents` whose passages all match the filter of the scope; None where it takes
    some passages of one of them and leaves out others. Without a filter all of them."""
    if not scope.is_filtered or not documents:
        return set(documents)
    where, parameters = scope_conditions(replace(scope, filter=ALL))
    condition, values = compile_filter(scope.filter, configuration=configuration)
    statement = (
        "SELECT chunk.document_id, bool_and(coalesce(taken, false))"  # noqa: S608 (no values)
        " FROM documents_chunk AS chunk"
        f" CROSS JOIN LATERAL (SELECT {condition}) AS filtered (taken)"
        f" WHERE {where} AND chunk.document_id = ANY(%(documents)s::bigint[])"
        " GROUP BY chunk.document_id HAVING bool_or(taken)"
    )
    parameters |= values | {"documents": bigint_array(documents)}
    rows = fetch_rows(read_connection(), statement, parameters)
    return {pk for pk, _ in rows} if all(is_whole for _, is_whole in rows) else None
