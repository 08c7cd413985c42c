"""Knowledge graph: nodes and edges, found in documents or written by callers. Begin with
`services`, which lists what is read and written. Then read `node_ids`, `models`,
`scopes`, `reading.vertices`, `reading.steps`, `services.upsert`, `extraction.worker`, `retrieval`.
"""
