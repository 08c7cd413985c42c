"""Whether a passage is in the scope of a search, asked of one passage at a time."""


def seen(chunk_id: str, within: str) -> str:
    """SQL for a LATERAL: `document_id`, and `is_allowed` where the conditions `within` on
    `documents_chunk AS chunk` hold for the passage of this id.

    The conditions stand in the list of columns, so that no index but that of ids can be used. Of a
    collection that is younger than the planner's statistics it takes all conditions to leave
    next to nothing, and would look through the whole of it for each passage: for minutes.
    """
    return (
        f"SELECT chunk.document_id, ({within}) AS is_allowed FROM documents_chunk AS chunk"
        f" WHERE chunk.id = {chunk_id} OFFSET 0"
    )
