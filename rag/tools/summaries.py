"""The text of a document, or of a search's scope, read to be summarised: its most central passages
and sentences. Begin with `document_text_of`, `scope_text_of` and `quote_sentences`; the tool
`summarize_document` shows them to a chat model."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from django.db import connection
from django.utils.translation import gettext
from numpy.typing import NDArray
from pydantic import Field

from common.errors import InvalidInput, NotFound
from common.tools import nonempty, tools_by_name
from documents.models import Chunk, Document
from rag.answering.central_sentences import (
    PASSAGES_PER_SENTENCE,
    central_passages,
    central_sentences,
)
from rag.answering.extractive import Quote
from rag.context import RagContext
from rag.events import Passage
from rag.tools.document_tools import (
    MAX_ID_CHARACTERS,
    AnyCollection,
    format_location,
    named_document,
    passage_from_chunk,
    prefix_lines,
    quote_name,
)
from search.results import Scope
from search.retrieval.statements import scope_conditions

#: Sentences of an extractive summary, by kind.
SENTENCES: Mapping[str, int] = {"about": 4, "summary": 7}
#: Part of each fingerprint: raise it when sentences are chosen in another way.
RECIPE = 1
#: Passages that are considered; of a longer text every second, third … by its id.
MAX_PASSAGES = 20_000
#: Passages whose vectors are compared with each other: their similarities take 16 MB.
MAX_COMPARED = 2_000

_PASSAGES_SQL = """
SELECT chunk.id, chunk.document_id, chunk.space_id, chunk.content_sha256
FROM documents_chunk AS chunk
WHERE {condition} AND chunk.id %% %(step)s = 0
ORDER BY chunk.document_id, chunk.ordinal"""
_COUNT_SQL = "SELECT count(*) FROM documents_chunk AS chunk WHERE {condition}"


@dataclass(frozen=True, slots=True)
class TextToSummarize:
    """The passages of a text in order: (chunk, document, embedding space) ids of those that are
    considered. `fingerprint` names exactly this text. `document` is the one document that it is
    of."""

    workspace_id: int
    passages: Sequence[tuple[int, int, int]]
    passage_count: int
    fingerprint: str
    document: Document | None = None

    @property
    def document_ids(self) -> list[int]:
        """Documents whose text it is; a link and the document that it links to are two."""
        own = {self.document.pk} if self.document else set()
        return sorted(own | {document for _, document, _ in self.passages})


def document_text_of(document: Document) -> TextToSummarize:
    """The text of a document that the caller may read, in the version that it is."""
    condition = "chunk.document_id = %(document)s"
    return _read(
        condition, {"document": document.text_id}, document.workspace_id, document=document
    )


def scope_text_of(scope: Scope) -> TextToSummarize:
    """All passages of a search's scope: what its filters leave of what the user may read."""
    condition, parameters = scope_conditions(scope)
    return _read(condition, parameters, scope.workspace_id)


def find_document(context: RagContext, pk: int) -> Document:
    """The document, in any version, if the caller may read it. Raises NotFound."""
    context.require("read")
    documents = Document.objects.filter(workspace=context.workspace, pk=pk)
    if context.user is not None:
        documents = documents.visible_to(context.user)
    document = documents.select_related("collection").first()
    if document is None:
        raise NotFound(gettext("This document does not exist. It may have been deleted."))
    return document


