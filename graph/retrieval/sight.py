"""Whether passages are in the scope of a search, asked of each by its id."""


def seen(chunk_id: str, within: str) -> str:
    """SQL for a LATERAL: `id`, `document_id`, and `is_allowed` where the conditions `within` on
    `documents_chunk AS chunk` hold, for the passage of this id, or the passages of `ANY(…)`.

    The conditions stand in the list of columns, so that no index but that of ids can be used. Of a
    collection that is younger than the planner's statistics it takes all conditions to leave
    next to nothing, and would look through the whole of it for each passage: for minutes.
    """
    return (
        f"SELECT chunk.id, chunk.document_id, ({within}) AS is_allowed"
        f" FROM documents_chunk AS chunk WHERE chunk.id = {chunk_id} OFFSET 0"
    )
