"""The documents that a caller may read, narrowed as the request is."""

from typing import Any

from django.db import connection
from django.db.models import Q

from documents.models import Document
from documents.querysets import DocumentQuerySet
from rag.context import RagContext
from rag.tools.wording import name
from search.results import Scope
from search.retrieval.scope import scope_conditions

#: So many documents are held against a filter.
MAX_DOCUMENTS = 20_000

_FITTING = """
SELECT DISTINCT chunk.document_id FROM documents_chunk AS chunk
WHERE chunk.document_id = ANY(%(documents)s) AND {condition}"""


def readable(
    context: RagContext, *, collection: str = "", **wanted: Any
) -> "DocumentQuerySet[Document]":
    """Current documents in the context's collections, or in one of these, for which `wanted`
    holds; where the context has a filter, those with a passage that fits it.

    Raises NotFound for a collection that is not there for this caller.
    """
    scope = context.search_scope((collection,) if collection else ())
    documents = (
        Document.objects.current()
        .visible_to(context.user)
        .filter(workspace=context.workspace, collection_id__in=scope.collection_ids)
        .filter(**wanted)
        .select_related("collection")
        .defer("declared")
    )
    if not scope.is_filtered:
        return documents
    rows = documents.values_list("pk", "duplicate_of", "chunk_count")[:MAX_DOCUMENTS]
    fit = _with_passages(scope, [pk if chunks else (of or pk) for pk, of, chunks in rows])
    # The text of a link is the original's.
    return documents.filter(Q(pk__in=fit) | Q(chunk_count=0, duplicate_of__in=fit))


def _with_passages(scope: Scope, ids: list[int]) -> set[int]:
    condition, parameters = scope_conditions(scope)
    with connection.cursor() as cursor:
        statement = _FITTING.format(condition=condition)
        cursor.execute(statement, parameters | {"documents": ids})
        return {document_id for (document_id,) in cursor.fetchall()}


def no_document(id: str) -> str:
    """Not an error: that is an answer as well."""
    return f"Document not found: {name(id)}. Look for it with hybrid_query."
