"""Passages as the ranking compares them and a page shows them: a chunk with its document."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from common.postgresql.binary import array, fetch
from common.replicas import read_connection
from documents.models.chunk import embedding_text
from search.filters.derived import BROUGHT_TEXT, DATE_KEYS, DATED_TEXT

_SQL = f"""
    SELECT chunk.id, chunk.key, chunk.ordinal, chunk.text, chunk.context, chunk.heading_path,
           chunk.page, chunk.parent, chunk.start, chunk."end", chunk.summary, chunk.token_count,
           chunk.media_type, chunk.metadata::text, chunk.collection_id, chunk.space_id,
           document.id, document.key, document.version, document.is_current,
           coalesce(nullif(document.title, ''), nullif(document.source, ''), document.key),
           document.source, document.url, document.rendering, document.language,
           document.updated_at,
           coalesce(CASE WHEN document.metadata ?| %s::text[] THEN {DATED_TEXT} END, {BROUGHT_TEXT})
    FROM unnest(%s::bigint[]) AS wanted (id)
    JOIN documents_chunk AS chunk ON chunk.id = wanted.id
    JOIN documents_document AS document ON document.id = chunk.document_id
"""  # noqa: S608  # of constants


class Passage(NamedTuple):
    """A chunk with what its document tells of it. `title` is what people see the document called,
    `dated` the day that it is of, ISO and as precise as its metadata say, or else the day on which
    it was brought."""

    chunk_id: int
    chunk_key: str
    ordinal: int
    text: str
    context: str
    heading_path: list[str]
    page: int | None
    parent: int | None
    start: int
    end: int
    summary: str
    token_count: int
    media_type: str
    metadata_json: str
    collection_id: int
    space_id: int
    document_id: int
    document_key: str
    version: int
    is_current: bool
    title: str
    source: str
    url: str
    rendering: str
    language: str
    updated_at: datetime
    dated: str

    @property
    def pk(self) -> int:
        """As a chunk has it."""
        return self.chunk_id

    @property
    def embedded_text(self) -> str:
        """Title, headings and text, as models and trigrams compare it."""
        return embedding_text(self.context, self.text)

    @property
    def metadata(self) -> dict[str, Any]:
        """The chunk's metadata."""
        found: dict[str, Any] = json.loads(self.metadata_json)
        return found


def read_passages(chunk_ids: Sequence[int]) -> dict[int, Passage]:
    """Passages by chunk id; one that was deleted meanwhile is absent."""
    rows = fetch(read_connection(), _SQL, [list(DATE_KEYS), array(chunk_ids)], prepare=True)
    return {row[0]: Passage._make(row) for row in rows}


class KnownPassages:
    """Reads passages, each once: those whose text is compared are mostly those that are shown."""

    def __init__(self) -> None:
        self._known: dict[int, Passage] = {}

    def __call__(self, chunk_ids: Sequence[int]) -> dict[int, Passage]:
        """By chunk id; one that was deleted meanwhile is absent."""
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._known]
        if missing:
            self._known |= read_passages(missing)
        return {
            chunk_id: self._known[chunk_id] for chunk_id in chunk_ids if chunk_id in self._known
        }
