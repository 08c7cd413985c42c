"""Where tables lie that are not spread by workspace, and why. Every other table is spread.

A table goes to the first place that names it; tests/test_sharding.py fails for a new one that is
named nowhere and has no workspace.
"""

#: The column that rows are spread by.
KEY = "workspace_id"

#: On every server, whole: few rows, read with every workspace, seldom written.
SHARED = {
    "accounts_user": "people belong to several workspaces",
    "accounts_user_groups": "of people",
    "accounts_user_user_permissions": "of people",
    "accounts_workspace": "the workspaces themselves, whose names are unique",
    "auth_group": "of people",
    "auth_group_permissions": "of people",
    "auth_permission": "of people",
    "django_content_type": "of the code",
    "documents_embeddingspace": "models are the site's, and their vectors are of all workspaces",
}

#: On the coordinator alone: never read together with what a search reads.
ON_COORDINATOR = {
    "accounts_change": "some changes are the site's own and have no workspace",
    "django_admin_log": "the admin's own",
    "django_migrations": "of the code",
    "django_session": "of people, by a random key",
    "documents_reembedding": "one row moves all collections, another one of them",
}

#: Foreign keys from there to a table that is spread, which no server could check. Django removes
#: or empties such rows itself when what they name goes.
LET_GO = {
    ("accounts_change", "key_id"): "the history outlives the key that it names",
    ("documents_reembedding", "collection_id"): "goes with its collection, by Django",
}

#: Triggers of tables that are spread. Each only touches rows of the workspace of its own.
TRIGGERS = {
    "chunk_index_changed": "gives a chunk whose words change another id in the index of words",
    "chunk_index_new": "has new chunks found until they are in a segment",
    "chunk_index_removed": "has the postings of chunks that are gone passed over",
    "collection_drop_index": "takes the index of words along with its collection",
    "lexicalsegment_drop_postings": "takes postings along with the segment that they are of",
    "rag_forget_documents": "empties answers that quote a document which is gone",
    "searchlog_forget_collections": "takes collections that are gone out of the log",
    "searchlog_forget_documents": "takes documents that are gone out of the log",
}
