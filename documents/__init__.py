"""Files in, chunks out: collections, documents, chunks and ingestion runs.

Read `models`, then `services` (what pages, API and commands call), `ingestion` (from a source to
chunks), `lexical_index` and `lexical_search` (BM25). Parsers and chunkers are in `reading`.
"""
