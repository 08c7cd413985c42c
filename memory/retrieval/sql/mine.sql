-- every row of the user: quotas bound them, so nothing is missed and no index can mix two users
mine AS MATERIALIZED (
    SELECT row.id, row.language, row.space_id, {thread} AS thread, {moment} AS moment,
           -- joined with nothing, so that it is decompressed once, not once a term
           row.search_vector || ''::tsvector AS search_vector,
           {similarity} AS similarity
    FROM {table} AS row
    WHERE row.workspace_id = %(workspace)s AND row.user_id = %(user)s{condition}
)
