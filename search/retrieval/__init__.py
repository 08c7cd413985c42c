"""The arms of a search as one SQL statement: BM25, vectors, or both."""
