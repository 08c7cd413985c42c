"""Files in, chunks out: collections, documents, chunks and ingestion runs."""
