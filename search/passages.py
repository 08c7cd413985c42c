"""What models and letters are compared with: a passage as it was embedded."""

from collections.abc import Sequence

from documents.ingestion.preparing import embedding_text
from documents.models import Chunk


def passages(chunk_ids: Sequence[int]) -> dict[int, str]:
    """Title, headings and text by chunk id; a chunk that was deleted meanwhile is absent."""
    rows = Chunk.objects.filter(id__in=chunk_ids).values_list("id", "context", "text")
    return {chunk_id: embedding_text(context, text) for chunk_id, context, text in rows}
