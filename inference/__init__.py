"""Running models, local or remote: embedders, rerankers, chat. No tables, no web."""
