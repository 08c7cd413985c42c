"""What models and letters are compared with: a passage as it was embedded."""

from collections.abc import Sequence

from common.replicas import read_connection
from documents.ingestion.preparing import embedding_text


def passages(chunk_ids: Sequence[int]) -> dict[int, str]:
    """Title, headings and text by chunk id; a chunk that was deleted meanwhile is absent."""
    # By hand: every hybrid search asks this, and a queryset takes as long to compile as to run.
    with read_connection().cursor() as cursor:
        cursor.execute(
            "SELECT id, context, text FROM documents_chunk WHERE id = ANY(%s)", [list(chunk_ids)]
        )
        return {
            chunk_id: embedding_text(context, text) for chunk_id, context, text in cursor.fetchall()
        }
