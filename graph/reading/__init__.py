"""Reading the graph: rows and what is derived from documents, as one."""
