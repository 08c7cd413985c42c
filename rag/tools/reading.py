"""The tool that reads a document, part by part."""

from common.errors import InvalidInput, NotFound
from documents.models import Chunk, Document
from rag.answering.passages import Passage, passage_url
from rag.context import RagContext
from rag.tools.sight import no_document, readable
from rag.tools.wording import fenced, name

#: Of one answer; what is longer is read on from where it ended.
MAX_CHARACTERS = 20_000
#: Collections with a document of the same id, of which one must then be named.
MOST_OF_A_NAME = 20


def get_document(*, scope: RagContext, id: str, collection: str = "", start: int = 0) -> str:
    """A document's text from `start` on, each passage under the number that cites it."""
    found = list(readable(scope, collection=collection, key=id)[:MOST_OF_A_NAME])
    if not found:
        raise NotFound(no_document(id))
    if len(found) > 1:
        slugs = sorted(document.collection.slug for document in found)
        raise InvalidInput(
            f"Several collections have a document {name(id)}. Name the collection: one of"
            f" {', '.join(slugs)}."
        )
    return _told(scope, found[0], int(start))


def _told(context: RagContext, document: Document, start: int) -> str:
    chunks = _chunks(document, start)
    first = f"{name(document.shown_title)}, collection {name(document.collection.slug)}"
    if not chunks:
        what = "There is no text behind this place." if start else "It has no text yet."
        return f"Document {first}. {what}"
    passages = context.found.add(passage_of(document, chunk) for chunk in chunks)
    end, length = chunks[-1].end, _length(document)
    lines = [f"Document {first}, characters {chunks[0].start} to {end} of {length}:"]
    reached = chunks[0].start
    for passage in passages:
        lines.append(f"\n[{passage.number}]{_page(passage)}")
        lines.append(fenced(passage.text[max(reached - passage.start, 0) :]))
        reached = passage.end
    if end < length:
        lines.append(f"\nThere is more: read on with start {end}.")
    return "\n".join(lines)


def _chunks(document: Document, start: int) -> list[Chunk]:
    """Those from the one that holds `start` on, as many as one answer has room for."""
    rows = (
        Chunk.objects.filter(document=document.text_id, end__gt=start)
        .defer("embedding", "search_vector", "metadata")
        .order_by("ordinal")
    )
    kept: list[Chunk] = []
    for chunk in rows.iterator(chunk_size=50):
        if kept and chunk.end - kept[0].start > MAX_CHARACTERS:
            break
        kept.append(chunk)
    return kept


def _length(document: Document) -> int:
    last = Chunk.objects.filter(document=document.text_id).order_by("-end")
    return last.values_list("end", flat=True)[0]


def _page(passage: Passage) -> str:
    return "" if passage.page is None else f" page {passage.page}"


def passage_of(document: Document, chunk: Chunk) -> Passage:
    """Unnumbered, and no search gave it a score."""
    return Passage(
        number=0,
        chunk_id=chunk.pk,
        document_id=document.pk,
        document_key=document.key,
        version=document.version,
        collection_slug=document.collection.slug,
        title=document.shown_title,
        heading_path=tuple(chunk.heading_path),
        page=chunk.page,
        text=chunk.text,
        start=chunk.start,
        end=chunk.end,
        url=passage_url(document.collection.slug, document.pk, chunk.pk),
        language=document.language,
        rank=0,
        similarity=None,
        lexical=None,
        fused=0.0,
        rerank=None,
    )