def _read(
    condition: str, parameters: Mapping[str, Any], workspace_id: int, **fields: Any
) -> TextToSummarize:
    document: Document | None = fields.get("document")
    with connection.cursor() as cursor:
        cursor.execute(_COUNT_SQL.format(condition=condition), parameters)
        (count,) = cursor.fetchone()
        step = -(-count // MAX_PASSAGES) or 1
        cursor.execute(_PASSAGES_SQL.format(condition=condition), {**parameters, "step": step})
        rows = cursor.fetchall()
    digest = hashlib.sha256(f"{RECIPE}/{document.pk if document else ''}/{count}".encode())
    for pk, _, _, sha256 in rows:
        digest.update(f" {pk}:{sha256}".encode())
    passages = [(pk, of, space) for pk, of, space, _ in rows]
    return TextToSummarize(workspace_id, passages, count, digest.hexdigest(), **fields)


def select_passages(text: TextToSummarize, most: int) -> list[Passage]:
    """At most `most` passages that together are like the whole text, in its order, numbered from
    1. By the vectors of the embedding space that most passages are in; evenly spread where there
    are none."""
    rows = list(text.passages)
    if len(rows) > most:
        rows = rows[:: -(-len(rows) // max(most, MAX_COMPARED))]
        spaces = [space for _, _, space in rows]
        usual = max(set(spaces), key=spaces.count)
        vectors = _unit_vectors([pk for pk, _, space in rows if space == usual])
        compared = [row for row in rows if row[0] in vectors] or rows
        if vectors:
            stacked = np.stack([vectors[pk] for pk, _, _ in compared])
            rows = [compared[place] for place in central_passages(stacked, most)]
        else:
            rows = [compared[place * len(compared) // most] for place in range(most)]
    return read_passages([pk for pk, _, _ in rows], document=text.document)


def read_passages(chunk_ids: Sequence[int], *, document: Document | None = None) -> list[Passage]:
    """Passages of these chunks in their order, numbered from 1, as passages of `document` where
    that is given; those that are gone are left out."""
    chunks = {
        chunk.pk: chunk
        for chunk in Chunk.objects.filter(pk__in=chunk_ids)
        .select_related("document__collection")
        .defer("embedding", "search_vector")
    }
    found = [chunks[pk] for pk in chunk_ids if pk in chunks]
    return [
        passage_from_chunk(document or chunk.document, chunk, number=number)
        for number, chunk in enumerate(found, 1)
    ]


def _unit_vectors(chunk_ids: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    rows = Chunk.objects.filter(pk__in=chunk_ids, embedding__isnull=False)
    found = {}
    for pk, embedding in rows.values_list("pk", "embedding"):
        vector = np.asarray(embedding, dtype=np.float32)
        length = float(np.linalg.norm(vector))
        if length > 0:
            found[pk] = vector / length
    return found


def quote_sentences(text: TextToSummarize, kind: str) -> list[Quote]:
    """The most central sentences of the text, in its order."""
    check_kind(text, kind)
    most = SENTENCES[kind]
    return central_sentences(select_passages(text, most * PASSAGES_PER_SENTENCE), most)


def check_kind(text: TextToSummarize, kind: str) -> None:
    """Raise InvalidInput for an unknown kind, and where there is no text."""
    if kind not in SENTENCES:
        raise InvalidInput(
            gettext("The kind of summary “{kind}” does not exist. Use {kinds}.").format(
                kind=kind, kinds=", ".join(SENTENCES)
            ),
            field="kind",
        )
    if not text.passages:
        raise InvalidInput(
            gettext("There is no text to summarize. The selection is empty, or not processed yet.")
        )


def summarize_document(
    *,
    scope: RagContext,
    id: Annotated[str, nonempty("Its id, such as handbook/leave.md.", most=MAX_ID_CHARACTERS)],
    collection: AnyCollection = "",
    kind: Annotated[
        Literal["about", "summary"],
        Field(description="about: its subject in a few sentences. summary: of all its parts."),
    ] = "summary",
) -> str:
    """Read the most central sentences of a whole document, in its order, to say what it is about
    or to summarise it. Each is shown with the number [n] by which to cite it."""
    document = named_document(scope, id, collection)
    text = document_text_of(document)
    quotes = quote_sentences(text, kind)
    passages = scope.found.add(quote.passage for quote in quotes)
    lines = [
        f"Document {quote_name(document.display_title)}, collection"
        f" {quote_name(document.collection.slug)}: the most central sentences of its"
        f" {text.passage_count:,} passage(s)."
    ]
    for passage, quote in zip(passages, quotes, strict=True):
        lines += [f"\n{format_location(passage)}", prefix_lines(quote.text)]
    return "\n".join(lines)


TOOLS = tools_by_name("documents", (summarize_document,), writing=set())
