-- every space that holds chunks of these collections, in the very snapshot that was searched: while
-- chunks move to another space, the caller's list of spaces may be older
spaces AS (
    SELECT coalesce(array_agg(DISTINCT space.id), '{}') AS ids
    FROM documents_collection AS collection,
         unnest(collection.former_spaces || collection.space_id) AS space(id)
    WHERE collection.id = ANY(%(collections)s)
)
