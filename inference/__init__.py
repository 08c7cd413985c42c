"""Running models, local or remote: embedders, rerankers, chat. No tables, no web.

Read `interfaces` (what a model offers), `model_registry` (the configured ones), then a module of
`backends`. `shared` asks the worker that holds a model.
"""
