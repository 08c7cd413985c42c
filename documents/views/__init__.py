"""Pages of collections, documents, uploads and runs."""
