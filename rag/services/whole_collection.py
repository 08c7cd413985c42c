"""All that a question may be answered from, given to a chat model whole where that is little."""

from django.db import connection

from documents.models import Chunk
from memory.injection import estimated_tokens
from rag.answering.prompt import delimit_passage
from rag.context import RagContext
from rag.events import Passage
from rag.tools.document_tools import passage_from_chunk
from search.results import Scope
from search.retrieval.statements import scope_conditions

MAX_PASSAGES = 2_000
_MARKER = "0" * 16

_SQL = """
SELECT chunk.id, chunk.token_count FROM documents_chunk AS chunk
WHERE {condition} LIMIT %(most)s"""


def whole_passages(*, context: RagContext, scope: Scope, max_tokens: int) -> list[Passage]:
    """Every passage in `scope`, in the order of documents, numbered for the answer; [] where they
    have more than `max_tokens`, as the prompt counts them, or are more than MAX_PASSAGES."""
    condition, parameters = scope_conditions(scope)
    with connection.cursor() as cursor:
        statement = _SQL.format(condition=condition)
        cursor.execute(statement, {**parameters, "most": MAX_PASSAGES + 1})
        rows = cursor.fetchall()
    if len(rows) > MAX_PASSAGES or sum(tokens for _, tokens in rows) > max_tokens:
        return []
    chunks = (
        Chunk.objects.filter(pk__in=[pk for pk, _ in rows])
        .select_related("document__collection")
        .defer("embedding", "search_vector", "metadata")
        .order_by("document__collection__slug", "document__key", "document_id", "ordinal")
    )
    passages = [passage_from_chunk(chunk.document, chunk) for chunk in chunks]
    needed = sum(estimated_tokens(delimit_passage(passage, _MARKER)) + 2 for passage in passages)
    return context.found.add(passages) if needed <= max_tokens else []
