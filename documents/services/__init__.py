"""What one can do with collections, documents and embedding spaces."""

from documents.ingestion.reindexing import (
    Reindexed,
    reindex_chunks,
    reindex_collection,
    reindex_document,
)
from documents.ingestion.sources import MAX_METADATA_CHARACTERS
from documents.services.again import (
    Again,
    reembed_collection,
    reembed_documents,
    reingest_documents,
)
from documents.services.collections import (
    chunk_count,
    create_collection,
    delete_collection,
    get_collection,
    get_or_create_collection,
    update_collection,
)
from documents.services.correcting import UNSET, update_document
from documents.services.deletion import (
    delete_document,
    delete_documents,
    delete_version,
    delete_versions,
    prune_versions,
)
from documents.services.documents import (
    DocumentText,
    create_run,
    document_text,
    ingest_inline,
    ingest_sources,
    ingest_text,
    joined_text,
)
from documents.services.editing import (
    Edited,
    ModelAway,
    StaleText,
    dismiss_edit,
    edit_chunk,
    undo_edit,
)
from documents.services.figures import Figures, figures
from documents.services.items import (
    MAX_BATCH,
    Stored,
    StoredItem,
    count_items,
    delete_items,
    get_item,
    get_items,
    store_items,
)
from documents.services.originals import open_original, text_file
from documents.services.runs import Retry, cancel_run, in_words, retry_failed, retryable
from documents.services.server_files import ingest_server_directory, sync_server_directory
from documents.services.spaces import (
    SpaceReport,
    add_space,
    build_space_index,
    build_space_index_in_queue,
    cancel_reembedding,
    change_instruction,
    default_space,
    drop_space,
    get_space,
    live_embedders,
    reembed_here,
    reembed_in_queue,
    space_reports,
)
from documents.services.sync import Sync, sync_directory
from documents.services.transfer import export_collection, import_collection
from documents.services.uploads import Upload, ingest_uploads
from documents.services.web import ingest_urls, require_urls

__all__ = [
    "MAX_BATCH",
    "MAX_METADATA_CHARACTERS",
    "UNSET",
    "Again",
    "DocumentText",
    "Edited",
    "Figures",
    "ModelAway",
    "Reindexed",
    "Retry",
    "SpaceReport",
    "StaleText",
    "Stored",
    "StoredItem",
    "Sync",
    "Upload",
    "add_space",
    "build_space_index",
    "build_space_index_in_queue",
    "cancel_reembedding",
    "cancel_run",
    "change_instruction",
    "chunk_count",
    "count_items",
    "create_collection",
    "create_run",
    "default_space",
    "delete_collection",
    "delete_document",
    "delete_documents",
    "delete_items",
    "delete_version",
    "delete_versions",
    "dismiss_edit",
    "document_text",
    "drop_space",
    "edit_chunk",
    "export_collection",
    "figures",
    "get_collection",
    "get_item",
    "get_items",
    "get_or_create_collection",
    "get_space",
    "import_collection",
    "in_words",
    "ingest_inline",
    "ingest_server_directory",
    "ingest_sources",
    "ingest_text",
    "ingest_uploads",
    "ingest_urls",
    "joined_text",
    "live_embedders",
    "open_original",
    "prune_versions",
    "reembed_collection",
    "reembed_documents",
    "reembed_here",
    "reembed_in_queue",
    "reindex_chunks",
    "reindex_collection",
    "reindex_document",
    "reingest_documents",
    "require_urls",
    "retry_failed",
    "retryable",
    "space_reports",
    "store_items",
    "sync_directory",
    "sync_server_directory",
    "text_file",
    "undo_edit",
    "update_collection",
    "update_document",
]
