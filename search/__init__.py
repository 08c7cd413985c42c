"""Hybrid search: a question in, ranked passages out. Begin with `services.search`, whose way
docs/architecture.md tells hop by hop. Then read `query_options`, `ranked_results`,
`retrieval.arms`, `retrieval.statements`, `ranking`, `hits`; the shapes are in `results`.
"""
