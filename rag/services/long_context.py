"""Long contexts: every passage of a small scope (`passages_in_scope`), and the central passages of
one document that a question is about (`read_named_document`)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from django.db import connection
from django.db.models import Q

from documents.models import Chunk, Document
from documents.question_language import question_language
from memory.injection import estimated_tokens
from rag.answering.central_sentences import quoted_pieces
from rag.answering.phrases import say
from rag.answering.prompt import delimit_passage
from rag.answering.whole_document import whole_document_question
from rag.context import RagContext
from rag.events import Citation, Passage, Retrieval
from rag.tools.document_tools import passage_from_chunk, readable_documents
from rag.tools.summaries import document_text_of, quote_sentences, select_passages
from search.results import Scope
from search.retrieval.statements import scope_conditions

#: Share of the prompt's tokens for passages; rules, question and headings take the rest.
PASSAGES_SHARE = 0.7
#: Passages of one document before a chat model: more have no room in any prompt of the site's.
MAX_PASSAGES_OF_DOCUMENT = 40
#: Passages of a scope.
MAX_PASSAGES = 2_000
_MARKER = "0" * 16
_SIZES_SQL = """
SELECT chunk.id, chunk.token_count FROM documents_chunk AS chunk
WHERE {condition} LIMIT %(most)s"""


def passages_in_scope(*, context: RagContext, scope: Scope, max_tokens: int) -> list[Passage]:
    """Every passage in `scope`, in the order of documents, numbered for the answer; [] where they
    have more than `max_tokens`, as the prompt counts them, or are more than MAX_PASSAGES."""
    condition, parameters = scope_conditions(scope)
    with connection.cursor() as cursor:
        statement = _SIZES_SQL.format(condition=condition)
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


@dataclass(frozen=True, slots=True)
class DocumentContext:
    """The passages that an answer about a document is made from; `pieces` are the answer without a
    chat model."""

    retrieval: Retrieval
    language: str
    pieces: Sequence[str | Citation]


def read_named_document(
    message: str, *, context: RagContext, budget_tokens: int | None, language: str = ""
) -> DocumentContext | None:
    """The document that the message asks about as a whole; None for other messages, and where it
    names no document that the user may read, or several. `budget_tokens` are what a chat model may
    read; None: sentences are quoted."""
    asked = whole_document_question(message)
    if asked is None:
        return None
    began = perf_counter()
    kind, name = asked
    document = _named(name, context)
    if document is None:
        return None
    text = document_text_of(document)
    if not text.passages:
        return None
    pieces: list[str | Citation] = []
    spoken = language or question_language(message, default=document.language)
    if budget_tokens is None:
        quotes = quote_sentences(text, kind)
        passages = context.found.add(quote.passage for quote in quotes)
        numbered = [
            replace(quote, passage=passage) for quote, passage in zip(quotes, passages, strict=True)
        ]
        pieces = quoted_pieces(numbered, f"{say('quotes', spoken)}\n\n")
        passages = list(dict.fromkeys(passages))
    else:
        room = budget_tokens * PASSAGES_SHARE
        passages = select_passages(text, MAX_PASSAGES_OF_DOCUMENT)
        tokens = sum(estimated_tokens(passage.text) for passage in passages)
        if tokens > room:
            passages = select_passages(text, max(1, int(len(passages) * room / tokens)))
        passages = context.found.add(passages)
    retrieval = Retrieval(
        query=message,
        passages=tuple(passages),
        elapsed_ms=round((perf_counter() - began) * 1000, 1),
    )
    return DocumentContext(retrieval, spoken, pieces)


def _named(name: str, context: RagContext) -> Document | None:
    """The one readable document with this title, id or file name, else with these words in its
    title; None if there is none, or several."""
    documents = readable_documents(context)
    pattern = re.escape(name)
    for condition in (
        Q(title__iexact=name) | Q(key__iexact=name) | Q(key__iendswith=f"/{name}"),
        Q(key__iregex=rf"(^|/){pattern}\.[^./]+$"),
        Q(title__iregex=rf"\m{pattern}\M"),
    ):
        found = list(documents.filter(condition)[:2])
        if found:
            return found[0] if len(found) == 1 else None
    return None
