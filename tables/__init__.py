"""Tables of documents as data: rows with typed columns, read from a document's text as it loads.

Begin with `models`, which says how rows are kept; then `listener` (when tables are written),
`store` (how), `rows` (how rows are read: filtered, sorted, summed), `services` (what doors call).
`reading/tables.py` finds the tables in a text, `reading/column_types.py` decides types and values.
"""
