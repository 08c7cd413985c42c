"""What the answer of a run cites, as its trace shows it: the passages as they are now."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse

from documents.models import Chunk, Document
from rag.answering.passages import passage_url
from rag.models import Trace
from rag.views.sources import ShownSource, shown_sources

_NUMBER = re.compile(r"\[(\d{1,4})\]")


def cited_sources(
    trace: Trace, *, collections: Mapping[str, str]
) -> tuple[list[ShownSource], list[tuple[int, int]]]:
    """The sources that its answer cites, and where: (offset, number). `collections` are names by
    slug. For a trace whose documents the user may all read."""
    found = {number: (document, chunk) for number, document, chunk in trace.sources}
    cited = [(match.start(), int(match[1])) for match in _NUMBER.finditer(trace.answer)]
    cited = [(at, number) for at, number in cited if number in found]
    wanted = {number: found[number] for _, number in cited}
    chunks = Chunk.objects.filter(pk__in=[chunk for _, chunk in wanted.values()])
    texts = chunks.defer("embedding", "search_vector").in_bulk()
    documents = Document.objects.filter(pk__in=[document for document, _ in wanted.values()])
    rows = documents.select_related("collection").in_bulk()
    passages = [
        _passage(number, rows[document], texts.get(chunk))
        for number, (document, chunk) in sorted(wanted.items())
        if document in rows
    ]
    citations = [{"number": each["number"], **_whole(each)} for each in passages]
    return shown_sources(passages, citations, collections=collections), cited


def _passage(number: int, document: Document, chunk: Chunk | None) -> dict[str, Any]:
    """In the form of an event's passage; without a text where it was cut anew since."""
    slug = document.collection.slug
    return {
        "number": number,
        "title": document.title,
        "document_key": document.key,
        "collection": slug,
        "heading_path": chunk.heading_path if chunk else [],
        "page": chunk.page if chunk else None,
        "url": passage_url(slug, document.pk, chunk.pk)
        if chunk
        else reverse("document", args=[slug, document.pk]),
        "text": chunk.text if chunk else "",
        "start": 0,
        "end": len(chunk.text) if chunk else 0,
    }


def _whole(passage: Mapping[str, Any]) -> dict[str, int]:
    return {"start": passage["start"], "end": passage["end"]}


def titles(sources: Sequence[ShownSource]) -> dict[int, str]:
    """Of the sources, by number."""
    return {source.number: source.title for source in sources}
