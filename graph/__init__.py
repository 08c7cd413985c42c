"""Knowledge graph: nodes and edges, found in documents or written by callers. Begin with
`services.queries` (reading) and `services.edits` (writing). Then read `node_ids`, `models`,
`scopes`, `reading.vertices`, `reading.steps`, `storing.upsert`, `extraction.worker`, `retrieval`.
"""
